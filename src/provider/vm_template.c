/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/buf.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "instance/model.h"
#include "instance/spare.h"
#include "isolate/cgroup/cgroup.h"
#include "provider/vm_machine.h"
#include "vm/guest/guest_set.h"
#include "wire/message/bootmsg.h"

/*
 * Theory of operation. `form` says what a machine must have in common with the one that was saved:
 * the files of its set (which has a name, but may be removed and made again), its size, the
 * programs that it is made by. A template of another form is none.
 *
 * Making one: a network like that of every machine, on a thread; then a directory, a group and a
 * machine, whose lines end here, with the word in its kernel's command line that has pid 1 say that
 * it waits. When it has said so and has settled, it is saved and killed, and at its end, which is
 * waited for since nobody else may have the memory mapped for writing, both files are sealed. Every
 * way out goes through making_end(), which takes everything else away.
 */

#define TEMPLATE_WORD "NACRE_TEMPLATE=1"
#define TEMPLATE_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
#define TEMPLATE_PIECE 4096
#define TEMPLATE_CLEAN_TRIES 2000
#define TEMPLATE_CLEAN_USEC 100

enum {
	FORM_KERNEL,
	FORM_INITRD = 4,
	FORM_PROGRAMS = 8,
	FORM_SIZE,
	FORM_CPUS,
	FORM_ACCEL,
	FORM_WORDS
};

struct template_form {
	uint64_t word[FORM_WORDS];
};

struct making {
	bool busy, settles, saved;
	struct template_form form;
	struct segment_job network;
	int groups_fd, dirs_fd; /* where its group and its directory are */
	char id[ID_SIZE];
	int dir_fd, group_fd, leaf_fd;
	int memory_fd, state_fd;
	int boot_fd, console_fd; /* our ends */
	struct loop_fd boot, console;
	struct buf in;
	struct loop_timer timer; /* patience, then the time to settle */
	struct vm *vm;
	struct error err;
};

struct templates {
	struct vms *vms;
	templates_fn changed;
	int memory_fd, state_fd; /* -1: there is none */
	struct template_form form;
	bool wanted;
	unsigned n_tries;
	struct template_form tried;
	struct loop_timer idle;
	struct making making;
};

/* ---- forms ---- */

static int form_of_file(int fd, uint64_t word[4])
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	word[0] = st.st_dev;
	word[1] = st.st_ino;
	word[2] = (uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
	word[3] = (uint64_t)st.st_size;
	return 0;
}

/* Whether it has the devices that all have, and not that of a bridge of the node. */
static bool form_has_nics(const struct vm_spec *s)
{
	return s->n_nics == MACHINE_NICS;
}

/* Of a machine with nothing but what all have. -ENOTSUP for another. */
static int form_of(struct template_form *ret, const struct vms *v, const struct vm_spec *s)
{
	int r;

	*ret = (struct template_form){ 0 };
	if (!v->config.driver->snapshot || s->firmware != VM_FIRMWARE_NONE || s->n_shares ||
	    s->n_disks || !form_has_nics(s) || s->n_ports != 1 || s->console_fd < 0 ||
	    s->initrd_fd < 0 || s->n_slots != MACHINE_SLOTS || s->writable_slots)
		return -ENOTSUP;
	r = form_of_file(s->kernel_fd, ret->word + FORM_KERNEL);
	if (r == 0)
		r = form_of_file(s->initrd_fd, ret->word + FORM_INITRD);
	if (r == 0)
		r = v->config.driver->identity(&ret->word[FORM_PROGRAMS]);
	ret->word[FORM_SIZE] = s->memory_mib;
	ret->word[FORM_CPUS] = s->cpus;
	ret->word[FORM_ACCEL] = s->accel;
	return r;
}

