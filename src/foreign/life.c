/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "foreign/model.h"
#include "isolate/cgroup/cgroup.h"
#include "vm/driver/relay.h"
#include "wire/message/agent.h"

/*
 * Theory of operation. Directory and group are made at once; the network, where there is to be one,
 * on a thread. Then relay and machine are started, with a socket pair for the console and one for
 * the agent's port between them. Nothing of it has to be taken apart but by its directory and its
 * group (foreign_clean()), whatever was reached.
 */

#define FOREIGN_DIR "machines"
#define FOREIGN_GROUP "vm."

int foreign_group(char *ret, size_t size, const char *title)
{
	return MIN(str_printf(ret, size, FOREIGN_GROUP "%s", name_last(title)), 0);
}

int foreign_monitor_group(char *ret, size_t size, const char *title)
{
	return MIN(str_printf(ret, size, FOREIGN_GROUP "%s/vmm", name_last(title)), 0);
}

/* ---- the object ---- */

static void foreign_destroy(struct foreign *f)
{
	loop_defer_done(&f->begin);
	foreign_end_done(f);
	f->vm = f->vm ? f->vm->driver->free(f->vm) : NULL;
	if (f->relay_lives)
		loop_child_done(&f->relay_watch);
	isolate_child_done(&f->relay);
	segment_done(&f->network.made);
	(void)fd_close(f->dir_fd);
	(void)fd_close(f->cgroup_fd);
	list_remove(&f->link);
	free(f);
}

static void foreign_check_gone(struct foreign *f)
{
	if (!f->events && !f->relay_lives && !f->network.work.busy)
		foreign_destroy(f);
}

struct foreign *foreign_free(struct foreign *f)
{
	if (!f)
		return NULL;
	f->events = NULL;
	f->spec = NULL;
	loop_defer_done(&f->begin);
	foreign_end_done(f);
	f->vm = f->vm ? f->vm->driver->free(f->vm) : NULL;
	foreign_check_gone(f);
	return NULL;
}

static bool foreign_has_uid(const struct foreigns *all, uid_t uid)
{
	const struct foreign *f;

	list_for_each (f, &all->list, struct foreign, link)
		if (f->uid == uid)
			return true;
	return false;
}

static struct foreign *foreign_new(struct foreigns *all, const char *id, const char *title,
				   const struct foreign_events *events, void *userdata,
				   loop_defer_fn begin)
{
	struct foreign *f = calloc(1, sizeof(*f));
	uid_t uid = FOREIGN_UID_FIRST;

	if (!f)
		return NULL;
	while (foreign_has_uid(all, uid))
		uid += 2;
	f->uid = uid;
	f->all = all;
	f->events = events;
	f->userdata = userdata;
	f->dir_fd = f->cgroup_fd = -1;
	f->relay = (struct isolate_child)ISOLATE_CHILD_INIT;
	f->network = (struct segment_job)SEGMENT_JOB_INIT;
	(void)str_copy(f->id, sizeof(f->id), id);
	(void)str_copy(f->title, sizeof(f->title), title);
	loop_defer_init(&f->begin, all->config.loop, begin);
	foreign_end_init(f);
	list_init(&f->link);
	list_add_tail(&all->list, &f->link);
	return f;
}

