/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/spawn.h"

#include <errno.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/spawn/give.h"
#include "isolate/spawn/race_watch.h"
#include "isolate/spawn/spawn_parts.h"
#include "isolate/steps/oom.h"
#include "isolate/steps/steps.h"
#include "isolate/steps/steps_ns.h"
#include "isolate/tree/dev.h"

/*
 * The spawner prepares everything that needs its own view (its /dev/null, its mounts, its /proc),
 * clones, and is done: it waits for nothing. The child is a copy of the memory (no CLONE_VM), so it
 * works on the same plan without a lock. It reports over a pipe that the exec closes.
 */

/* Of this process, for its whole life: a mount of /proc that no other process can reach, and the
 * pid namespace that its children are born in unless told otherwise. Made by the first spawn that
 * needs them. */
static int spawn_proc_fd = -1;
static int spawn_pid_ns_fd = -1;
/* Its own OOM score, which a child is born with. */
static int spawn_oom_fd = -1;
/* Of this thread, when it first looked: the capabilities that the kernel knows, and those of them
 * in the bounding set. That can only become smaller, so a child in the same user namespace has no
 * other to drop. */
static _Thread_local uint64_t spawn_caps_known, spawn_caps_bounding;
/* At the same time: the signals that are ignored. What a program of ours ignores by its own will is
 * SIGPIPE; all others are those that it was started with. */
static _Thread_local uint64_t spawn_ignored;
/* A child that spawns in its turn, on its way to its program, keeps nothing: its descriptors are
 * still to be put in their places. */
static bool spawn_is_child;

/* Whether the steps need the spawner's /proc when its descriptors are closed. */
static bool spawn_keeps_proc(const struct isolate_plan *p)
{
	return p->n_sysctls || p->apparmor || p->selinux || p->selinux_mount ||
	       p->ns[ISOLATE_NS_TIME] == ISOLATE_NEW;
}

static void spawn_forget(void)
{
	if (!spawn_is_child)
		return;
	spawn_proc_fd = fd_close(spawn_proc_fd);
	spawn_pid_ns_fd = fd_close(spawn_pid_ns_fd);
	spawn_oom_fd = fd_close(spawn_oom_fd);
}

/* One read here is less than what the child would need to find out the same. */
static bool spawn_has_oom_score(const struct isolate_plan *p)
{
	if (p->keep_oom_score)
		return false;
	if (spawn_oom_fd < 0)
		spawn_oom_fd = oom_score_open(spawn_proc_fd);
	return spawn_oom_fd >= 0 && oom_score_is(spawn_oom_fd, p->oom_score_adj);
}

static void spawn_look_at_caps(void)
{
	for (unsigned cap = 0; cap < 64; cap++) {
		int r = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (r < 0)
			return;
		spawn_caps_known |= (uint64_t)1 << cap;
		spawn_caps_bounding |= (uint64_t)(r > 0) << cap;
	}
}