static bool form_is(const struct template_form *a, const struct template_form *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Whether that is the form which a machine has where nobody asks for another. */
static bool form_is_usual(const struct vms *v, const struct template_form *form)
{
	_cleanup_(guest_set_done) struct guest_set set = GUEST_SET_INIT;
	const char *words[VM_WORDS_MAX + 1];
	struct vm_spec spec;

	if (guest_set_open(&set, v->config.root_fd, v->config.guest, NULL) < 0)
		return false;
	vms_plain_spec(v, &set, words, &spec);
	return form->word[FORM_SIZE] == spec.memory_mib && form->word[FORM_CPUS] == spec.cpus;
}

/* ---- the end of making one ---- */

static void making_clean_place(struct making *m)
{
	char group[ID_SIZE + 16];

	if (!m->id[0])
		return;
	(void)str_printf(group, sizeof(group), SPARE_GROUP_PREFIX "%s", m->id);
	if (m->group_fd >= 0)
		(void)cgroup_kill(m->group_fd);
	m->leaf_fd = fd_close(m->leaf_fd);
	m->group_fd = fd_close(m->group_fd);
	/* Its process is reaped, or is about to be: a matter of a millisecond. */
	for (int i = 0; i < TEMPLATE_CLEAN_TRIES; i++) {
		if (cgroup_remove(m->groups_fd, group) != -EBUSY)
			break;
		(void)usleep(TEMPLATE_CLEAN_USEC);
	}
	if (rootfd_remove_tree(m->dirs_fd, m->id) < 0)
		log_warn("cannot remove the directory of a template", LOG_STR("id", m->id));
	m->id[0] = '\0';
}

static void making_done(struct making *m)
{
	loop_timer_stop(&m->timer);
	if (m->boot_fd >= 0)
		loop_fd_done(&m->boot);
	if (m->console_fd >= 0)
		loop_fd_done(&m->console);
	m->vm = m->vm ? m->vm->driver->free(m->vm) : NULL;
	m->boot_fd = fd_close(m->boot_fd);
	m->console_fd = fd_close(m->console_fd);
	m->memory_fd = fd_close(m->memory_fd);
	m->state_fd = fd_close(m->state_fd);
	m->dir_fd = fd_close(m->dir_fd);
	making_clean_place(m);
	m->groups_fd = fd_close(m->groups_fd);
	m->dirs_fd = fd_close(m->dirs_fd);
	segment_done(&m->network.made);
	buf_done(&m->in);
	m->busy = m->settles = m->saved = false;
}

static void templates_close(struct templates *t)
{
	bool was = t->memory_fd >= 0;

	t->memory_fd = fd_close(t->memory_fd);
	t->state_fd = fd_close(t->state_fd);
	if (was)
		t->changed(t->vms);
}

/* Nobody has it mapped for writing any more: it stays as it is from here on. */
static int making_seal(const struct making *m, struct error *err)
{
	if (fcntl(m->memory_fd, F_ADD_SEALS, TEMPLATE_SEALS) < 0 ||
	    fcntl(m->state_fd, F_ADD_SEALS, TEMPLATE_SEALS) < 0)
		return error_set(err, -errno, "seal a template");
	return 0;
}

static void making_end(struct templates *t)
{
	struct making *m = &t->making;

	if (!m->err.code && m->saved)
		(void)making_seal(m, &m->err);
	if (!m->err.code && !m->saved)
		(void)error_refuse(&m->err, ERROR_FAULT, "its machine has ended");
	if (m->err.code) {
		log_warn("no template of a guest could be made: machines boot", LOG_ERR(&m->err));
	} else {
		FAILPOINT_BEFORE("template.ready");
		templates_close(t);
		t->form = m->form;
		t->memory_fd = TAKE_FD(m->memory_fd);
		t->state_fd = TAKE_FD(m->state_fd);
		log_info("a template of a guest is ready",
			 LOG_INT("memory_mib", t->form.word[FORM_SIZE]));
		t->changed(t->vms);
		FAILPOINT_AFTER("template.ready");
	}
	making_done(m);
}

/* err NULL: it is at its end as it should be. */
static void making_stop(struct making *m, const struct error *err)
{
	struct templates *t = container_of(m, struct templates, making);

	if (err && !m->err.code)
		(void)error_copy(&m->err, err);
	loop_timer_stop(&m->timer);
	if (m->vm)
		m->vm->driver->kill(m->vm);
	else
		making_end(t);
}

/* ---- a guest on the way ---- */

static void making_on_end(struct vm *vm, const struct vm_end *end, void *owner)
{
	struct templates *t = owner;
	struct making *m = &t->making;

	if (!m->saved && !m->err.code)
		(void)error_refuse(&m->err, ERROR_FAULT, "%s", end->text);
	m->vm = vm->driver->free(vm);
	making_end(t);
}

static const struct vm_events making_events = { .on_end = making_on_end };

static void making_on_saved(struct vm *vm, const struct error *err, void *data)
{
	struct making *m = data;

	(void)vm;
	m->saved = !err;
	making_stop(m, err);
}

static void making_on_timer(struct loop_timer *timer)
{
	struct making *m = container_of(timer, struct making, timer);
	struct error err = ERROR_INIT;
	int r;

	if (!m->settles) {
		(void)error_refuse(&err, ERROR_DEADLINE, "its guest does not come up");
		making_stop(m, &err);
		return;
	}
	r = FAILPOINT("template.save");
	if (r < 0)
		(void)error_set(&err, r, "save a machine");
	else
		r = m->vm->driver->snapshot(m->vm, m->state_fd, making_on_saved, m, &err);
	if (r < 0)
		making_stop(m, &err);
	else
		loop_timer_set(&m->timer, TEMPLATE_PATIENCE);
	m->settles = false;
	FAILPOINT_AFTER("template.save");
}

static void making_take(struct making *m, ssize_t n, struct error *err)
{
	struct bootmsg msg;
	int r;

	buf_added(&m->in, (size_t)n);
	r = bootmsg_next(&msg, buf_data(&m->in), m->in.len, err);
	if (r == 0)
		return;
	if (r > 0 && msg.type == BOOTMSG_FAILED)
		(void)error_refuse(err, ERROR_FAULT, "%.200s", msg.failed.text);
	else if (r > 0 && msg.type != BOOTMSG_WAITING)
		(void)error_refuse(err, ERROR_FAULT, "its guest says what it should not");
	if (err->code)
		return;
	buf_consume(&m->in, (size_t)r);
	m->settles = true;
	loop_timer_set(&m->timer, TEMPLATE_SETTLES);
}

static void making_on_boot(struct loop_fd *source, unsigned events)
{
	struct making *m = container_of(source, struct making, boot);
	struct error err = ERROR_INIT;
	uint8_t *room;
	ssize_t n;

	(void)events;
	if (buf_reserve(&m->in, TEMPLATE_PIECE, &room) < 0)
		(void)error_refuse(&err, ERROR_EXHAUSTED, "its guest says too much");
	else {
		n = recv(m->boot_fd, room, TEMPLATE_PIECE, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0)
			making_take(m, n, &err);
		else
			loop_fd_set(&m->boot, 0); /* its end follows */
	}
	if (err.code) {
		loop_fd_set(&m->boot, 0);
		making_stop(m, &err);
	}
}

/* What it writes on its console is read, so that it goes on, and is of no interest. */
static void making_on_console(struct loop_fd *source, unsigned events)
{
	struct making *m = container_of(source, struct making, console);
	char data[TEMPLATE_PIECE];
	ssize_t n = recv(m->console_fd, data, sizeof(data), MSG_DONTWAIT);

	(void)events;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		loop_fd_set(&m->console, 0);
}

/* ---- setting out ---- */

static int making_open_place(struct making *m, struct error *err)
{
	char group[ID_SIZE + 16];
	int r = id_new(m->id);

	if (r < 0)
		return error_set(err, r, "draw an id");
	(void)str_printf(group, sizeof(group), SPARE_GROUP_PREFIX "%s", m->id);
	if (sysio_mkdirat(m->dirs_fd, m->id, 0700) < 0)
		return error_set(err, -errno, "make a directory");
	m->dir_fd =
		sysio_openat(m->dirs_fd, m->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (m->dir_fd < 0)
		return error_set(err, -errno, "open a directory");
	m->group_fd = cgroup_make_inner(m->groups_fd, group, err);
	if (m->group_fd < 0)
		return m->group_fd;
	m->leaf_fd = cgroup_make(m->group_fd, "vmm", err);
	return m->leaf_fd < 0 ? m->leaf_fd : 0;
}

static int making_open_files(struct making *m, unsigned memory_mib, struct error *err)
{
	m->memory_fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	m->state_fd = memfd_create("state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (m->memory_fd < 0 || m->state_fd < 0 ||
	    ftruncate(m->memory_fd, (off_t)memory_mib << 20) < 0)
		return error_set(err, -errno, "make files in memory");
	return 0;
}

static int making_start(struct templates *t, struct guest_set *set, int boot_fd, int console_fd,
			struct error *err)
{
	struct making *m = &t->making;
	const struct vm_port port = { .name = BOOTMSG_PORT, .fd = boot_fd };
	struct vm_nic nics[MACHINE_NICS];
	const char *words[VM_WORDS_MAX + 1];
	struct vm_spec spec;
	size_t n;
	int r;

	vms_plain_nics(&m->network.made, nics);
	n = vms_plain_spec(t->vms, set, words, &spec);
	if (n < VM_WORDS_MAX) {
		words[n] = TEMPLATE_WORD;
		words[n + 1] = NULL;
	}
	spec.title = "template";
	spec.fleeting = true;
	spec.nics = nics;
	spec.n_nics = ARRAY_SIZE(nics);
	spec.ports = &port;
	spec.n_ports = 1;
	spec.console_fd = console_fd;
	spec.net_ns_fd = m->network.made.ns_fd;
	spec.uid = spec.gid = TEMPLATE_UID;
	r = form_of(&m->form, t->vms, &spec);
	if (r < 0)
		return error_set(err, r, "look at the guest set");
	r = making_open_files(m, spec.memory_mib, err);
	if (r == 0)
		r = making_open_place(m, err);
	if (r < 0)
		return r;
	spec.memory_fd = m->memory_fd;
	spec.dir_fd = m->dir_fd;
	spec.cgroup_fd = m->leaf_fd;
	return t->vms->config.driver->start(&m->vm, t->vms->config.loop, &spec, &making_events, t,
					    err);
}

static int making_begin(struct templates *t, struct error *err)
{
	struct making *m = &t->making;
	_cleanup_(guest_set_done) struct guest_set set = GUEST_SET_INIT;
	_cleanup_fd_ int boot_fd = -1, console_fd = -1;
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, -errno, "make the lines of a machine");
	m->boot_fd = pair[0];
	boot_fd = pair[1];
	loop_fd_init(&m->boot, t->vms->config.loop, m->boot_fd, LOOP_READ, making_on_boot);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, -errno, "make the lines of a machine");
	m->console_fd = pair[0];
	console_fd = pair[1];
	loop_fd_init(&m->console, t->vms->config.loop, m->console_fd, LOOP_READ, making_on_console);
	r = FAILPOINT("template.start");
	if (r < 0)
		return error_set(err, r, "start the machine of a template");
	r = guest_set_open(&set, t->vms->config.root_fd, t->vms->config.guest, err);
	if (r == 0)
		r = making_start(t, &set, boot_fd, console_fd, err);
	if (r == 0)
		loop_timer_set(&m->timer, TEMPLATE_PATIENCE);
	FAILPOINT_AFTER("template.start");
	return r;
}