static int foreign_open_place(struct foreign *f, struct error *err)
{
	char group[NAME_LABEL_MAX + 8];

	if (sysio_mkdirat(f->all->machines_fd, f->id, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of the machine %s", f->title);
	f->dir_fd = sysio_openat(f->all->machines_fd, f->id,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (f->dir_fd < 0)
		return error_set(err, -errno, "open the directory of the machine %s", f->title);
	(void)foreign_group(group, sizeof(group), f->title);
	f->cgroup_fd = cgroup_make_inner(f->all->config.cgroup_fd, group, err);
	return MIN(f->cgroup_fd, 0);
}

/* ---- what the processes tell ---- */

static void foreign_on_vm_up(struct vm *vm, void *owner)
{
	struct foreign *f = owner;

	f->spec = NULL;
	if (f->events)
		f->events->on_up(f->userdata, vm->driver->pid(vm));
}

static void foreign_on_vm_state(struct vm *vm, enum vm_state state, void *owner)
{
	struct foreign *f = owner;

	(void)vm;
	if (f->events)
		f->events->on_paused(f->userdata, state == VM_PAUSED);
}

static void foreign_on_vm_io_error(struct vm *vm, const struct vm_io_error *e, void *owner)
{
	struct foreign *f = owner;
	uint32_t bit = 1U << (2 * e->n + e->writing);

	(void)vm;
	if (e->slot || !f->events || (f->io_errors & bit))
		return;
	f->io_errors |= bit;
	f->events->on_io_error(f->userdata, e);
}

static void foreign_on_vm_end(struct vm *vm, const struct vm_end *end, void *owner)
{
	struct foreign *f = owner;

	f->vm = vm->driver->free(vm);
	f->spec = NULL;
	foreign_over(f, end);
}

static const struct vm_events foreign_vm_events = {
	.on_up = foreign_on_vm_up,
	.on_state = foreign_on_vm_state,
	.on_io_error = foreign_on_vm_io_error,
	.on_end = foreign_on_vm_end,
};

static void foreign_on_relay(struct loop_child *source, int code, int status)
{
	struct foreign *f = container_of(source, struct foreign, relay_watch);

	(void)code;
	loop_child_done(&f->relay_watch);
	f->relay_lives = false;
	if (f->events && !f->ended)
		log_warn("nobody reads the console of a machine any more: its relay has ended",
			 LOG_STR("machine", f->title), LOG_INT("status", status));
	foreign_check_gone(f);
}

/* ---- making ---- */

/* What lies between relay and machine: the relay's end first. */
struct foreign_lines {
	int console[2], agent[2];
};

static void foreign_lines_done(struct foreign_lines *l)
{
	for (int n = 0; n < 2; n++) {
		l->console[n] = fd_close(l->console[n]);
		l->agent[n] = fd_close(l->agent[n]);
	}
}

static int foreign_start_relay(struct foreign *f, const struct foreign_lines *lines,
			       struct error *err)
{
	_cleanup_fd_ int leaf_fd = cgroup_make(f->cgroup_fd, "relay", err);
	const struct relay_start start = {
		.program = f->all->program,
		.title = f->title,
		.dir_fd = f->dir_fd,
		.cgroup_fd = leaf_fd,
		.console_fd = lines->console[0],
		.agent_fd = lines->agent[0],
		.uid = f->uid + 1,
		.gid = f->uid + 1,
	};
	int r;

	if (leaf_fd < 0)
		return leaf_fd;
	r = relay_start(&start, &f->relay, err);
	if (r < 0)
		return r;
	f->relay_lives = true;
	loop_child_init(&f->relay_watch, f->all->config.loop, f->relay.pidfd, foreign_on_relay);
	return 0;
}

static int foreign_start_vm(struct foreign *f, const struct foreign_lines *lines, struct error *err)
{
	const struct foreigns_config *c = &f->all->config;
	_cleanup_fd_ int leaf_fd = cgroup_make(f->cgroup_fd, "vmm", err);
	const struct vm_port port = { .name = AGENT_PORT, .fd = lines->agent[1] };
	struct vm_nic nic = { .tap_fd = f->network.made.tap_fd };
	const struct foreign_spec *s = f->spec;
	struct vm_spec spec;

	if (leaf_fd < 0)
		return leaf_fd;
	vm_spec_init(&spec);
	spec.title = f->title;
	spec.accel = c->is_fast(c->userdata) ? VM_ACCEL_HARDWARE : VM_ACCEL_EMULATED;
	spec.memory_mib = s->memory_mib;
	spec.cpus = s->cpus;
	spec.nested = c->nested;
	spec.firmware = s->firmware;
	spec.kernel_fd = s->kernel_fd;
	spec.initrd_fd = s->initrd_fd;
	spec.vars_fd = s->vars_fd;
	spec.words = s->words;
	spec.reboots = true;
	spec.disks = s->disks;
	spec.n_disks = s->n_disks;
	spec.ports = &port;
	spec.n_ports = 1;
	spec.console_fd = lines->console[1];
	spec.dir_fd = f->dir_fd;
	spec.cgroup_fd = leaf_fd;
	spec.uid = f->uid;
	spec.gid = f->uid;
	if (s->network) {
		memcpy(nic.mac, f->network.plan.guest_mac, sizeof(nic.mac));
		spec.nics = &nic;
		spec.n_nics = 1;
		spec.net_ns_fd = f->network.made.ns_fd;
	}
	return c->driver->start(&f->vm, c->loop, &spec, &foreign_vm_events, f, err);
}

static int foreign_go_on(struct foreign *f, struct error *err)
{
	_cleanup_(foreign_lines_done) struct foreign_lines lines = { { -1, -1 }, { -1, -1 } };
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lines.console) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lines.agent) < 0)
		return error_set(err, -errno, "make the lines of a machine");
	r = foreign_start_relay(f, &lines, err);
	return r < 0 ? r : foreign_start_vm(f, &lines, err);
}

