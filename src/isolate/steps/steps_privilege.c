/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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
	const struct isolate_plan *p = s->plan;
	uint64_t keep = p->cap_sets ? p->cap_sets->bounding : p->caps;

	if (p->keep_credentials)
		return 0;
	for (unsigned cap = 0; cap < 64; cap++)
		if (s->bounding & ~keep & ((uint64_t)1 << cap) &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return error_set(err, -errno, "capability %u", cap);
	if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != 0 && prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) < 0)
		return error_set(err, -errno, "securebits");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return error_set(err, -errno, "ambient capabilities");
	return 0;
}

/* The supplementary groups of the plan, each once; the primary group is the first of them unless
 * the plan's list is exact. Returns their number. */
static size_t steps_groups(const struct isolate_plan *p, gid_t groups[ISOLATE_GROUPS_MAX + 1])
{
	size_t n = 0;

	if (!p->groups_exact)
		groups[n++] = p->gid;
	for (size_t i = 0; i < p->n_groups; i++) {
		size_t at = 0;

		while (at < n && groups[at] != p->groups[i])
			at++;
		groups[at] = p->groups[i];
		n += at == n;
	}
	return n;
}

/*
 * Should: set the supplementary groups, with the primary one among them where the plan's list is
 * not exact (security.md A34), the group and the user, real, effective and saved. Must not: use
 * libc's calls, which would wait for the spawner's other threads; leave a way back.
 */
int isolate_step_user(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	gid_t groups[ISOLATE_GROUPS_MAX + 1];
	size_t n = steps_groups(p, groups);

	if (p->keep_credentials)
		return 0;
	if (p->cap_sets && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return error_set(err, -errno, "keep the capabilities");
	if (!p->deny_setgroups && syscall(SYS_setgroups, n, groups) < 0)
		return error_set(err, -errno, "setgroups");
	if (syscall(SYS_setresgid, p->gid, p->gid, p->gid) < 0)
		return error_set(err, -errno, "group %u", p->gid);
	if (syscall(SYS_setresuid, p->uid, p->uid, p->uid) < 0)
		return error_set(err, -errno, "user %u", p->uid);
	return 0;
}

static uint64_t steps_cap_join(const uint32_t low, const uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static int steps_capset(const struct isolate_cap_sets *sets, struct error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	for (unsigned i = 0; i < ARRAY_SIZE(data); i++) {
		data[i].permitted = (uint32_t)(sets->permitted >> 32 * i);
		data[i].effective = (uint32_t)(sets->effective >> 32 * i);
		data[i].inheritable = (uint32_t)(sets->inheritable >> 32 * i);
	}
	return syscall(SYS_capset, &head, data) < 0 ? error_set(err, -errno, "capset") : 0;
}

static int steps_cap_permitted(uint64_t *ret, struct error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &head, data) < 0)
		return error_set(err, -errno, "capget");
	*ret = steps_cap_join(data[0].permitted, data[1].permitted);
	return 0;
}

/* The plan's own sets. One that the spawner lacks is an error: it cannot be given. */
static int steps_cap_sets(const struct isolate_cap_sets *sets, struct error *err)
{
	uint64_t have = 0;
	int r = steps_cap_permitted(&have, err);

	if (r < 0)
		return r;
	if (sets->permitted & ~have)
		return error_refuse(err, ERROR_PRECONDITION,
				    "cap_sets: capability %d is not there to be given",
				    __builtin_ctzll(sets->permitted & ~have));
	r = steps_capset(sets, err);
	for (unsigned cap = 0; r >= 0 && cap < 64; cap++)
		if (sets->ambient & ((uint64_t)1 << cap) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			r = error_set(err, -errno, "ambient capability %u", cap);
	return r;
}

/*
 * Should: leave root the capabilities of the plan, and any other user none, inheritable none for
 * all; or give any user the plan's own sets. Must not: fail because "all" names more than the
 * spawner has itself.
 */
int isolate_step_caps(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	struct isolate_cap_sets sets = { .permitted = p->uid == 0 ? p->caps : 0 };
	uint64_t have = UINT64_MAX;
	int r = 0;

	if (p->keep_credentials)
		return 0;
	if (p->cap_sets)
		return steps_cap_sets(p->cap_sets, err);
	if (sets.permitted & ISOLATE_CAPS_OF_SPAWNER)
		r = steps_cap_permitted(&have, err);
	if (r < 0)
		return r;
	sets.permitted &= have;
	sets.effective = sets.permitted;
	return steps_capset(&sets, err);
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

static int steps_listener_send(int at_fd, int listener_fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = "" };
	char byte = ISOLATE_AT_SECCOMP;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &listener_fd, sizeof(int));
	return syscall(SYS_sendmsg, at_fd, &msg, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

static int steps_filter(const struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	unsigned flags = p->seccomp_flags;
	int r;

	if (!p->seccomp)
		return 0;
	if (p->seccomp_notify)
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	r = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, p->seccomp);
	if (r < 0)
		return error_set(err, -errno, "seccomp");
	if (!p->seccomp_notify)
		return 0;
	/* The listener closes with the exec, as the kernel makes it so. */
	r = steps_listener_send(s->at_fd, r);
	return r < 0 ? error_set(err, r, "send the listener") : 0;
}

/*
 * Should: set the filter while CAP_SYS_ADMIN is still there, for a program that may gain privilege.
 * Must not: come before a step that the filter refuses. What follows changes credentials, as the
 * program itself may want to; a filter that is older than a newer call does not know that.
 */
int isolate_step_seccomp_early(struct isolate_steps *s, struct error *err)
{
	return s->plan->no_new_privs ? 0 : steps_filter(s, err);
}

/*
 * Should: set the filter as the last act before the program.
 * Must not: set it twice.
 */
int isolate_step_seccomp(struct isolate_steps *s, struct error *err)
{
	return s->plan->no_new_privs ? steps_filter(s, err) : 0;
}
