/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "instance/model.h"
#include "isolate/cgroup/cgroup.h"
#include "provider/vm_size.h"
#include "provider/vm_template.h"
#include "vm/guest/guest_set.h"

/* The two ends of what lies between gate and machine. */
struct machine_lines {
	int boot[2], console[2]; /* the gate's, the machine's */
	int share;               /* of what serves its volumes; -1: it has none */
};

static void machine_lines_done(struct machine_lines *l)
{
	for (int n = 0; n < 2; n++) {
		l->boot[n] = fd_close(l->boot[n]);
		l->console[n] = fd_close(l->console[n]);
	}
	l->share = fd_close(l->share);
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
	const struct machine_seat seat = machine_seat(m);
	struct gate_start start = {
		.program = m->vms->config.gate_program,
		.title = seat.title,
		.net_fd = m->network.made.ns_fd,
		.boot_fd = lines->boot[0],
		.console_fd = lines->console[0],
		.uid = m->uid + 1,
		.gid = m->uid + 1,
		.port = GATE_PORT,
		.patience = m->vms->config.emulated ? GUESTGATE_PATIENCE_TWICE : NULL,
	};
	_cleanup_fd_ int leaf_fd = -1;
	int r;

	r = FAILPOINT("vm.gate");
	if (r < 0)
		return error_set(err, r, "start the gate of %s", seat.title);
	memcpy(start.address, m->network.plan.guest.bytes, sizeof(start.address));
	leaf_fd = cgroup_make(seat.cgroup_fd, "gate", err);
	if (leaf_fd < 0)
		return leaf_fd;
	start.cgroup_fd = leaf_fd;
	r = machine_random(m->token, sizeof(m->token), err);
	if (r < 0)
		return r;
	memcpy(start.token, m->token, sizeof(start.token));
	r = gate_start(&m->gate, &config, &start, m->vms->steps->gate_events, m, err);
	FAILPOINT_AFTER("vm.gate");
	if (r == 0 && m->nic.tap_fd >= 0)
		r = machine_nic_tell(&m->nic, m->gate, err);
	if (r == 0 && m->instance)
		r = machine_tell(m, err);
	explicit_bzero(start.token, sizeof(start.token));
	return r;
}

static int machine_clone(struct machine *m, struct guest_set *set,
			 const struct instance_machine *size, const struct machine_lines *lines,
			 int leaf_fd, struct error *err)
{
	const struct vms_config *c = &m->vms->config;
	const struct machine_seat seat = machine_seat(m);
	const struct vm_port port = { .name = BOOTMSG_PORT, .fd = lines->boot[1] };
	const struct vm_share share = { .tag = SHARE_TAG, .fd = lines->share };
	const struct segment *net = &m->network.made;
	struct vm_nic nics[MACHINE_NICS];
	const char *words[VM_WORDS_MAX + 1];
	struct vm_spec spec;
	int r;

	vms_plain_nics(net, nics);
	if (m->nic.tap_fd >= 0) {
		nics[1].tap_fd = m->nic.tap_fd;
		memcpy(nics[1].mac, m->nic.mac, sizeof(nics[1].mac));
	}
	(void)vms_plain_spec(m->vms, set, words, &spec);
	spec.title = seat.title;
	spec.memory_mib = (unsigned)(size->memory >> 20);
	spec.cpus = size->cpus;
	spec.nics = nics;
	spec.n_nics = m->nic.tap_fd >= 0 ? 2 : ARRAY_SIZE(nics);
	spec.ports = &port;
	spec.n_ports = 1;
	spec.shares = &share;
	spec.n_shares = share.fd >= 0;
	spec.console_fd = lines->console[1];
	spec.dir_fd = seat.dir_fd;
	spec.cgroup_fd = leaf_fd;
	spec.net_ns_fd = net->ns_fd;
	spec.uid = m->uid;
	spec.gid = m->uid;
	m->warm = !m->cold && templates_use(m->vms->templates, &spec);
	if (m->pooled && !m->warm)
		return error_refuse(err, ERROR_PRECONDITION, "there is no template of it");
	spec.held = m->pooled;
	r = FAILPOINT("vm.start");
	if (r < 0)
		return error_set(err, r, "start a machine");
	r = c->driver->start(&m->vm, c->loop, &spec, m->vms->steps->vm_events, m, err);
	FAILPOINT_AFTER("vm.start");
	return r;
}

static int machine_start_vm(struct machine *m, const struct machine_lines *lines, struct error *err)
{
	static const struct instance_size usual;
	struct instance_machine *size = m->pooled ? m->pool_ops->size(m) : &m->instance->machine;
	const struct instance_size *wish = m->pooled ? &usual : &m->instance->size;
	const struct vms_config *c = &m->vms->config;
	struct guest_set set = GUEST_SET_INIT;
	_cleanup_fd_ int leaf_fd = -1;
	int r;

	r = FAILPOINT("vm.group");
	if (r < 0)
		return error_set(err, r, "make the group of a machine");
	leaf_fd = cgroup_make(machine_seat(m).cgroup_fd, "vmm", err);
	if (leaf_fd < 0)
		return leaf_fd;
	FAILPOINT_AFTER("vm.group");
	r = guest_set_open(&set, c->root_fd, c->guest, err);
	if (r == 0)
		r = vm_size_plan(c, &set.info.desc, wish,
				 (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), size, err);
	if (r == 0)
		r = vm_size_wall(leaf_fd, size, err);
	if (r == 0)
		r = machine_clone(m, &set, size, lines, leaf_fd, err);
	guest_set_done(&set);
	return r;
}

int machine_take_process(struct machine *m, struct error *err)
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

int machine_start(struct machine *m, struct error *err)
{
	const struct share_config share = machine_share_config(m);
	_cleanup_(machine_lines_done) struct machine_lines lines = { { -1, -1 }, { -1, -1 }, -1 };
	int r;

	r = machine_lines_open(&lines, err);
	if (r == 0)
		r = machine_start_gate(m, &lines, err);
	if (r == 0 && m->instance && m->instance->volumes)
		r = vm_volumes_start(&m->volumes, &share, m->instance->cgroup_fd, &lines.share,
				     err);
	if (r == 0)
		r = machine_start_vm(m, &lines, err);
	if (r == 0 && m->instance)
		r = machine_take_process(m, err);
	if (r == 0 && m->warm && m->instance) {
		m->again_boot_fd = TAKE_FD(lines.boot[1]);
		m->again_console_fd = TAKE_FD(lines.console[1]);
	} else {
		segment_done(&m->network.made);
		machine_nic_done(&m->nic);
	}
	return r;
}

int machine_start_cold(struct machine *m, struct error *err)
{
	const struct machine_lines lines = { .boot = { -1, m->again_boot_fd },
					     .console = { -1, m->again_console_fd },
					     .share = -1 };
	struct instance *i = m->instance;
	int r;

	m->cold = true;
	i->pidfd = fd_close(i->pidfd);
	r = machine_start_vm(m, &lines, err);
	if (r == 0)
		r = machine_take_process(m, err);
	if (r == 0)
		r = i->all->config.save(i->all->config.userdata, i, err);
	machine_forget_lines(m);
	return r;
}
