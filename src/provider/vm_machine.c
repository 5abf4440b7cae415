/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "instance/end.h"
#include "instance/link.h"
#include "instance/model.h"
#include "isolate/cgroup.h"
#include "provider/vm_words.h"
#include "vm/gate.h"
#include "vm/guest_set.h"
#include "vm/issuer.h"
#include "wire/bootmsg.h"

/*
 * Theory of operation. What the guest trusts and its network are asked for at once; when both are
 * here, gate and machine are started, with a socket pair for the boot port and one for the console
 * between them, and the gate is given BOOT for the guest. From then on rpc.sock is served: hello
 * waits there until the guest has enrolled.
 *
 * The end of the machine is told by its driver. Then the gate is asked for the end of the console,
 * which is waited for a moment, and the instance has ended with that in its reason. Its group is
 * killed then, and the gate with it: the machine's object is freed when both are reaped.
 */

#define MACHINE_ENTROPY 256
#define MACHINE_SLOTS 12
#define MACHINE_MTU 1500
#define MACHINE_CONSOLE_PATIENCE (2 * NSEC_PER_SEC)

/* ---- the object ---- */

static void machine_over(struct machine *m, const char *console)
{
	struct instance *i = m->instance;
	char reason[INSTANCE_REASON_MAX];

	loop_timer_stop(&m->patience);
	(void)str_printf(reason, sizeof(reason), "%.180s%s%s", i->broken ? i->last_error : m->end,
			 *console ? "; its console ends: " : "", console);
	log_info("a machine has ended", LOG_STR("instance", i->path), LOG_INT("pid", i->pid),
		 LOG_STR("reason", reason));
	instance_ended(i, reason);
}

static void machine_on_patience(struct loop_timer *t)
{
	machine_over(container_of(t, struct machine, patience), "");
}

static bool machine_has_uid(const struct vms *v, uid_t uid)
{
	const struct machine *m;

	list_for_each (m, &v->machines, struct machine, link)
		if (m->uid == uid)
			return true;
	return false;
}

struct machine *machine_new(struct vms *v, struct instance *i)
{
	struct machine *m = calloc(1, sizeof(*m));
	uid_t uid = MACHINE_UID_FIRST;

	if (!m)
		return NULL;
	while (machine_has_uid(v, uid))
		uid += 2;
	m->uid = uid;
	m->vms = v;
	m->instance = i;
	m->slots.n = MACHINE_SLOTS;
	list_init(&m->disks);
	m->network = (struct segment_job)SEGMENT_JOB_INIT;
	loop_timer_init(&m->patience, v->config.loop, machine_on_patience);
	list_init(&m->link);
	list_add_tail(&v->machines, &m->link);
	i->own = m;
	return m;
}

/* A question for a disk. */
struct machine_disk {
	struct list link;
	struct machine *machine;
	unsigned slot;
	bool first; /* it is being put there for this one */
	peer_done_fn done;
	void *userdata;
	struct loop_defer defer; /* of one that is there already */
};

static void machine_disk_free(struct machine_disk *d)
{
	list_remove(&d->link);
	loop_defer_done(&d->defer);
	free(d);
}

static void machine_drop_disks(struct machine *m)
{
	struct machine_disk *d;

	list_for_each (d, &m->disks, struct machine_disk, link)
		machine_disk_free(d);
}

void machine_free(struct machine *m)
{
	assert(!m->network.work.busy || !m->instance);
	if (m->awaits_bundle)
		issuer_forget(m->vms->config.issuer, m);
	loop_timer_done(&m->patience);
	machine_drop_disks(m);
	m->gate = gate_free(m->gate);
	m->vm = m->vm ? m->vm->driver->free(m->vm) : NULL;
	segment_done(&m->network.made);
	free(m->bundle);
	list_remove(&m->link);
	free(m);
}

/* Frees it once nobody will call it any more. */
static void machine_check_gone(struct machine *m)
{
	if (!m->instance && !m->gate && !m->vm && !m->network.work.busy)
		machine_free(m);
}