static void foreign_fail(struct foreign *f, const struct error *err)
{
	struct vm_end end = { .cause = VM_END_NOT_STARTED };

	(void)str_copy(end.text, sizeof(end.text), error_text(err));
	f->spec = NULL;
	foreign_over(f, &end);
}

static void foreign_on_begin(struct loop_defer *d)
{
	struct foreign *f = container_of(d, struct foreign, begin);
	struct error err = ERROR_INIT;

	if (f->unwanted)
		(void)error_refuse(&err, ERROR_ABORTED, "it was stopped while it started");
	if (f->unwanted || foreign_go_on(f, &err) < 0)
		foreign_fail(f, &err);
	segment_done(&f->network.made);
}

static void foreign_on_network(struct segment_job *job)
{
	struct foreign *f = container_of(job, struct foreign, network);

	if (!f->events)
		foreign_check_gone(f);
	else if (job->r < 0)
		foreign_fail(f, &job->err);
	else
		loop_defer_schedule(&f->begin);
}

int foreign_start(struct foreign **ret, struct foreigns *all, const char *id, const char *title,
		  const struct foreign_spec *spec, const struct foreign_events *events,
		  void *userdata, struct error *err)
{
	struct foreign *f = foreign_new(all, id, title, events, userdata, foreign_on_begin);
	struct segment_plan plan = segment_plan_usual();
	int r;

	if (!f)
		return error_set(err, -ENOMEM, "the machine %s", title);
	r = foreign_open_place(f, err);
	if (r < 0) {
		foreign_destroy(f);
		return r;
	}
	f->spec = spec;
	if (spec->network)
		segment_job_start(&f->network, all->config.pool, &plan, foreign_on_network);
	else
		loop_defer_schedule(&f->begin);
	*ret = f;
	return 0;
}

/* ---- an earlier life ---- */

/* The user that it has, so that nobody else gets it. */
static void foreign_find_uid(struct foreign *f)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *status = NULL;
	char name[64];
	const char *line;

	if (str_printf(name, sizeof(name), "/proc/%d/status", (int)f->vm->driver->pid(f->vm)) < 0 ||
	    fd_read_file(AT_FDCWD, name, 16384, &b) < 0)
		return;
	status = buf_take_str(&b);
	line = status ? strstr(status, "\nUid:\t") : NULL;
	if (line)
		f->uid = (uid_t)strtoul(line + strlen("\nUid:\t"), NULL, 10);
}

