/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps_ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/rootfd.h"
#include "base/sysio.h"

/* What rt_sigaction() takes, with all members that we leave at 0 behind the handler. */
struct steps_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/*
 * Should: give every signal its default action. CLONE_CLEAR_SIGHAND has done so for handlers; what
 * the spawner ignores (SIGPIPE) stays ignored without this, and across the exec. Must not: unblock
 * anything yet.
 */
int isolate_step_signals(struct isolate_steps *s, struct error *err)
{
	struct steps_sigaction action = { .handler = SIG_DFL };

	/* The raw call, since libc keeps two signals to itself. EINVAL: SIGKILL and SIGSTOP. */
	for (int sig = 1; sig < _NSIG; sig++)
		if (syscall(SYS_rt_sigaction, sig, &action, NULL, sizeof(action.mask)) < 0 &&
		    errno != EINVAL)
			return error_set(err, -errno, "signal %d", sig);
	return 0;
}

/*
 * Should: start the program with no signal blocked.
 * Must not: come before the last step that must not be interrupted halfway.
 */
int isolate_step_unblock(struct isolate_steps *s, struct error *err)
{
	uint64_t none = 0;

	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none)) < 0)
		return error_set(err, -errno, "rt_sigprocmask");
	return 0;
}

static int steps_oom_read(int fd, int *ret)
{
	char text[16];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	*ret = (int)strtol(text, NULL, 10);
	return 0;
}

static int steps_oom_write(int fd, int value)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", value);

	return pwrite(fd, text, (size_t)len, 0) < 0 ? -errno : 0;
}

/*
 * Should: set the score and see it taken; where the kernel refuses to lower it (without
 * CAP_SYS_RESOURCE), come as low as 0 or stay.
 * Must not: write to any /proc that a container could have mounted something in (security.md A19):
 * it is the spawner's private mount, in which "self" is this process under the spawner's number.
 */
int isolate_step_oom(struct isolate_steps *s, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open(s->proc_fd, "self/oom_score_adj", O_RDWR, 0);
	int want = s->plan->oom_score_adj, now = 0;
	int r;

	if (fd < 0)
		return error_set(err, fd, "open oom_score_adj");
	r = steps_oom_read(fd, &now);
	if (r < 0)
		return error_set(err, r, "read oom_score_adj");
	if (now == want)
		return 0;

	r = steps_oom_write(fd, want);
	if (r == -EACCES && now > 0 && want < 0) {
		want = 0;
		r = steps_oom_write(fd, want);
	}
	if (r == -EACCES)
		return 0;
	if (r < 0)
		return error_set(err, r, "write oom_score_adj");
	r = steps_oom_read(fd, &now);
	if (r < 0 || now != want)
		return error_set(err, r < 0 ? r : -EIO, "read oom_score_adj back");
	return 0;
}

/* In this order: the mount namespace is the last, since it changes root and working directory. The
 * pid namespace is not there, since a process is born in it. */
static const struct {
	enum isolate_ns kind;
	int flag;
	const char *name;
} steps_joins[] = {
	{ ISOLATE_NS_NET, CLONE_NEWNET, "net" },
	{ ISOLATE_NS_IPC, CLONE_NEWIPC, "ipc" },
	{ ISOLATE_NS_UTS, CLONE_NEWUTS, "uts" },
	{ ISOLATE_NS_CGROUP, CLONE_NEWCGROUP, "cgroup" },
	{ ISOLATE_NS_MOUNT, CLONE_NEWNS, "mount" },
};

/*
 * Should: enter each namespace that the plan names; the kernel checks the kind of the descriptor.
 * Must not: be seen by what lives there as anything but a process that cannot be traced (the
 * spawner has cleared "dumpable" before the clone).
 */
int isolate_step_join(struct isolate_steps *s, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps_joins); i++) {
		enum isolate_ns kind = steps_joins[i].kind;

		if (s->plan->ns[kind] == ISOLATE_JOIN &&
		    setns(s->plan->ns_fd[kind], steps_joins[i].flag) < 0)
			return error_set(err, -errno, "%s", steps_joins[i].name);
	}
	return 0;
}

/*
 * Should: make the cgroup of this process the root of what it sees.
 * Must not: be left to the clone: there the kernel takes the spawner's cgroup as the root, as the
 * child is moved into its own only later (CLONE_INTO_CGROUP).
 */
int isolate_step_cgroup_ns(struct isolate_steps *s, struct error *err)
{
	if (s->plan->ns[ISOLATE_NS_CGROUP] == ISOLATE_NEW && unshare(CLONE_NEWCGROUP) < 0)
		return error_set(err, -errno, "unshare");
	return 0;
}

