/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps_share.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <stdint.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/thread.h"
#include "isolate/rlimits.h"

#define STEPS_BITS_OF(a) (sizeof(a) * 8)

/*
 * Should: raise hard limits while that is possible, for a process that enters a user namespace.
 * Must not: lower one yet, which the steps to come may need.
 */
int isolate_step_rlimits_raise(struct isolate_steps *s, struct error *err)
{
	return s->plan->ns[ISOLATE_NS_USER] == ISOLATE_JOIN ? rlimits_raise(0, s->plan, err) : 0;
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

/*
 * Should: set processors, scheduler, memory policy, I/O priority and umask where the plan names
 * them. Must not: come behind the loss of CAP_SYS_NICE; nor the processors behind the scheduler,
 * since the kernel lets no SCHED_DEADLINE choose them.
 */
int isolate_step_share(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	const struct isolate_mempolicy *m = p->mempolicy;
	int r;

	if (p->umask >= 0)
		(void)umask((mode_t)p->umask);
	if (p->cpus && syscall(SYS_sched_setaffinity, 0, sizeof(p->cpus->bits), p->cpus->bits) < 0)
		return steps_share_failed("cpus", err);
	/* The kernel counts one bit more than there are. */
	if (m && syscall(SYS_set_mempolicy, m->mode | (int)m->flags, m->nodes,
			 STEPS_BITS_OF(m->nodes) + 1) < 0)
		return steps_share_failed("mempolicy", err);
	if (p->io_priority >= 0 &&
	    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, p->io_priority) < 0)
		return steps_share_failed("io_priority", err);
	r = p->sched ? steps_sched(p->sched, err) : 0;
	return r;
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