static void templates_on_network(struct segment_job *job)
{
	struct making *m = container_of(job, struct making, network);
	struct templates *t = container_of(m, struct templates, making);

	if (job->r < 0)
		(void)error_copy(&m->err, &job->err);
	else if (making_begin(t, &m->err) == 0)
		return;
	making_stop(m, &m->err);
}

static void templates_on_idle(struct loop_timer *timer)
{
	struct templates *t = container_of(timer, struct templates, idle);
	struct segment_plan plan = segment_plan_usual();
	struct making *m = &t->making;

	if (!t->wanted || m->busy)
		return;
	t->wanted = false;
	m->busy = true;
	m->err = (struct error)ERROR_INIT;
	plan.has_pod = true;
	segment_job_start(&m->network, t->vms->config.pool, &plan, templates_on_network);
}

/* ---- for the provider ---- */

void templates_make(struct templates *t, struct instances *all)
{
	struct making *m;

	if (!t || !t->wanted || t->making.busy)
		return;
	m = &t->making;
	if (m->groups_fd < 0)
		m->groups_fd = fd_copy(all->config.cgroup_fd);
	if (m->dirs_fd < 0)
		m->dirs_fd = fd_copy(all->keepers_fd);
	if (m->groups_fd >= 0 && m->dirs_fd >= 0)
		loop_timer_set(&t->idle, TEMPLATE_IDLE);
}

