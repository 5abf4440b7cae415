/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_share.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/process/thread.h"
#include "isolate/plan/notes.h"
#include "isolate/steps/rlimits.h"

#define STEPS_BITS_OF(a) (sizeof(a) * 8)

/*
 * Should: raise hard limits while that is possible, for a process that enters a user namespace.
 * Must not: lower one yet, which the steps to come may need.
 */
int isolate_step_rlimits_raise(struct isolate_steps *s, struct error *err)
{
	return s->plan->ns[ISOLATE_NS_USER] == ISOLATE_JOIN || s->plan->user_fd >= 0
		       ? rlimits_raise(0, s->plan, err)
		       : 0;
}

/*
 * Should: set every limit, so that none of the spawner's is inherited by accident.
 * Must not: fail for want of the privilege to raise a default one; but does so for one that the
 * plan names.
 */
int isolate_step_rlimits(struct isolate_steps *s, struct error *err)
{
	return rlimits_set(s->plan, err);
}

static int steps_share_failed(const char *member, struct error *err)
{
	if (errno == EPERM)
		return error_refuse(err, ERROR_PRECONDITION, "%s: needs CAP_SYS_NICE", member);
	return error_set(err, -errno, "%s", member);
}

static int steps_sched(const struct isolate_sched *sched, struct error *err)
{
	struct thread_sched attr = { .size = sizeof(attr),
				     .policy = sched->policy,
				     .flags = sched->flags,
				     .nice = sched->nice,
				     .priority = sched->priority,
				     .runtime = sched->runtime,
				     .deadline = sched->deadline,
				     .period = sched->period };

	return syscall(SYS_sched_setattr, 0, &attr, 0) < 0 ? steps_share_failed("sched", err) : 0;
}

/* The kernel takes a list and uses what there is of it. */
static int steps_cpus(const struct isolate_plan *p, struct error *err)
{
	uint64_t have[ARRAY_SIZE(p->cpus->bits)] = { 0 };

	if (syscall(SYS_sched_setaffinity, 0, sizeof(p->cpus->bits), p->cpus->bits) < 0) {
		if (errno == EINVAL)
			return error_refuse(err, ERROR_PRECONDITION,
					    "cpus: this host has none of these processors here");
		return steps_share_failed("cpus", err);
	}
	if (p->notes && syscall(SYS_sched_getaffinity, 0, sizeof(have), have) < 0)
		return error_set(err, -errno, "cpus: read them back");
	notes_add_missing(p->notes, ISOLATE_NOTE_CPUS, p->cpus->bits, have, ARRAY_SIZE(have));
	return 0;
}

/* The kernel counts one bit more than there are. Nodes that are relative mean others than they
 * name. */
static int steps_mempolicy(const struct isolate_plan *p, struct error *err)
{
	const struct isolate_mempolicy *m = p->mempolicy;
	uint64_t have[ARRAY_SIZE(m->nodes)] = { 0 };

	if (syscall(SYS_set_mempolicy, m->mode | (int)m->flags, m->nodes,
		    STEPS_BITS_OF(m->nodes) + 1) < 0)
		return steps_share_failed("mempolicy", err);
	if (!p->notes || m->flags & MPOL_F_RELATIVE_NODES)
		return 0;
	if (syscall(SYS_get_mempolicy, NULL, have, STEPS_BITS_OF(have) + 1, NULL,
		    MPOL_F_MEMS_ALLOWED) < 0)
		return error_set(err, -errno, "mempolicy: read the nodes");
	notes_add_missing(p->notes, ISOLATE_NOTE_MEMPOLICY, m->nodes, have, ARRAY_SIZE(have));
	return 0;
}

/*
 * Should: set processors, scheduler, memory policy, I/O priority and umask where the plan names
 * them. Must not: come behind the loss of CAP_SYS_NICE; nor the processors behind the scheduler,
 * since the kernel lets no SCHED_DEADLINE choose them.
 */
int isolate_step_share(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	int r = 0;

	if (p->umask >= 0)
		(void)umask((mode_t)p->umask);
	if (p->cpus)
		r = steps_cpus(p, err);
	if (r == 0 && p->mempolicy)
		r = steps_mempolicy(p, err);
	if (r == 0 && p->io_priority >= 0 &&
	    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, p->io_priority) < 0)
		return steps_share_failed("io_priority", err);
	return r == 0 && p->sched ? steps_sched(p->sched, err) : r;
}

/*
 * Should: give the program the execution domain of the plan.
 * Must not: come before what allocates or maps for itself (ADDR_NO_RANDOMIZE and its like).
 */
int isolate_step_personality(struct isolate_steps *s, struct error *err)
{
	if (s->plan->personality != ISOLATE_PERSONALITY_KEEP &&
	    personality(s->plan->personality) < 0)
		return error_set(err, -errno, "personality");
	return 0;
}
