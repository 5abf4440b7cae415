/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "gates/issuer.h"
#include "instance/end.h"
#include "instance/link.h"
#include "instance/model.h"

/*
 * Theory of operation. What the guest trusts and its network are asked for at once; when both are
 * here, gate and machine are started, with a socket pair for the boot port and one for the console
 * between them, and the gate is given BOOT for the guest. From then on rpc.sock is served: hello
 * waits there until the guest has enrolled.
 *
 * Where it is to have volumes, what serves them is started before the machine, which gets its end
 * of their connection (vm_volumes.h).
 *
 * The end of the machine is told by its driver. Then the gate is asked for the end of the console,
 * which is waited for a moment, and the instance has ended with that in its reason. Its group is
 * killed then, and the gate with it: the machine's object is freed when both are reaped.
 */

/* The last that may have been waited for. */
static void machine_on_idle(struct vm_volumes *v)
{
	machine_check_gone(container_of(v, struct machine, volumes));
}

static bool machine_has_uid(const struct vms *v, uid_t uid)
{
	const struct machine *m;

	list_for_each (m, &v->machines, struct machine, link)
		if (m->uid == uid)
			return true;
	return false;
}

static void machine_on_nic(struct machine_nic *nic)
{
	struct machine *m = container_of(nic, struct machine, nic);

	if (!m->instance)
		machine_check_gone(m);
	else if (nic->r < 0)
		instance_fail(m->instance, &nic->err);
	else
		machine_go_on(m);
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
	m->cold = i && i->choice.cold;
	m->again_boot_fd = m->again_console_fd = -1;
	list_init(&m->disks);
	list_init(&m->leaving);
	for (unsigned n = 0; n < MACHINE_SLOTS; n++)
		m->files[n].fd = -1;
	m->network = (struct segment_job)SEGMENT_JOB_INIT;
	machine_nic_init(&m->nic, machine_on_nic);
	loop_timer_init(&m->patience, v->config.loop, v->steps->on_patience);
	loop_timer_init(&m->button, v->config.loop, v->steps->on_button);
	machine_beat_init(m);
	if (i)
		machine_beat_start(m);
	vm_volumes_init(&m->volumes, v->config.loop, v->steps->on_volumes_lost, machine_on_idle);
	list_init(&m->link);
	list_add_tail(&v->machines, &m->link);
	if (i)
		i->own = m;
	return m;
}

struct machine_seat machine_seat(const struct machine *m)
{
	const struct instance *i = m->instance;

	if (m->pooled)
		return m->pool_ops->seat(m);
	return (struct machine_seat){
		.id = i->id, .title = i->path, .dir_fd = i->dir_fd, .cgroup_fd = i->cgroup_fd
	};
}

struct share_config machine_share_config(const struct machine *m)
{
	return (struct share_config){ .loop = m->vms->config.loop,
				      .pool = m->vms->config.pool,
				      .program = SHARE_PROGRAM,
				      .proc_fd = m->vms->proc_fd,
				      .cgroup_fd = -1,
				      .dir_fd = machine_seat(m).dir_fd };
}

struct gate_config machine_gate_config(const struct machine *m)
{
	const struct machine_seat seat = machine_seat(m);

	return (struct gate_config){ .loop = m->vms->config.loop,
				     .issuer = m->vms->config.issuer,
				     .dir_fd = seat.dir_fd,
				     .instance = seat.id,
				     .life = m->vms->config.certificate_life };
}

void machine_forget_lines(struct machine *m)
{
	m->warm = false;
	m->again_boot_fd = fd_close(m->again_boot_fd);
	m->again_console_fd = fd_close(m->again_console_fd);
	segment_done(&m->network.made);
}

void machine_free(struct machine *m)
{
	assert(!m->network.work.busy || !m->instance);
	if (m->awaits_bundle)
		issuer_forget(m->vms->config.issuer, m);
	loop_timer_done(&m->patience);
	loop_timer_done(&m->button);
	machine_beat_done(m);
	machine_drop_disks(m);
	vm_volumes_done(&m->volumes);
	m->gate = gate_free(m->gate);
	m->vm = m->vm ? m->vm->driver->free(m->vm) : NULL;
	machine_forget_lines(m);
	machine_nic_done(&m->nic);
	explicit_bzero(m->token, sizeof(m->token));
	free(m->bundle);
	list_remove(&m->link);
	free(m);
}

