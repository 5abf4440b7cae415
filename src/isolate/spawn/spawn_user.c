/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/spawn_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/plan/sysctl.h"
#include "isolate/spawn/stdio_give.h"
#include "isolate/steps/oom.h"
#include "isolate/steps/rlimits.h"
#include "isolate/user/maps.h"

static bool spawn_same_file(int a_fd, int b_fd)
{
	struct stat a, b;

	return fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int spawn_sysctls_check(const struct isolate_plan *plan, int proc_fd, struct error *err)
{
	static const char *const own[ISOLATE_NS_COUNT] = { [ISOLATE_NS_NET] = "self/ns/net",
							   [ISOLATE_NS_IPC] = "self/ns/ipc",
							   [ISOLATE_NS_UTS] = "self/ns/uts",
							   [ISOLATE_NS_USER] = "self/ns/user" };

	for (size_t i = 0; i < plan->n_sysctls; i++) {
		const char *name = plan->sysctls[i].name;
		_cleanup_fd_ int fd = -1;
		char path[SYSCTL_NAME_MAX + 1];
		enum isolate_ns kind;

		if (sysctl_path(path, sizeof(path), name) < 0)
			return error_refuse(err, ERROR_INVALID, "sysctls: %s", name);
		kind = sysctl_kind(path);
		if (plan->ns[kind] != ISOLATE_JOIN)
			continue;
		fd = sysio_openat(proc_fd, own[kind], O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			return error_set(err, -errno, "sysctls: open the own namespace");
		if (spawn_same_file(fd, plan->ns_fd[kind]))
			return error_refuse(err, ERROR_INVALID,
					    "sysctls: %s is not of the container alone", name);
	}
	return 0;
}

/*
 * Enters the namespace, says so, and stays until it is looked at. Must not: be traced by what lives
 * there, for it has all that the spawner has open.
 */
static _noreturn_ void spawn_look_helper(int user_fd, int say_fd, int stay_fd)
{
	char byte = 0;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setns(user_fd, CLONE_NEWUSER) < 0 ||
	    write(say_fd, &byte, 1) != 1)
		_exit(1);
	while (read(stay_fd, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Whether the helper has entered the namespace. */
static bool spawn_look_hears(int say_fd)
{
	char byte;
	ssize_t n;

	do
		n = sysio_read(say_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/*
 * What a user of a namespace is outside. The kernel shows the ids of a namespace only in the /proc
 * of a process that is in it, and a process with privilege outside cannot come back from there: so
 * a helper enters it. say, stay: two pipes; the helper ends with the other end of `stay`.
 */
static int spawn_look_at_ids(const struct isolate_steps *s, int say[2], const int stay[2],
			     uint32_t *ret)
{
	int pidfd = -1, r = -ESRCH;
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	siginfo_t info;
	pid_t pid = sysio_clone3(&args);

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)fd_close(say[0]);
		(void)fd_close(stay[1]);
		spawn_look_helper(s->plan->ns_fd[ISOLATE_NS_USER], say[1], stay[0]);
	}
	say[1] = fd_close(say[1]);
	if (spawn_look_hears(say[0]))
		r = maps_look(s->proc_fd, pid, s->plan->uid, ret);
	(void)pidfd_kill(pidfd, SIGKILL);
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	(void)fd_close(pidfd);
	return r;
}

static int spawn_look(const struct isolate_steps *s, uint32_t *ret)
{
	int say[2], stay[2], r;

	if (pipe2(say, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(stay, O_CLOEXEC) < 0) {
		r = -errno;
	} else {
		r = spawn_look_at_ids(s, say, stay, ret);
		(void)fd_close(stay[0]);
		(void)fd_close(stay[1]);
	}
	(void)fd_close(say[0]);
	(void)fd_close(say[1]);
	return r;
}

/* A user that is not mapped gets nothing: the program cannot be that one either. A namespace that
 * cannot be entered is an error of the child, who says so. */
static int spawn_give_stdio(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	uint32_t uid;
	int r;

	if (!p->give_stdio)
		return 0;
	if (p->user_fd >= 0)
		return stdio_give(p->stdio, isolate_ids_outside(&p->ids, p->ids.uid, p->uid),
				  p->terminal, err);
	if (p->n_uid_map)
		return stdio_give(p->stdio, maps_outside(p->uid_map, p->n_uid_map, p->uid),
				  p->terminal, err);
	if (p->ns[ISOLATE_NS_USER] != ISOLATE_JOIN || !stdio_has_any(p->stdio, p->terminal))
		return 0;
	r = spawn_look(s, &uid);
	if (r == -ENOENT || r == -ESRCH)
		return 0;
	return r < 0 ? error_set(err, r, "look at the ids of the user namespace")
		     : stdio_give(p->stdio, uid, p->terminal, err);
}

int spawn_user_prepare(struct isolate_steps *s, struct error *err)
{
	int fds[2];
	const struct isolate_plan *p = s->plan;
	int r = spawn_give_stdio(s, err);

	if (r < 0 || p->ns[ISOLATE_NS_USER] != ISOLATE_NEW)
		return r;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make the pipe for the ids");
	s->sync_fd = fds[0];
	s->sync_write_fd = fds[1];
	return 0;
}

int spawn_user_map(const struct isolate_steps *s, pid_t pid, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	struct maps maps = { .uid = p->uid_map,
			     .gid = p->gid_map,
			     .n_uid = p->n_uid_map,
			     .n_gid = p->n_gid_map,
			     .deny_setgroups = p->deny_setgroups };
	char task[16];
	int r;

	if (p->ns[ISOLATE_NS_USER] != ISOLATE_NEW)
		return 0;
	r = maps_write(s->proc_fd, pid, &maps, err);
	if (r == 0)
		r = rlimits_raise(pid, p, err);
	if (r == 0 && !p->keep_oom_score) {
		r = str_printf(task, sizeof(task), "%d", (int)pid);
		r = r < 0 ? r : oom_score_set(s->proc_fd, task, p->oom_score_adj, p->notes, err);
	}
	if (r < 0)
		return r;
	/* A child that is gone already says so by its exit status. */
	if (sysio_write(s->sync_write_fd, "", 1) != 1 && errno != EPIPE)
		return error_set(err, -errno, "let the child go on");
	return 0;
}

/* What the helper says over a pipe. */
struct spawn_beside_result {
	pid_t pid; /* or a negative errno */
	int pidfd;
};

static _noreturn_ void spawn_beside_helper(struct isolate_steps *s, uint64_t flags,
					   void (*run)(struct isolate_steps *s), int write_fd)
{
	struct spawn_beside_result result = { .pid = -1, .pidfd = -1 };
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD | CLONE_PARENT,
		.pidfd = (uint64_t)(uintptr_t)&result.pidfd,
	};
	ssize_t n;

	if (setns(s->plan->ns_fd[ISOLATE_NS_USER], CLONE_NEWUSER) < 0) {
		result.pid = -errno;
	} else {
		pid_t pid = sysio_clone3(&args);

		if (pid == 0) {
			s->user_joined = true;
			run(s);
		}
		result.pid = pid < 0 ? -errno : pid;
	}
	n = write(write_fd, &result, sizeof(result));
	_exit(n == sizeof(result) ? 0 : 1);
}

/* The number of a process as this one sees it; the helper may have been in another pid namespace.
 */
static pid_t spawn_pid_of(int proc_fd, int pidfd)
{
	char name[48], text[512];
	_cleanup_fd_ int fd = -1;
	const char *at;
	ssize_t n;

	if (str_printf(name, sizeof(name), "self/fdinfo/%d", pidfd) < 0)
		return -ENAMETOOLONG;
	fd = rootfd_open_beneath(proc_fd, name, O_RDONLY);
	n = fd < 0 ? fd : sysio_read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return fd < 0 ? fd : -errno;
	text[n] = '\0';
	at = strstr(text, "\nPid:");
	return at ? (pid_t)strtol(at + strlen("\nPid:"), NULL, 10) : -ESRCH;
}

pid_t spawn_beside(struct isolate_steps *s, uint64_t flags, void (*run)(struct isolate_steps *s),
		   int *ret_pidfd)
{
	struct spawn_beside_result result = { .pid = -ESRCH, .pidfd = -1 };
	int helper_pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_FILES | (flags & CLONE_INTO_CGROUP),
		.pidfd = (uint64_t)(uintptr_t)&helper_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = s->plan->cgroup_fd >= 0 ? (uint64_t)s->plan->cgroup_fd : 0,
	};
	siginfo_t info;
	pid_t pid;
	int fds[2];
	int r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	pid = sysio_clone3(&args);
	if (pid == 0)
		spawn_beside_helper(s, flags & ~(uint64_t)CLONE_INTO_CGROUP, run, fds[1]);
	if (pid > 0) {
		/* It waits for nothing but the kernel. */
		do
			r = waitid(P_PIDFD, (id_t)helper_pidfd, &info, WEXITED);
		while (r < 0 && errno == EINTR);
		(void)fd_close(helper_pidfd);
		if (sysio_read(fds[0], &result, sizeof(result)) != sizeof(result))
			result.pid = -ESRCH;
	} else {
		result.pid = -errno;
	}
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
	if (result.pid < 0)
		return result.pid;
	*ret_pidfd = result.pidfd;
	return spawn_pid_of(s->proc_fd, result.pidfd);
}