static int spawn_open_own(struct error *err)
{
	if (spawn_proc_fd < 0)
		spawn_proc_fd =
			mount_new("proc", NULL,
				  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	if (spawn_proc_fd < 0)
		return error_wrap(err, spawn_proc_fd, "make a private /proc");
	if (spawn_pid_ns_fd < 0)
		spawn_pid_ns_fd = sysio_openat(spawn_proc_fd, "thread-self/ns/pid_for_children",
					       O_RDONLY | O_CLOEXEC, 0);
	if (spawn_pid_ns_fd < 0)
		return error_set(err, -errno, "open the own pid namespace");
	return 0;
}

static int spawn_init(const struct isolate_plan *p, struct error *err)
{
	if (p->keep_oom_score && p->ns[ISOLATE_NS_PID] != ISOLATE_JOIN &&
	    p->ns[ISOLATE_NS_USER] == ISOLATE_KEEP && !spawn_keeps_proc(p) &&
	    !(p->root == ISOLATE_ROOT_TREE && p->ns[ISOLATE_NS_MOUNT] == ISOLATE_KEEP))
		return 0;
	return spawn_open_own(err);
}

void isolate_spawn_begin(void)
{
	(void)spawn_open_own(NULL);
	if (!spawn_caps_known)
		spawn_look_at_caps();
}

/* What spawn_prepare() opens; the child gets it as a part of its steps. */
struct spawn {
	struct isolate_steps steps;
	int read_fd; /* the spawner's end of the report pipe */
	int give_fd; /* and of the socket for the root */
};

static void spawn_done(struct spawn *sp)
{
	(void)fd_close(sp->read_fd);
	(void)fd_close(sp->give_fd);
	(void)fd_close(sp->steps.give_fd);
	(void)fd_close(sp->steps.report_fd);
	(void)fd_close(sp->steps.parent_pidfd);
	(void)fd_close(sp->steps.null_fd);
	(void)fd_close(sp->steps.shm_fd);
	(void)fd_close(sp->steps.mount_ns_fd);
	(void)fd_close(sp->steps.sync_fd);
	(void)fd_close(sp->steps.sync_write_fd);
	spawn_tree_done(&sp->steps);
	spawn_forget();
}

int isolate_root_open(int proc_fd, pid_t pid)
{
	char name[32];
	int fd;

	(void)str_printf(name, sizeof(name), "%d/root", (int)pid);
	fd = sysio_openat(proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int isolate_null_open(struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY, 0);

	if (fd < 0)
		return error_set(err, -errno, "open /dev/null");
	return dev_is_null(fd) ? TAKE_FD(fd) : error_set(err, -ENODEV, "/dev/null");
}

static int spawn_open_null(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;

	if (p->stdio[0] >= 0 && p->stdio[1] >= 0 && p->stdio[2] >= 0)
		return 0;
	s->null_fd = isolate_null_open(err);
	return s->null_fd < 0 ? s->null_fd : 0;
}

static int spawn_open_mount_ns(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;

	if (p->root != ISOLATE_ROOT_TREE || p->ns[ISOLATE_NS_MOUNT] == ISOLATE_NEW)
		return 0;
	if (p->ns[ISOLATE_NS_MOUNT] == ISOLATE_JOIN)
		s->mount_ns_fd = fd_copy(p->ns_fd[ISOLATE_NS_MOUNT]);
	else
		s->mount_ns_fd = isolate_ns_open(spawn_proc_fd, getpid(), ISOLATE_NS_MOUNT);
	return s->mount_ns_fd < 0 ? error_set(err, s->mount_ns_fd, "open the mount namespace") : 0;
}

static int spawn_prepare(struct spawn *sp, struct error *err)
{
	struct isolate_steps *s = &sp->steps;
	const struct isolate_plan *p = s->plan;
	int fds[2];
	int r;

	r = spawn_open_null(s, err);
	if (r < 0)
		return r;
	if (p->shm_fd >= 0) {
		/* Here and not in the child: a mount can be copied only in the namespace that it is
		 * in. */
		s->shm_fd = mount_copy(p->shm_fd, "", err);
		if (s->shm_fd < 0)
			return error_wrap(err, s->shm_fd, "shm_fd");
	}
	if (p->death_signal) {
		s->parent_pidfd = pidfd_of(getpid());
		if (s->parent_pidfd < 0)
			return error_set(err, s->parent_pidfd, "open the own pidfd");
	}
	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make the pipe for the report");
	sp->read_fd = fds[0];
	s->report_fd = fds[1];
	if (p->root_later) {
		r = give_open(&sp->give_fd, &s->give_fd, err);
		if (r < 0)
			return r;
	}

	if (!spawn_caps_known) {
		spawn_look_at_caps();
		spawn_ignored = isolate_signals_ignored() | (uint64_t)1 << (SIGPIPE - 1);
	}
	s->ignored = spawn_ignored;
	/* One that is new to a user namespace has them all. */
	s->bounding = p->ns[ISOLATE_NS_USER] == ISOLATE_KEEP && p->user_fd < 0 ? spawn_caps_bounding
									       : spawn_caps_known;
	s->proc_fd = spawn_proc_fd;
	s->oom_is_set = spawn_has_oom_score(p);
	s->keeps_proc = spawn_keeps_proc(p);
	s->root_fd = p->root_fd;
	s->exec_fd = p->exec_fd;
	s->at_fd = p->at_fd;
	for (size_t i = 0; i < ARRAY_SIZE(s->stdio); i++)
		s->stdio[i] = p->stdio[i] >= 0 ? p->stdio[i] : s->null_fd;
	for (size_t i = 0; i < p->n_keep_fds; i++)
		s->keep_fds[i] = p->keep_fds[i];

	r = spawn_open_mount_ns(s, err);
	if (r == 0)
		r = spawn_sysctls_check(p, spawn_proc_fd, err);
	if (r == 0)
		r = spawn_user_prepare(s, err);
	return r < 0 ? r : spawn_tree_prepare(s, err);
}

static bool spawn_joins(const struct isolate_plan *p)
{
	if (p->prepared_ns_fd >= 0 || p->user_fd >= 0)
		return true;
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		if (p->ns[i] == ISOLATE_JOIN)
			return true;
	return false;
}

static _noreturn_ void spawn_child(struct isolate_steps *s)
{
	race_watch_end();
	/* The steps have them in s; the numbers are not for another spawn. */
	spawn_proc_fd = -1;
	spawn_pid_ns_fd = -1;
	spawn_oom_fd = -1;
	spawn_is_child = true;
	spawn_caps_known = spawn_caps_bounding = 0;
	isolate_steps_run(s);
}

static pid_t spawn_clone3(struct isolate_steps *s, int *ret_pidfd)
{
	const struct isolate_plan *p = s->plan;
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};
	uint64_t spaces = 0;
	pid_t pid;

	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		if (p->ns[i] == ISOLATE_NEW)
			spaces |= isolate_ns_flag((enum isolate_ns)i);
	if (s->mount_ns_fd >= 0)
		spaces |= CLONE_NEWNS;
	if (p->prepared_ns_fd >= 0)
		spaces &= ~(uint64_t)CLONE_NEWNS;
	args.flags |= spaces;
	if (p->cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)p->cgroup_fd;
	}
	if (spaces && p->ns[ISOLATE_NS_USER] == ISOLATE_JOIN)
		return spawn_beside(s, args.flags & ~(uint64_t)CLONE_PIDFD, spawn_child, ret_pidfd);
	pid = sysio_clone3(&args);
	if (pid == 0)
		spawn_child(s);
	return pid < 0 ? -errno : pid;
}