void machine_leave(struct machine *m, bool over)
{
	m->instance = NULL;
	if (m->awaits_bundle)
		issuer_forget(m->vms->config.issuer, m);
	m->awaits_bundle = false;
	loop_timer_stop(&m->patience);
	if (!over) {
		m->gate = gate_free(m->gate);
		m->vm = m->vm ? m->vm->driver->free(m->vm) : NULL;
	}
	machine_check_gone(m);
}

/* ---- its end ---- */

static void machine_on_console(void *userdata, const uint8_t *last, size_t len, uint64_t total,
			       const struct error *err)
{
	char console[MACHINE_CONSOLE_MAX] = "";
	struct machine *m = userdata;

	(void)total;
	if (!m->instance || !m->end[0])
		return;
	if (!err)
		vm_words(last, len, console, sizeof(console));
	machine_over(m, console);
}

static void machine_on_end(struct vm *vm, const struct vm_end *end, void *owner)
{
	struct machine *m = owner;

	m->vm = vm->driver->free(vm);
	if (!m->instance) {
		machine_check_gone(m);
		return;
	}
	(void)str_printf(m->end, sizeof(m->end), "%.120s%s%.120s", end->text,
			 end->words[0] ? ": " : "", end->words);
	/* What it was told to do needs no reason. */
	if (m->instance->state == INSTANCE_STOPPING || !m->gate ||
	    gate_console(m->gate, machine_on_console, m) < 0)
		machine_over(m, "");
	else
		loop_timer_set(&m->patience, MACHINE_CONSOLE_PATIENCE);
}

static void machine_on_panic(struct vm *vm, void *owner)
{
	struct machine *m = owner;

	(void)vm;
	if (m->instance)
		log_warn("the kernel of a guest has panicked",
			 LOG_STR("instance", m->instance->path));
}

static const struct vm_events machine_vm_events = {
	.on_panic = machine_on_panic,
	.on_end = machine_on_end,
};

void machine_kill(struct machine *m)
{
	if (m->vm)
		m->vm->driver->kill(m->vm);
}

/* ---- what its gate tells ---- */

static void machine_on_gate(void *userdata, enum gate_state state, const char *text)
{
	struct machine *m = userdata;
	char reason[MACHINE_TEXT_MAX];

	if (state != GATE_FAILED || !m->instance)
		return;
	(void)str_printf(reason, sizeof(reason), "its gate cannot go on: %.200s", text);
	instance_break(m->instance, reason);
}

static void machine_take_ready(struct machine *m, const char *kernel)
{
	struct instance *i = m->instance;
	struct error err = ERROR_INIT;

	if (str_eq(i->kernel, kernel))
		return;
	(void)str_copy(i->kernel, sizeof(i->kernel), kernel);
	if (i->all->config.save(i->all->config.userdata, i, &err) < 0)
		log_error("cannot record an instance", LOG_STR("instance", i->path), LOG_ERR(&err));
}

static void machine_on_frame(void *userdata, const uint8_t *frame, size_t len)
{
	struct machine *m = userdata;
	struct error err = ERROR_INIT;
	char reason[MACHINE_TEXT_MAX];
	struct bootmsg msg;

	if (!m->instance)
		return;
	if (bootmsg_next(&msg, frame, len, &err) <= 0)
		(void)str_printf(reason, sizeof(reason), "what the guest says is no frame: %.180s",
				 error_text(&err));
	else if (msg.type == BOOTMSG_READY) {
		machine_take_ready(m, msg.ready.kernel);
		return;
	} else if (msg.type == BOOTMSG_FAILED)
		(void)str_printf(reason, sizeof(reason), "the guest cannot go on: %.180s",
				 msg.failed.text);
	else
		(void)str_copy(reason, sizeof(reason), "the guest says what only a node may say");
	instance_break(m->instance, reason);
}

static void machine_on_notice(void *userdata, const char *text)
{
	const struct machine *m = userdata;

	if (m->instance)
		log_warn("a gate has refused a connection", LOG_STR("instance", m->instance->path),
			 LOG_STR("reason", text));
}