void machine_check_gone(struct machine *m)
{
	if (m->instance || m->gate || m->vm || m->network.work.busy || m->nic.work.busy ||
	    !vm_volumes_are_idle(&m->volumes))
		return;
	if (m->pooled)
		m->pool_ops->gone(m);
	else
		machine_free(m);
}

bool machine_has_gone(const struct machine *m)
{
	return m->pooled ? m->pool_ops->is_ending(m) : !m->instance;
}

void machine_fail(struct machine *m, const struct error *err)
{
	if (m->pooled)
		m->pool_ops->broken(m, error_text(err));
	else if (!m->vms->steps->again(m, error_text(err)))
		instance_fail(m->instance, err);
}

void machine_break(struct machine *m, const char *reason)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_UNAVAILABLE, "%s", reason);
	machine_fail(m, &err);
}

void machine_leave(struct machine *m, bool over)
{
	if (over && m->has_nic)
		machine_nic_remove(m->vms->config.pool, m->instance->id);
	m->instance = NULL;
	if (m->awaits_bundle)
		issuer_forget(m->vms->config.issuer, m);
	m->awaits_bundle = false;
	loop_timer_stop(&m->patience);
	loop_timer_stop(&m->button);
	machine_beat_stop(m);
	vm_volumes_rest(&m->volumes);
	if (!over) {
		vm_volumes_done(&m->volumes);
		m->gate = gate_free(m->gate);
		m->vm = m->vm ? m->vm->driver->free(m->vm) : NULL;
	}
	machine_check_gone(m);
}

void machine_go_on(struct machine *m)
{
	struct instance *i = m->instance;
	struct error err = ERROR_INIT;

	if (m->awaits_bundle || m->network.work.busy || m->nic.work.busy ||
	    (i && (i->told_end || i->broken)))
		return;
	if (m->vms->steps->start(m, &err) < 0)
		machine_fail(m, &err);
	else if (i)
		instance_made(i);
}

static void machine_on_bundle(void *userdata, const struct gate_bytes *bytes,
			      const struct error *err)
{
	struct error own = ERROR_INIT;
	struct machine *m = userdata;

	m->awaits_bundle = false;
	if (!err) {
		m->bundle = malloc(bytes->len);
		if (m->bundle)
			memcpy(m->bundle, bytes->data, bytes->len);
		m->bundle_len = bytes->len;
	}
	if (!err && !m->bundle) {
		(void)error_set(&own, -ENOMEM, "keep what its guest is to trust");
		err = &own;
	}
	if (err)
		machine_fail(m, err);
	else
		machine_go_on(m);
}

static void machine_nic_begin(struct machine *m)
{
	m->has_nic = true;
	machine_nic_start(&m->nic, m->vms->config.pool, m->network.made.ns_fd, &m->instance->nic,
			  m->instance->id);
}

static void machine_on_network(struct segment_job *job)
{
	struct machine *m = container_of(job, struct machine, network);

	FAILPOINT_AFTER("vm.network");
	if (machine_has_gone(m))
		machine_check_gone(m);
	else if (job->r < 0)
		machine_fail(m, &job->err);
	else if (m->instance && m->instance->nic.bridge[0])
		machine_nic_begin(m);
	else
		machine_go_on(m);
}

int machine_begin(struct machine *m, struct error *err)
{
	const struct vms_config *c = &m->vms->config;
	struct segment_plan plan = segment_plan_usual();
	int r;

	/* Also where no pod of it is on a network: so it can go on from a template. */
	plan.has_pod = !m->instance || !m->instance->nic.bridge[0];
	r = FAILPOINT("vm.network");
	if (r == 0)
		r = issuer_bundle(c->issuer, machine_on_bundle, m);
	if (r < 0)
		return error_set(err, r, "instance %s", machine_seat(m).title);
	m->awaits_bundle = true;
	segment_job_start(&m->network, c->pool, &plan, machine_on_network);
	return 0;
}