/* False: it was tried often enough. */
static bool templates_try(struct templates *t, const struct template_form *form)
{
	if (!form_is(&t->tried, form)) {
		t->tried = *form;
		t->n_tries = 0;
	}
	return t->n_tries++ < TEMPLATE_TRIES;
}

bool templates_use(struct templates *t, struct vm_spec *spec)
{
	struct template_form form;

	if (!t || form_of(&form, t->vms, spec) < 0)
		return false;
	if (t->memory_fd >= 0 && form_is(&t->form, &form)) {
		spec->memory_fd = t->memory_fd;
		spec->state_fd = t->state_fd;
		return true;
	}
	if (t->making.busy || t->wanted || !form_is_usual(t->vms, &form) ||
	    !templates_try(t, &form))
		return false;
	if (t->memory_fd >= 0)
		log_info("the template of a guest is out of date");
	templates_close(t);
	t->wanted = true;
	return false;
}

void templates_drop(struct templates *t, const char *why)
{
	log_warn("the template of a guest cannot be used: machines boot", LOG_STR("err", why));
	templates_close(t);
	t->wanted = templates_try(t, &t->form);
}

void templates_want(struct templates *t)
{
	_cleanup_(guest_set_done) struct guest_set set = GUEST_SET_INIT;

	if (guest_set_open(&set, t->vms->config.root_fd, t->vms->config.guest, NULL) == 0)
		t->wanted = t->memory_fd < 0 && !t->making.busy;
}