/*
 * The pid namespace of children belongs to the thread (its nsproxy), so other threads of this
 * process do not notice. It must be the old one again before anything else can clone in this
 * thread: a process born in the wrong namespace, in a container's, would be its prey.
 */
static pid_t spawn_clone_in_pid_ns(struct isolate_steps *s, int *ret_pidfd)
{
	const struct isolate_plan *p = s->plan;
	pid_t pid;

	if (p->ns[ISOLATE_NS_PID] != ISOLATE_JOIN)
		return spawn_clone3(s, ret_pidfd);
	if (setns(p->ns_fd[ISOLATE_NS_PID], CLONE_NEWPID) < 0)
		return -errno;
	pid = spawn_clone3(s, ret_pidfd);
	if (setns(spawn_pid_ns_fd, CLONE_NEWPID) < 0)
		abort();
	return pid;
}

/*
 * All signals are blocked around the clone: a handler of the spawner must not run in the child.
 * Where the child enters what others live in, it is not dumpable from birth on, so that they cannot
 * trace it (security.md A02); the exec sets that back, and here it is set back at once.
 */
static pid_t spawn_clone(struct isolate_steps *s, int *ret_pidfd)
{
	uint64_t all = UINT64_MAX, before = 0;
	bool hide = spawn_joins(s->plan) && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
	pid_t pid;

	/* The raw call, since libc keeps two signals to itself. */
	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all)) < 0)
		return -errno;
	if (hide)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	pid = spawn_clone_in_pid_ns(s, ret_pidfd);
	if (hide)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	return pid;
}