static void machine_on_gate_end(void *userdata, const struct error *err)
{
	struct machine *m = userdata;
	char reason[MACHINE_TEXT_MAX];

	m->gate = gate_free(m->gate);
	if (!m->instance) {
		machine_check_gone(m);
		return;
	}
	if (m->end[0]) {
		machine_over(m, "");
		return;
	}
	(void)str_printf(reason, sizeof(reason), "its gate has ended: %.200s",
			 err ? error_text(err) : "without a word");
	instance_break(m->instance, reason);
}

static const struct gate_events machine_gate_events = {
	.on_state = machine_on_gate,
	.on_frame = machine_on_frame,
	.on_notice = machine_on_notice,
	.on_end = machine_on_gate_end,
};

static struct gate_config machine_gate_config(const struct machine *m)
{
	return (struct gate_config){ .loop = m->vms->config.loop,
				     .issuer = m->vms->config.issuer,
				     .dir_fd = m->instance->dir_fd,
				     .instance = m->instance->id,
				     .life = m->vms->config.certificate_life };
}

/* ---- making ---- */

/* The certificates of a bundle, one behind the other: each is a SEQUENCE with a length of two
 * bytes. */
static int machine_split(const struct machine *m, struct bootmsg_list *ret)
{
	size_t at = 0;

	ret->n = 0;
	while (at < m->bundle_len) {
		const uint8_t *der = m->bundle + at;
		size_t left = m->bundle_len - at, len;

		if (left < 4 || der[0] != 0x30 || der[1] != 0x82 || ret->n == BOOTMSG_BUNDLE_MAX)
			return -EBADMSG;
		len = 4 + ((size_t)der[2] << 8 | der[3]);
		if (len > left)
			return -EBADMSG;
		ret->item[ret->n++] = (struct bootmsg_blob){ der, len };
		at += len;
	}
	return ret->n > 0 ? 0 : -EBADMSG;
}

static int machine_random(void *data, size_t len, struct error *err)
{
	return getrandom(data, len, 0) == (ssize_t)len
		       ? 0
		       : error_set(err, -EIO, "draw random bytes for a guest");
}

/* What the guest is told; its length. */
static int machine_boot_frame(struct machine *m, const struct gate_start *start,
			      uint8_t frame[BOOTMSG_FRAME_MAX], struct error *err)
{
	const struct segment_plan *plan = &m->network.plan;
	char node[SPIFFE_SIZE], own[SPIFFE_SIZE];
	const struct instance *i = m->instance;
	uint8_t entropy[MACHINE_ENTROPY];
	struct bootmsg msg = {
		.type = BOOTMSG_BOOT,
		.boot = { .entropy = { entropy, sizeof(entropy) },
			  .wall_clock_ns = clock_real(),
			  .hostname = name_last(i->path),
			  .title = i->path,
			  .instance_id = i->id,
			  .prefix = plan->guest.length,
			  .mtu = plan->mtu ? plan->mtu : MACHINE_MTU,
			  .parent_id = node,
			  .own_id = own },
	};
	int r;

	memcpy(msg.boot.address, plan->guest.bytes, sizeof(msg.boot.address));
	memcpy(msg.boot.gateway, plan->node.bytes, sizeof(msg.boot.gateway));
	memcpy(msg.boot.mac, plan->guest_mac, sizeof(msg.boot.mac));
	memcpy(msg.boot.token, start->token, sizeof(msg.boot.token));
	r = machine_random(entropy, sizeof(entropy), err);
	if (r == 0)
		r = issuer_node_id(m->vms->config.issuer, node, err);
	if (r == 0)
		r = issuer_instance_id(m->vms->config.issuer, i->id, own, err);
	if (r < 0)
		return r;
	r = machine_split(m, &msg.boot.bundle);
	if (r < 0)
		return error_set(err, r, "what a guest is to trust");
	return bootmsg_encode(&msg, frame, err);
}

