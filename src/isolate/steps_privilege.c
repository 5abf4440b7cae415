/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps_privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

/*
 * Should: take each capability that the plan does not name out of the bounding set, and give the
 * securebits and the ambient set their defaults.
 * Must not: rely on the number of capabilities that this program was built with: the kernel says
 * where they end.
 */
int isolate_step_bounding(struct isolate_steps *s, struct error *err)
{
	for (unsigned cap = 0; cap < 64; cap++) {
		if (s->plan->caps & ((uint64_t)1 << cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				break;
			return error_set(err, -errno, "capability %u", cap);
		}
	}
	if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != 0 && prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) < 0)
		return error_set(err, -errno, "securebits");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return error_set(err, -errno, "ambient capabilities");
	return 0;
}

/*
 * Should: set the supplementary groups, always with the primary one among them (security.md A34),
 * the group and the user, real, effective and saved. Must not: use libc's calls, which would wait
 * for the spawner's other threads; leave a way back.
 */
int isolate_step_user(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	gid_t groups[ISOLATE_GROUPS_MAX + 1] = { p->gid };
	size_t n = 1;

	for (size_t i = 0; i < p->n_groups; i++)
		if (p->groups[i] != p->gid)
			groups[n++] = p->groups[i];
	if (syscall(SYS_setgroups, n, groups) < 0)
		return error_set(err, -errno, "setgroups");
	if (syscall(SYS_setresgid, p->gid, p->gid, p->gid) < 0)
		return error_set(err, -errno, "group %u", p->gid);
	if (syscall(SYS_setresuid, p->uid, p->uid, p->uid) < 0)
		return error_set(err, -errno, "user %u", p->uid);
	return 0;
}

/*
 * Should: leave root the capabilities of the plan, and any other user none; inheritable none for
 * all. Must not: fail because "all" names more than the spawner has itself.
 */
int isolate_step_caps(struct isolate_steps *s, struct error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	uint64_t want = s->plan->uid == 0 ? s->plan->caps : 0;

	if (want == ISOLATE_CAPS_ALL) {
		if (syscall(SYS_capget, &head, data) < 0)
			return error_set(err, -errno, "capget");
		want = data[0].permitted | (uint64_t)data[1].permitted << 32;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(data); i++) {
		data[i].permitted = (uint32_t)(want >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data) < 0)
		return error_set(err, -errno, "capset");
	return 0;
}

/*
 * Should: forbid setuid programs and file capabilities to give anything.
 * Must not: be forgotten where a filter follows that needs it (the kernel refuses that one).
 */
int isolate_step_no_new_privs(struct isolate_steps *s, struct error *err)
{
	if (s->plan->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, -errno, "prctl");
	return 0;
}

static int steps_filter(const struct sock_fprog *filter, struct error *err)
{
	if (filter && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) < 0)
		return error_set(err, -errno, "seccomp");
	return 0;
}

/*
 * Should: set the filter while CAP_SYS_ADMIN is still there, for a program that may gain privilege.
 * Must not: come before a step that the filter refuses. All that follow are among the allowed calls
 * of a container's filter.
 */
int isolate_step_seccomp_early(struct isolate_steps *s, struct error *err)
{
	return s->plan->no_new_privs ? 0 : steps_filter(s->plan->seccomp, err);
}

/*
 * Should: set the filter as the last act before the program.
 * Must not: set it twice.
 */
int isolate_step_seccomp(struct isolate_steps *s, struct error *err)
{
	return s->plan->no_new_privs ? steps_filter(s->plan->seccomp, err) : 0;
}
