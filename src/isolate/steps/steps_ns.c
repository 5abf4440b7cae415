/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_ns.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "isolate/steps/loopback.h"
#include "isolate/steps/oom.h"

/* What rt_sigaction() takes, with all members that we leave at 0 behind the handler. */
struct steps_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

uint64_t isolate_signals_ignored(void)
{
	uint64_t ignored = 0;

	/* The raw call, since libc keeps two signals to itself. */
	for (int sig = 1; sig < _NSIG; sig++) {
		struct steps_sigaction now = { .handler = SIG_DFL };

		if (syscall(SYS_rt_sigaction, sig, NULL, &now, sizeof(now.mask)) == 0 &&
		    now.handler == SIG_IGN)
			ignored |= (uint64_t)1 << (sig - 1);
	}
	return ignored;
}

/*
 * Should: give every signal its default action. CLONE_CLEAR_SIGHAND has done so for handlers; what
 * the spawner ignores stays ignored without this, and across the exec. Must not: unblock anything
 * yet.
 */
int isolate_step_signals(struct isolate_steps *s, struct error *err)
{
	struct steps_sigaction action = { .handler = SIG_DFL };

	for (int sig = 1; sig < _NSIG; sig++)
		if (s->ignored & (uint64_t)1 << (sig - 1) &&
		    syscall(SYS_rt_sigaction, sig, &action, NULL, sizeof(action.mask)) < 0)
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

/*
 * Should: set the score and see it taken, where it is not the spawner's. Must not: do so in a new
 * user namespace, where nothing may be lowered: there the spawner has done it.
 */
int isolate_step_oom(struct isolate_steps *s, struct error *err)
{
	if (s->plan->keep_oom_score || s->oom_is_set || s->plan->ns[ISOLATE_NS_USER] == ISOLATE_NEW)
		return 0;
	return oom_score_set(s->proc_fd, "self", s->plan->oom_score_adj, s->plan->notes, err);
}

/* In this order: the user namespace is the first, since it gives the right to enter the others; the
 * mount namespace is the last, since it changes root and working directory. The
 * pid namespace is not there, since a process is born in it. */
static const struct {
	enum isolate_ns kind;
	int flag;
	const char *name;
} steps_joins[] = {
	{ ISOLATE_NS_USER, CLONE_NEWUSER, "user" },
	{ ISOLATE_NS_NET, CLONE_NEWNET, "net" },
	{ ISOLATE_NS_IPC, CLONE_NEWIPC, "ipc" },
	{ ISOLATE_NS_UTS, CLONE_NEWUTS, "uts" },
	{ ISOLATE_NS_CGROUP, CLONE_NEWCGROUP, "cgroup" },
	{ ISOLATE_NS_TIME, CLONE_NEWTIME, "time" },
	{ ISOLATE_NS_MOUNT, CLONE_NEWNS, "mount" },
};

/*
 * Should: enter each namespace that the plan names; the kernel checks the kind of the descriptor. A
 * mount namespace that a tree goes to is entered with the tree.
 * Must not: be seen by what lives there as anything but a process that cannot be traced (the
 * spawner has cleared "dumpable" before the clone).
 */
int isolate_step_join(struct isolate_steps *s, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps_joins); i++) {
		enum isolate_ns kind = steps_joins[i].kind;

		if (kind == ISOLATE_NS_USER && s->user_joined)
			continue;
		if (kind == ISOLATE_NS_MOUNT && s->mount_ns_fd >= 0)
			continue;
		if (s->plan->ns[kind] == ISOLATE_JOIN &&
		    setns(s->plan->ns_fd[kind], steps_joins[i].flag) < 0)
			return error_set(err, -errno, "%s", steps_joins[i].name);
	}
	if (s->plan->prepared_ns_fd >= 0 && setns(s->plan->prepared_ns_fd, CLONE_NEWNS) < 0)
		return error_set(err, -errno, "the mount namespace of a prepared set");
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
	if (s->plan->keep_keyring)
		return 0;
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
	name = s->plan->domainname;
	if (name && setdomainname(name, strlen(name)) < 0)
		return error_set(err, -errno, "setdomainname");
	return 0;
}

/*
 * Should: bring up "lo", which has its addresses as soon as it is up.
 * Must not: touch a net namespace that is shared (the plan's check).
 */
int isolate_step_loopback(struct isolate_steps *s, struct error *err)
{
	return s->plan->bring_up_loopback ? loopback_up(err) : 0;
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