/* The two ends of what lies between gate and machine. */
struct machine_lines {
	int boot[2], console[2]; /* the gate's, the machine's */
};

static void machine_lines_done(struct machine_lines *l)
{
	for (int n = 0; n < 2; n++) {
		l->boot[n] = fd_close(l->boot[n]);
		l->console[n] = fd_close(l->console[n]);
	}
}

static int machine_lines_open(struct machine_lines *l, struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->boot) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->console) < 0)
		return error_set(err, -errno, "make the lines of a machine");
	return 0;
}

static int machine_start_gate(struct machine *m, const struct machine_lines *lines,
			      struct error *err)
{
	const struct gate_config config = machine_gate_config(m);
	struct gate_start start = {
		.program = m->vms->config.gate_program,
		.title = m->instance->path,
		.net_fd = m->network.made.ns_fd,
		.boot_fd = lines->boot[0],
		.console_fd = lines->console[0],
		.uid = m->uid + 1,
		.gid = m->uid + 1,
		.port = GATE_PORT,
	};
	_cleanup_(buf_done) struct buf frame = BUF_INIT;
	_cleanup_fd_ int leaf_fd = -1;
	uint8_t *room;
	size_t len;
	int r;

	memcpy(start.address, m->network.plan.guest.bytes, sizeof(start.address));
	leaf_fd = cgroup_make(m->instance->cgroup_fd, "gate", err);
	if (leaf_fd < 0)
		return leaf_fd;
	start.cgroup_fd = leaf_fd;
	r = machine_random(start.token, sizeof(start.token), err);
	if (r < 0)
		return r;
	r = buf_reserve(&frame, BOOTMSG_FRAME_MAX, &room);
	if (r < 0)
		return error_set(err, r, "what a guest is told");
	r = machine_boot_frame(m, &start, room, err);
	if (r < 0)
		return r;
	len = (size_t)r;
	r = gate_start(&m->gate, &config, &start, &machine_gate_events, m, err);
	if (r == 0) {
		r = gate_send(m->gate, room, len);
		if (r < 0)
			(void)error_set(err, r, "tell a guest who it is");
	}
	explicit_bzero(room, len);
	explicit_bzero(start.token, sizeof(start.token));
	return r;
}