int foreign_adopt(struct foreign **ret, struct foreigns *all, const char *id, const char *title,
		  const struct foreign_events *events, void *userdata, struct error *err)
{
	const struct foreigns_config *c = &all->config;
	struct foreign *f = foreign_new(all, id, title, events, userdata, foreign_on_begin);
	_cleanup_fd_ int leaf_fd = -1;
	int r;

	if (!f)
		return error_set(err, -ENOMEM, "the machine %s", title);
	r = foreign_open_place(f, err);
	if (r == 0) {
		leaf_fd = cgroup_make(f->cgroup_fd, "vmm", err);
		r = MIN(leaf_fd, 0);
	}
	if (r == 0)
		r = c->driver->adopt(&f->vm, c->loop, f->dir_fd, leaf_fd, &foreign_vm_events, f,
				     err);
	if (r == -ESRCH)
		r = error_refuse(err, ERROR_UNAVAILABLE,
				 "its machine ended while the daemon was away");
	if (r < 0) {
		foreign_destroy(f);
		return r;
	}
	foreign_find_uid(f);
	*ret = f;
	return 0;
}

/* ---- what is left of one ---- */

int foreign_clean(struct foreigns *all, const char *id, const char *title)
{
	char group[NAME_LABEL_MAX + 8];
	_cleanup_fd_ int fd = -1;
	int r;

	(void)foreign_group(group, sizeof(group), title);
	fd = sysio_openat(all->config.cgroup_fd, group, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd >= 0)
		(void)cgroup_kill(fd);
	r = cgroup_remove(all->config.cgroup_fd, group);
	return r < 0 ? r : rootfd_remove_tree(all->machines_fd, id);
}

void foreigns_sweep(struct foreigns *all, bool (*knows_id)(void *userdata, const char *id),
		    bool (*knows_name)(void *userdata, const char *name), void *userdata)
{
	_cleanup_strv_ char **dirs = NULL;
	_cleanup_strv_ char **groups = NULL;

	if (fd_list_dir(all->config.cgroup_fd, &groups) == 0)
		for (size_t n = 0; groups && groups[n]; n++) {
			const char *name = groups[n] + strlen(FOREIGN_GROUP);

			if (!str_has_prefix(groups[n], FOREIGN_GROUP) || knows_name(userdata, name))
				continue;
			log_info("the group of an unknown machine is removed",
				 LOG_STR("cgroup", groups[n]));
			for (int i = 0; i < 100 && foreign_clean(all, ".", name) == -EBUSY; i++)
				(void)usleep(1000); /* at start-up only: nothing is served yet */
		}
	if (fd_list_dir(all->machines_fd, &dirs) == 0)
		for (size_t n = 0; dirs && dirs[n]; n++)
			if (!knows_id(userdata, dirs[n]))
				(void)rootfd_remove_tree(all->machines_fd, dirs[n]);
}

int foreign_console(struct foreigns *all, const char *id, bool replay, struct error *err)
{
	_cleanup_fd_ int dir_fd = sysio_openat(all->machines_fd, id,
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (dir_fd < 0)
		return error_refuse(err, ERROR_UNAVAILABLE, "nobody reads its console any more");
	return relay_console(dir_fd, replay, err);
}

/* ---- all of them ---- */

struct foreigns *foreigns_free(struct foreigns *all)
{
	struct foreign *f;

	if (!all)
		return NULL;
	list_for_each (f, &all->list, struct foreign, link)
		foreign_destroy(f);
	(void)fd_close(all->machines_fd);
	free(all->program);
	free(all);
	return NULL;
}

int foreigns_new(struct foreigns **ret, const struct foreigns_config *config, struct error *err)
{
	struct foreigns *all = calloc(1, sizeof(*all));

	if (!all)
		return error_set(err, -ENOMEM, "machines");
	all->config = *config;
	list_init(&all->list);
	all->machines_fd = -1;
	all->program = strdup(config->program);
	if (!all->program) {
		(void)foreigns_free(all);
		return error_set(err, -ENOMEM, "machines");
	}
	if (sysio_mkdirat(config->run_fd, FOREIGN_DIR, 0700) == 0 || errno == EEXIST)
		all->machines_fd = sysio_openat(config->run_fd, FOREIGN_DIR,
						O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (all->machines_fd < 0) {
		int r = error_set(err, -errno, "open the directory of machines");

		(void)foreigns_free(all);
		return r;
	}
	*ret = all;
	return 0;
}
