/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/plan_rules.h"

#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <sys/resource.h>

#include "base/macros.h"
#include "base/text/str.h"

/* What a plan says of the program's privileges and of its share of the machine. */

#define PLAN_SECCOMP_FLAGS                                                                         \
	(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW |    \
	 SECCOMP_FILTER_FLAG_TSYNC_ESRCH | PLAN_SECCOMP_WAIT_KILLABLE)
#define PLAN_SECCOMP_WAIT_KILLABLE (1U << 5) /* since 5.19 */
#define PLAN_NICE_MIN (-20)
#define PLAN_NICE_MAX 19

static bool plan_cap_sets_are_wrong(const struct isolate_plan *p)
{
	const struct isolate_cap_sets *c = p->cap_sets;

	/* As the kernel has it: what is effective or ambient is permitted. */
	return c &&
	       ((c->effective & ~c->permitted) || (c->ambient & ~(c->permitted & c->inheritable)));
}

static bool plan_keep_credentials_is_wrong(const struct isolate_plan *p)
{
	return p->keep_credentials && p->cap_sets;
}

static bool plan_seccomp_flags_are_wrong(const struct isolate_plan *p)
{
	return (p->seccomp_flags & ~PLAN_SECCOMP_FLAGS) || (p->seccomp_flags && !p->seccomp);
}

static bool plan_notify_is_wrong(const struct isolate_plan *p)
{
	return p->seccomp_notify && (!p->seccomp || p->at_fd < 0);
}

static bool plan_label_is_wrong(const char *label)
{
	return label && (!*label || strlen(label) > ISOLATE_LABEL_MAX || !str_is_clean(label));
}

static bool plan_apparmor_is_wrong(const struct isolate_plan *p)
{
	return plan_label_is_wrong(p->apparmor);
}

static bool plan_selinux_is_wrong(const struct isolate_plan *p)
{
	return plan_label_is_wrong(p->selinux);
}

static bool plan_selinux_mount_is_wrong(const struct isolate_plan *p)
{
	return plan_label_is_wrong(p->selinux_mount) ||
	       (p->selinux_mount && p->root != ISOLATE_ROOT_TREE);
}

static bool plan_rlimits_are_wrong(const struct isolate_plan *p)
{
	if (p->n_rlimits > ISOLATE_RLIMITS_MAX || (p->n_rlimits && !p->rlimits))
		return true;
	for (size_t i = 0; i < p->n_rlimits; i++) {
		const struct isolate_rlimit *l = &p->rlimits[i];

		if (l->resource < 0 || l->resource >= (int)RLIM_NLIMITS || l->soft > l->hard)
			return true;
		for (size_t k = 0; k < i; k++)
			if (p->rlimits[k].resource == l->resource)
				return true;
	}
	return false;
}

static bool plan_umask_is_wrong(const struct isolate_plan *p)
{
	return p->umask < -1 || p->umask > 0777;
}

static bool plan_sched_is_wrong(const struct isolate_plan *p)
{
	return p->sched && (p->sched->nice < PLAN_NICE_MIN || p->sched->nice > PLAN_NICE_MAX);
}

static bool plan_io_priority_is_wrong(const struct isolate_plan *p)
{
	if (p->io_priority == -1)
		return false;
	return p->io_priority < 0 ||
	       p->io_priority >= (IOPRIO_CLASS_IDLE + 1) << IOPRIO_CLASS_SHIFT ||
	       (p->io_priority & IOPRIO_PRIO_MASK) >= IOPRIO_BE_NR;
}

static bool plan_personality_is_wrong(const struct isolate_plan *p)
{
	return p->personality > ISOLATE_PERSONALITY_KEEP;
}

static bool plan_at_is_wrong(const struct isolate_plan *p)
{
	return p->at && p->root != ISOLATE_ROOT_KEEP && p->root != ISOLATE_ROOT_TREE;
}

const struct plan_rule plan_process_rules[] = {
	{ "cap_sets", plan_cap_sets_are_wrong,
	  "what is effective is permitted, what is ambient is permitted and inheritable" },
	{ "keep_credentials", plan_keep_credentials_is_wrong, "not together with cap_sets" },
	{ "seccomp_flags", plan_seccomp_flags_are_wrong, "an unknown one, or without a filter" },
	{ "seccomp_notify", plan_notify_is_wrong, "needs a filter and at_fd" },
	{ "apparmor", plan_apparmor_is_wrong, "1 to 1024 bytes without control characters" },
	{ "selinux", plan_selinux_is_wrong, "1 to 1024 bytes without control characters" },
	{ "selinux_mount", plan_selinux_mount_is_wrong,
	  "1 to 1024 bytes without control characters, for a tree" },
	{ "rlimits", plan_rlimits_are_wrong,
	  "at most 16, known, each once, the soft one not above the hard one" },
	{ "umask", plan_umask_is_wrong, "not from 0 to 0777" },
	{ "sched", plan_sched_is_wrong, "nice is not from -20 to 19" },
	{ "io_priority", plan_io_priority_is_wrong, "no such class or level" },
	{ "personality", plan_personality_is_wrong, "more than 32 bits" },
	{ "at", plan_at_is_wrong, "only with a tree, or the root kept" },
	{ NULL, NULL, NULL },
};