/* The words of a set, in place. */
static size_t machine_words(char *text, const char *words[VM_WORDS_MAX + 1])
{
	char *rest = NULL;
	size_t n = 0;

	for (char *word = strtok_r(text, " ", &rest); word && n < VM_WORDS_MAX;
	     word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	words[n] = NULL;
	return n;
}

static int machine_clone(struct machine *m, struct guest_set *set,
			 const struct machine_lines *lines, int leaf_fd, struct error *err)
{
	const struct vms_config *c = &m->vms->config;
	const struct vm_port port = { .name = BOOTMSG_PORT, .fd = lines->boot[1] };
	struct vm_nic nic = { .tap_fd = m->network.made.tap_fd };
	const char *words[VM_WORDS_MAX + 1];
	char why[MACHINE_TEXT_MAX];
	struct vm_spec spec;

	memcpy(nic.mac, m->network.plan.guest_mac, sizeof(nic.mac));
	(void)machine_words(set->info.desc.words, words);
	vm_spec_init(&spec);
	spec.title = m->instance->path;
	spec.accel =
		c->is_fast(c->userdata, why, sizeof(why)) ? VM_ACCEL_HARDWARE : VM_ACCEL_EMULATED;
	spec.memory_mib = MAX((unsigned)(c->memory >> 20), set->info.desc.memory_mib);
	spec.cpus = c->cpus;
	spec.kernel_fd = set->kernel_fd;
	spec.initrd_fd = set->initrd_fd;
	spec.words = words;
	spec.n_slots = MACHINE_SLOTS;
	spec.nics = &nic;
	spec.n_nics = 1;
	spec.ports = &port;
	spec.n_ports = 1;
	spec.console_fd = lines->console[1];
	spec.dir_fd = m->instance->dir_fd;
	spec.cgroup_fd = leaf_fd;
	spec.net_ns_fd = m->network.made.ns_fd;
	spec.uid = m->uid;
	spec.gid = m->uid;
	return c->driver->start(&m->vm, c->loop, &spec, &machine_vm_events, m, err);
}

static int machine_start_vm(struct machine *m, const struct machine_lines *lines, struct error *err)
{
	const struct vms_config *c = &m->vms->config;
	struct guest_set set = GUEST_SET_INIT;
	_cleanup_fd_ int leaf_fd = -1;
	int r;

	leaf_fd = cgroup_make(m->instance->cgroup_fd, "vmm", err);
	if (leaf_fd < 0)
		return leaf_fd;
	r = guest_set_open(&set, c->root_fd, c->guest, err);
	if (r == 0)
		r = machine_clone(m, &set, lines, leaf_fd, err);
	guest_set_done(&set);
	return r;
}

/* The process that it ends with, for whoever asks whether that is still there. */
static int machine_take_process(struct machine *m, struct error *err)
{
	struct instance *i = m->instance;
	int r;

	i->pid = m->vm->driver->pid(m->vm);
	r = pidfd_of(i->pid);
	if (r < 0)
		return error_set(err, r, "watch the machine of %s", i->path);
	i->pidfd = r;
	(void)process_start_time(-1, i->pid, &i->start_time);
	return 0;
}

static int machine_start(struct machine *m, struct error *err)
{
	_cleanup_(machine_lines_done) struct machine_lines lines = { { -1, -1 }, { -1, -1 } };
	int r;

	r = machine_lines_open(&lines, err);
	if (r == 0)
		r = machine_start_gate(m, &lines, err);
	if (r == 0)
		r = machine_start_vm(m, &lines, err);
	if (r == 0)
		r = machine_take_process(m, err);
	segment_done(&m->network.made);
	return r;
}

/* Goes on as soon as all that it needs is here. */
static void machine_go_on(struct machine *m)
{
	struct instance *i = m->instance;
	struct error err = ERROR_INIT;

	if (m->awaits_bundle || m->network.work.busy || i->told_end || i->broken)
		return;
	if (machine_start(m, &err) < 0)
		instance_break(i, error_text(&err));
	else
		instance_made(i);
}

static void machine_on_bundle(void *userdata, const struct gate_bytes *bytes,
			      const struct error *err)
{
	struct machine *m = userdata;

	m->awaits_bundle = false;
	if (!err) {
		m->bundle = malloc(bytes->len);
		if (m->bundle)
			memcpy(m->bundle, bytes->data, bytes->len);
		m->bundle_len = bytes->len;
	}
	if (err)
		instance_break(m->instance, error_text(err));
	else if (!m->bundle)
		instance_break(m->instance, "out of memory for what its guest is to trust");
	else
		machine_go_on(m);
}

static void machine_on_network(struct segment_job *job)
{
	struct machine *m = container_of(job, struct machine, network);

	if (!m->instance)
		machine_check_gone(m);
	else if (job->r < 0)
		instance_break(m->instance, error_text(&job->err));
	else
		machine_go_on(m);
}

int machine_begin(struct machine *m, struct error *err)
{
	const struct vms_config *c = &m->vms->config;
	struct segment_plan plan = segment_plan_usual();
	int r;

	r = issuer_bundle(c->issuer, machine_on_bundle, m);
	if (r < 0)
		return error_set(err, r, "instance %s", m->instance->path);
	m->awaits_bundle = true;
	segment_job_start(&m->network, c->pool, &plan, machine_on_network);
	return 0;
}

/* ---- disks ---- */

static void machine_disk_answer(struct machine_disk *d, const struct error *err)
{
	peer_done_fn done = d->done;
	void *userdata = d->userdata;

	if (err)
		(void)vm_slots_drop(&d->machine->slots, d->slot);
	machine_disk_free(d);
	done(userdata, err);
}

/* Whoever asked for the same meanwhile is told the same. */
static void machine_on_disk(struct vm *vm, const struct error *err, void *data)
{
	struct machine_disk *d = data, *other;
	struct machine *m = d->machine;
	unsigned slot = d->slot;

	(void)vm;
	list_for_each (other, &m->disks, struct machine_disk, link)
		if (other != d && other->slot == slot)
			machine_disk_answer(other, err);
	machine_disk_answer(d, err);
}

static bool machine_disk_is_coming(const struct machine *m, unsigned slot)
{
	const struct machine_disk *d;

	list_for_each (d, &m->disks, struct machine_disk, link)
		if (d->slot == slot && d->first)
			return true;
	return false;
}

static void machine_disk_is_there(struct loop_defer *defer)
{
	machine_disk_answer(container_of(defer, struct machine_disk, defer), NULL);
}

int machine_put_disk(struct machine *m, const char *name, int fd,
		     char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
		     struct error *err)
{
	const struct vm_disk disk = { .fd = fd, .format = VM_DISK_RAW };
	struct machine_disk *d;
	int r;

	if (!m->vm)
		return error_refuse(err, ERROR_UNAVAILABLE, "its machine has ended");
	r = vm_slots_take(&m->slots, name, err);
	if (r < 0)
		return r;
	d = calloc(1, sizeof(*d));
	if (!d) {
		(void)vm_slots_drop(&m->slots, (unsigned)r);
		return error_set(err, -ENOMEM, "a disk");
	}
	*d = (struct machine_disk){
		.machine = m, .slot = (unsigned)r, .done = done, .userdata = userdata
	};
	d->first = m->slots.slot[d->slot].n_users == 1;
	loop_defer_init(&d->defer, m->vms->config.loop, machine_disk_is_there);
	list_init(&d->link);
	vm_slots_serial(d->slot, ret_serial);
	r = d->first ? m->vm->driver->put_disk(m->vm, d->slot, &disk, machine_on_disk, d, err) : 0;
	if (r < 0) {
		(void)vm_slots_drop(&m->slots, d->slot);
		machine_disk_free(d);
		return r;
	}
	if (!d->first && !machine_disk_is_coming(m, d->slot))
		loop_defer_schedule(&d->defer);
	list_add_tail(&m->disks, &d->link);
	return 0;
}

/* ---- an earlier life ---- */

/* The user that it has, so that nobody else gets it. */
static void machine_find_uid(struct machine *m)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *status = NULL;
	char name[64];
	const char *line;

	if (str_printf(name, sizeof(name), "/proc/%d/status", (int)m->instance->pid) < 0 ||
	    fd_read_file(AT_FDCWD, name, 16384, &b) < 0)
		return;
	status = buf_take_str(&b);
	line = status ? strstr(status, "\nUid:\t") : NULL;
	if (line)
		m->uid = (uid_t)strtoul(line + strlen("\nUid:\t"), NULL, 10);
}

int machine_adopt(struct machine *m, struct error *err)
{
	const struct gate_config config = machine_gate_config(m);
	const struct vms_config *c = &m->vms->config;
	_cleanup_fd_ int leaf_fd = -1;
	int r;

	leaf_fd = cgroup_make(m->instance->cgroup_fd, "vmm", err);
	if (leaf_fd < 0)
		return leaf_fd;
	r = c->driver->adopt(&m->vm, c->loop, config.dir_fd, leaf_fd, &machine_vm_events, m, err);
	if (r == -ESRCH)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "its machine ended while the daemon was away");
	if (r == 0)
		r = machine_take_process(m, err);
	if (r < 0)
		return r;
	machine_find_uid(m);
	/* What is in which is not recorded. */
	for (unsigned n = 0; n < m->slots.n; n++)
		(void)vm_slots_claim(&m->slots, n, "of an earlier life");
	r = gate_connect(&m->gate, &config, &machine_gate_events, m, err);
	return r < 0 ? error_wrap(err, r, "its gate") : 0;
}
