/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <errno.h>

#include "base/log/log.h"
#include "instance/end.h"
#include "instance/link.h"
#include "instance/model.h"

/*
 * Theory of operation. A machine of the pool may be dead already when it is taken, and nobody knows
 * yet: a process that was sent SIGKILL lives until it runs. So the instance that took it goes on
 * with another machine, once, which is made as for those that found none waiting. It keeps its id,
 * its directory and its group, by which it is recorded and found again; what was in them is killed
 * at once, and its sockets are replaced by those of the next. Neither a word to a user nor a
 * process of one has been in the first: it ends when the instance is READY.
 */

static bool machine_is_replaceable(const struct machine *m)
{
	const struct instance *i = m->instance;

	return m->taken && i->state == INSTANCE_SPAWNING && !i->ended && !i->told_end && !i->broken;
}

/* The instance has none then. What is left of it goes when its processes are reaped. */
static void machine_abandon(struct machine *m)
{
	struct instance *i = m->instance;

	/* Not by their group: kernels (6.18) were seen to kill what is cloned into a group that was
	 * killed once. */
	if (m->vm)
		m->vm->driver->kill(m->vm);
	if (m->gate)
		gate_kill(m->gate);
	i->own = NULL;
	instance_unmade(i);
	machine_leave(m, true);
}

bool machine_again(struct machine *m, const char *reason)
{
	struct instance *i = m->instance;
	struct error err = ERROR_INIT;
	struct vms *v = m->vms;

	if (!machine_is_replaceable(m))
		return false;
	log_warn("a machine of the pool has died before it was of use, and another one is made",
		 LOG_STR("instance", i->path), LOG_STR("reason", reason));
	machine_abandon(m);
	m = machine_new(v, i);
	if (!m)
		(void)error_set(&err, -ENOMEM, "make another machine");
	else
		(void)machine_begin(m, &err);
	if (err.code)
		instance_fail(i, &err);
	return true;
}