unsigned templates_memory(const struct templates *t)
{
	return t && t->memory_fd >= 0 ? (unsigned)t->form.word[FORM_SIZE] : 0;
}

const char *templates_id(const struct templates *t)
{
	return t && t->making.id[0] ? t->making.id : NULL;
}

int templates_new(struct templates **ret, struct vms *v, templates_fn changed, struct error *err)
{
	struct templates *t = calloc(1, sizeof(*t));

	if (!t)
		return error_set(err, -ENOMEM, "templates of guests");
	*t = (struct templates){
		.vms = v,
		.changed = changed,
		.memory_fd = -1,
		.state_fd = -1,
		.making = { .network = SEGMENT_JOB_INIT,
			    .groups_fd = -1,
			    .dirs_fd = -1,
			    .dir_fd = -1,
			    .group_fd = -1,
			    .leaf_fd = -1,
			    .memory_fd = -1,
			    .state_fd = -1,
			    .boot_fd = -1,
			    .console_fd = -1,
			    .in = BUF_INIT_LIMIT(BOOTMSG_FRAME_MAX + TEMPLATE_PIECE),
			    .err = ERROR_INIT },
	};
	loop_timer_init(&t->idle, v->config.loop, templates_on_idle);
	loop_timer_init(&t->making.timer, v->config.loop, making_on_timer);
	*ret = t;
	return 0;
}

struct templates *templates_free(struct templates *t)
{
	struct making *m;

	if (!t)
		return NULL;
	m = &t->making;
	loop_timer_done(&t->idle);
	if (m->vm)
		m->vm->driver->kill(m->vm);
	making_done(m);
	loop_timer_done(&m->timer);
	templates_close(t);
	free(t);
	return NULL;
}