/*
 * Should: leave the spawner's session and terminal, and take the plan's terminal as the controlling
 * one. Must not: acquire any other, nor take it away from another session (argument 0).
 */
int isolate_step_session(struct isolate_steps *s, struct error *err)
{
	if (s->plan->new_session && setsid() < 0)
		return error_set(err, -errno, "setsid");
	if (s->plan->terminal && ioctl(s->stdio[0], TIOCSCTTY, 0) < 0)
		return error_set(err, -errno, "make the terminal the controlling one");
	return 0;
}

/*
 * Should: leave the spawner's session keyring and what it holds.
 * Must not: go on in the old one where there are keyrings at all. A kernel without them, or an
 * outer filter that hides them, leaves nothing to be shared.
 */
int isolate_step_keyring(struct isolate_steps *s, struct error *err)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 &&
	    errno != ENOSYS && errno != EPERM)
		return error_set(err, -errno, "keyctl");
	return 0;
}

/*
 * Should: name the new uts namespace.
 * Must not: touch one that is shared (the plan's check).
 */
int isolate_step_hostname(struct isolate_steps *s, struct error *err)
{
	const char *name = s->plan->hostname;

	if (name && sethostname(name, strlen(name)) < 0)
		return error_set(err, -errno, "sethostname");
	return 0;
}

/*
 * Should: bring up "lo", which has its addresses as soon as it is up.
 * Must not: touch a net namespace that is shared (the plan's check).
 */
int isolate_step_loopback(struct isolate_steps *s, struct error *err)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	_cleanup_fd_ int fd = -1;

	if (!s->plan->bring_up_loopback)
		return 0;
	/* Any socket can be asked; this kind exists in every kernel. */
	fd = sysio_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "socket");
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return error_set(err, -errno, "set the flags of lo");
	return 0;
}

/* NPROC and SIGPENDING are not there: the kernel's own value depends on the size of the machine,
 * and what the spawner has is that value. */
static const struct {
	int resource;
	struct rlimit64 limit;
} steps_rlimits[] = {
	{ RLIMIT_NOFILE, { 1024, 1048576 } },
	{ RLIMIT_CORE, { 0, 0 } },
	{ RLIMIT_CPU, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_FSIZE, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_DATA, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_STACK, { 8 << 20, RLIM64_INFINITY } },
	{ RLIMIT_RSS, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_MEMLOCK, { 8 << 20, 8 << 20 } },
	{ RLIMIT_AS, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_LOCKS, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_MSGQUEUE, { 819200, 819200 } },
	{ RLIMIT_NICE, { 0, 0 } },
	{ RLIMIT_RTPRIO, { 0, 0 } },
	{ RLIMIT_RTTIME, { RLIM64_INFINITY, RLIM64_INFINITY } },
};

static int steps_rlimit_set(int resource, struct rlimit64 limit)
{
	struct rlimit64 now;

	if (setrlimit64((__rlimit_resource_t)resource, &limit) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	/* Without CAP_SYS_RESOURCE a hard limit is not raised: come as near as the kernel allows.
	 */
	if (getrlimit64((__rlimit_resource_t)resource, &now) < 0)
		return -errno;
	limit.rlim_max = MIN(limit.rlim_max, now.rlim_max);
	limit.rlim_cur = MIN(limit.rlim_cur, limit.rlim_max);
	return setrlimit64((__rlimit_resource_t)resource, &limit) < 0 ? -errno : 0;
}

/*
 * Should: set every limit, so that none of the spawner's is inherited by accident.
 * Must not: fail for want of the privilege to raise one.
 */
int isolate_step_rlimits(struct isolate_steps *s, struct error *err)
{
	if (!s->plan->default_rlimits)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(steps_rlimits); i++) {
		int r = steps_rlimit_set(steps_rlimits[i].resource, steps_rlimits[i].limit);

		if (r < 0)
			return error_set(err, r, "limit %d", steps_rlimits[i].resource);
	}
	return 0;
}

/*
 * Should: die with the spawner, also where that has happened already: its pidfd tells, where a
 * parent's number would be 0 in a new pid namespace. Must not: come before the credentials change,
 * which clears the setting.
 */
int isolate_step_death_signal(struct isolate_steps *s, struct error *err)
{
	struct pollfd p = { .fd = s->parent_pidfd, .events = POLLIN };

	if (!s->plan->death_signal)
		return 0;
	if (prctl(PR_SET_PDEATHSIG, s->plan->death_signal, 0, 0, 0) < 0)
		return error_set(err, -errno, "prctl");
	if (poll(&p, 1, 0) != 0)
		return error_set(err, -ESRCH, "the spawner is gone");
	return 0;
}