/* Ends and reaps a child that nobody will hear of. */
static void spawn_undo(int pidfd)
{
	siginfo_t info;
	int r;

	(void)pidfd_kill(pidfd, SIGKILL);
	do
		r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
	while (r < 0 && errno == EINTR);
	(void)fd_close(pidfd);
}

int isolate_spawn(const struct isolate_plan *plan, struct isolate_child *ret, struct error *err)
{
	_cleanup_(spawn_done) struct spawn sp = {
		.steps = { .plan = plan,
			   .report_fd = -1,
			   .parent_pidfd = -1,
			   .null_fd = -1,
			   .give_fd = -1,
			   .shm_fd = -1,
			   .place_fd = -1,
			   .mount_ns_fd = -1,
			   .sync_fd = -1,
			   .sync_write_fd = -1,
			   .null_mount_fd = -1 },
		.read_fd = -1,
		.give_fd = -1,
	};
	const char *name;
	int pidfd = -1;
	pid_t pid;
	int r;

	r = isolate_plan_check(plan, err);
	if (r < 0)
		return r;
	r = spawn_init(plan, err);
	if (r < 0)
		return r;
	r = spawn_prepare(&sp, err);
	if (r < 0)
		return r;

	name = plan->rest_later ? "a program that is still to come" : plan->argv[0];
	r = FAILPOINT("spawn.clone");
	pid = r < 0 ? r : spawn_clone(&sp.steps, &pidfd);
	if (pid < 0)
		return error_set(err, pid, "clone a process for %s", name);
	FAILPOINT_AFTER("spawn.clone");
	r = FAILPOINT("spawn.prepared");
	if (r < 0)
		(void)error_set(err, r, "let the process for %s begin", name);
	else
		r = spawn_user_map(&sp.steps, pid, err);
	if (r < 0) {
		spawn_undo(pidfd);
		return r;
	}
	*ret = (struct isolate_child){ .pid = pid,
				       .pidfd = pidfd,
				       .report_fd = TAKE_FD(sp.read_fd),
				       .give_fd = TAKE_FD(sp.give_fd) };
	return 0;
}

void isolate_child_done(struct isolate_child *c)
{
	c->pidfd = fd_close(c->pidfd);
	c->report_fd = fd_close(c->report_fd);
	c->give_fd = fd_close(c->give_fd);
}

/* A process that is gone already is no error. */
static int child_given(struct isolate_child *c, int r, struct error *err)
{
	c->give_fd = fd_close(c->give_fd);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return error_set(err, r, "give process %d its root", (int)c->pid);
	return 0;
}

int isolate_child_give_root(struct isolate_child *c, int root_fd, struct error *err)
{
	struct give give = { .fds = { root_fd }, .n_fds = 1 };
	char byte = 0;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };

	return child_given(c, give_send(c->give_fd, &give, &data, 1), err);
}

int isolate_child_give_rest(struct isolate_child *c, const struct isolate_rest *rest,
			    struct error *err)
{
	int r = rest_send(c->give_fd, rest);

	/* Nothing was sent: the child waits on. */
	if (r == -E2BIG)
		return error_refuse(err, ERROR_INVALID,
				    "argv, env and cwd: more than %d bytes or %d strings",
				    ISOLATE_REST_BYTES_MAX, ISOLATE_REST_STRINGS_MAX);
	return child_given(c, r, err);
}

int isolate_child_report(struct isolate_child *c, int *ret_exit, struct error *err)
{
	struct isolate_report report;
	ssize_t n;

	do
		n = sysio_read(c->report_fd, &report, sizeof(report));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;

	*ret_exit = ISOLATE_EXIT_FAILED;
	if (n < 0)
		return error_set(err, -errno, "read the report of process %d", (int)c->pid);
	/* A child writes it in one piece, and a pipe keeps pieces of that size together. */
	if (n != sizeof(report) || report.error.code >= 0)
		return error_set(err, -EBADMSG, "read the report of process %d", (int)c->pid);
	report.error.text[ERROR_TEXT_MAX - 1] = '\0';
	*ret_exit = report.exit_hint;
	return error_copy(err, &report.error);
}
