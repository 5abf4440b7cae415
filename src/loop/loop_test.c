/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "unit.h"

/* What the callbacks below saw. */
static struct {
	struct loop *loop;
	unsigned n;
	unsigned events;
	int code, status;
	pid_t sender;
	int order[8];
} seen;

static void loop_begin(void)
{
	memset(&seen, 0, sizeof(seen));
	CHECK(loop_new(&seen.loop) == 0);
}

static void loop_end(void)
{
	seen.loop = loop_free(seen.loop);
}

static void turns(unsigned n)
{
	while (n--)
		loop_turn(seen.loop, false);
}

/* ---- descriptors ---- */

static void fd_note(struct loop_fd *s, unsigned events)
{
	seen.n++;
	seen.events = events;
}

static void fd_is_level_triggered(void)
{
	struct loop_fd s;
	int p[2];

	loop_begin();
	CHECK(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
	loop_fd_init(&s, seen.loop, p[0], LOOP_READ, fd_note);
	turns(1);
	CHECK_INT(seen.n, 0);
	CHECK(write(p[1], "x", 1) == 1);
	CHECK_INT(seen.n, 0);
	turns(3);
	CHECK_INT(seen.n, 3);
	CHECK_INT(seen.events, LOOP_READ);
	loop_fd_set(&s, 0);
	turns(2);
	CHECK_INT(seen.n, 3);
	loop_fd_set(&s, LOOP_READ);
	turns(1);
	CHECK_INT(seen.n, 4);
	loop_fd_done(&s);
	loop_fd_done(&s);
	turns(2);
	CHECK_INT(seen.n, 4);
	(void)close(p[0]);
	(void)close(p[1]);
	loop_end();
}

static void fd_hang_up_is_readable_and_writable(void)
{
	struct loop_fd s;
	int sv[2];

	loop_begin();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	loop_fd_init(&s, seen.loop, sv[0], LOOP_READ | LOOP_WRITE, fd_note);
	turns(1);
	CHECK_INT(seen.events, LOOP_WRITE);
	(void)close(sv[1]);
	turns(1);
	CHECK_INT(seen.events, LOOP_READ | LOOP_WRITE);
	loop_fd_done(&s);
	(void)close(sv[0]);
	loop_end();
}

/* epoll does not take regular files; they are ready always, as poll(2) has it. */
static void fd_regular_file_is_ready(void)
{
	_cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct loop_fd s;

	loop_begin();
	loop_fd_init(&s, seen.loop, fd, LOOP_READ, fd_note);
	turns(2);
	CHECK(seen.n > 0);
	CHECK(seen.events & LOOP_READ);
	loop_fd_done(&s);
	loop_end();
}

/* The same number for another file, within one turn, and with the old file alive elsewhere. */
static void fd_number_is_used_again(void)
{
	struct loop_fd s;
	int a[2], b[2], kept;

	loop_begin();
	CHECK(pipe2(a, O_CLOEXEC) == 0);
	CHECK(pipe2(b, O_CLOEXEC) == 0);
	loop_fd_init(&s, seen.loop, a[0], LOOP_READ, fd_note);
	CHECK(write(a[1], "x", 1) == 1);
	turns(1);
	CHECK_INT(seen.n, 1);
	loop_fd_done(&s);
	kept = fd_copy(a[0]);
	CHECK(dup3(b[0], a[0], O_CLOEXEC) == a[0]);
	loop_fd_init(&s, seen.loop, a[0], LOOP_READ, fd_note);
	turns(4);
	CHECK_INT(seen.n, 1);
	CHECK(write(b[1], "y", 1) == 1);
	turns(4);
	CHECK(seen.n > 1);
	loop_fd_done(&s);
	(void)close(kept);
	(void)close(a[0]);
	(void)close(a[1]);
	(void)close(b[0]);
	(void)close(b[1]);
	loop_end();
}

/* Two sources are ready in one turn; whichever comes first takes the other away and frees it. */
struct fd_pair {
	struct loop_fd *one, *two;
	int fds[4];
};
static struct fd_pair fd_pair;

static void fd_free_both(struct loop_fd *s, unsigned events)
{
	seen.n++;
	loop_fd_done(fd_pair.one);
	loop_fd_done(fd_pair.two);
	free(fd_pair.one);
	free(fd_pair.two);
}

static void fd_done_within_callback(void)
{
	loop_begin();
	fd_pair.one = calloc(1, sizeof(*fd_pair.one));
	fd_pair.two = calloc(1, sizeof(*fd_pair.two));
	CHECK(pipe2(fd_pair.fds, O_CLOEXEC) == 0);
	CHECK(pipe2(fd_pair.fds + 2, O_CLOEXEC) == 0);
	CHECK(write(fd_pair.fds[1], "x", 1) == 1);
	CHECK(write(fd_pair.fds[3], "x", 1) == 1);
	loop_fd_init(fd_pair.one, seen.loop, fd_pair.fds[0], LOOP_READ, fd_free_both);
	loop_fd_init(fd_pair.two, seen.loop, fd_pair.fds[2], LOOP_READ, fd_free_both);
	turns(3);
	CHECK_INT(seen.n, 1);
	for (size_t i = 0; i < ARRAY_SIZE(fd_pair.fds); i++)
		(void)close(fd_pair.fds[i]);
	loop_end();
}

/* ---- timers ---- */

static void timer_note(struct loop_timer *t)
{
	seen.n++;
	loop_quit(seen.loop, 7);
}

static void timer_fires_once_and_not_early(void)
{
	struct loop_timer t;
	nsec_t begin, took;

	loop_begin();
	loop_timer_init(&t, seen.loop, timer_note);
	/* The loop has stood still for a while: the time counts from now all the same. */
	(void)usleep(30000);
	begin = clock_mono();
	loop_timer_set(&t, 20 * NSEC_PER_MSEC);
	CHECK_INT(loop_run(seen.loop), 7);
	took = clock_mono() - begin;
	CHECK(took >= 19 * NSEC_PER_MSEC);
	CHECK(took < 60 * NSEC_PER_SEC);
	(void)usleep(1000);
	turns(3);
	CHECK_INT(seen.n, 1);
	loop_timer_done(&t);
	loop_timer_done(&t);
	loop_end();
}

static void timer_is_stopped(void)
{
	struct loop_timer t;

	loop_begin();
	loop_timer_init(&t, seen.loop, timer_note);
	loop_timer_set(&t, NSEC_PER_MSEC);
	loop_timer_set(&t, NSEC_NEVER);
	(void)usleep(3000);
	turns(2);
	loop_timer_set(&t, 0);
	loop_timer_stop(&t);
	turns(2);
	CHECK_INT(seen.n, 0);
	loop_timer_set(&t, 3600 * NSEC_PER_SEC);
	loop_timer_set(&t, 0);
	CHECK_INT(loop_run(seen.loop), 7);
	CHECK_INT(seen.n, 1);
	loop_timer_done(&t);
	loop_end();
}

static void timer_again(struct loop_timer *t)
{
	if (++seen.n < 3) {
		loop_timer_set(t, NSEC_PER_MSEC);
		return;
	}
	loop_timer_done(t);
	free(t);
	loop_quit(seen.loop, 0);
}

static void timer_sets_and_frees_itself(void)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	loop_begin();
	loop_timer_init(t, seen.loop, timer_again);
	loop_timer_set(t, 0);
	CHECK_INT(loop_run(seen.loop), 0);
	CHECK_INT(seen.n, 3);
	loop_end();
}

/* ---- deferred work ---- */

static struct loop_defer defers[3];

static void defer_note(struct loop_defer *d)
{
	seen.order[seen.n++] = (int)(d - defers);
}

static void defer_first(struct loop_defer *d)
{
	defer_note(d);
	/* The third never comes, the second comes once and later. */
	loop_defer_done(&defers[2]);
	loop_defer_schedule(&defers[1]);
}

static void defer_last(struct loop_defer *d)
{
	defer_note(d);
	if (d == &defers[1])
		loop_defer_schedule(&defers[2]);
}

/* Behind those that the others schedule, too; and before anything is waited for. */
static void defer_runs_last(void)
{
	loop_begin();
	for (size_t i = 0; i < ARRAY_SIZE(defers); i++)
		loop_defer_init(&defers[i], seen.loop, defer_last);
	loop_defer_schedule_last(&defers[0]);
	loop_defer_schedule(&defers[1]);
	loop_turn(seen.loop, true);
	CHECK_INT(seen.n, 2);
	CHECK(seen.order[0] == 1 && seen.order[1] == 2);
	loop_turn(seen.loop, true);
	CHECK_INT(seen.n, 3);
	CHECK_INT(seen.order[2], 0);
	loop_defer_schedule_last(&defers[0]);
	loop_defer_done(&defers[0]);
	loop_turn(seen.loop, false);
	CHECK_INT(seen.n, 3);
	loop_end();
}

static void defer_again(struct loop_defer *d)
{
	loop_defer_schedule(d);
}

static void defer_runs_last_where_others_never_end(void)
{
	loop_begin();
	loop_defer_init(&defers[0], seen.loop, defer_note);
	loop_defer_init(&defers[1], seen.loop, defer_again);
	loop_defer_schedule(&defers[1]);
	loop_defer_schedule_last(&defers[0]);
	loop_turn(seen.loop, false);
	CHECK_INT(seen.n, 0);
	turns(10);
	CHECK_INT(seen.n, 1);
	loop_defer_done(&defers[1]);
	loop_end();
}

static void defer_runs_once_in_order(void)
{
	loop_begin();
	loop_defer_init(&defers[0], seen.loop, defer_first);
	loop_defer_init(&defers[1], seen.loop, defer_note);
	loop_defer_init(&defers[2], seen.loop, defer_note);
	loop_defer_schedule(&defers[1]);
	loop_defer_schedule(&defers[0]);
	loop_defer_schedule(&defers[1]);
	loop_defer_schedule(&defers[2]);
	CHECK_INT(seen.n, 0);
	loop_turn(seen.loop, true);
	CHECK_INT(seen.n, 3);
	CHECK_INT(seen.order[0], 1);
	CHECK_INT(seen.order[1], 0);
	CHECK_INT(seen.order[2], 1);
	loop_defer_schedule(&defers[0]);
	loop_defer_done(&defers[0]);
	loop_defer_done(&defers[0]);
	turns(2);
	CHECK_INT(seen.n, 3);
	loop_defer_done(&defers[1]);
	loop_end();
}

static void defer_forever(struct loop_defer *d)
{
	loop_defer_schedule(d);
}

static void defer_keeps_nobody_out(void)
{
	struct loop_defer d;
	struct loop_timer t;

	loop_begin();
	loop_defer_init(&d, seen.loop, defer_forever);
	loop_defer_schedule(&d);
	loop_timer_init(&t, seen.loop, timer_note);
	loop_timer_set(&t, NSEC_PER_MSEC);
	CHECK_INT(loop_run(seen.loop), 7);
	loop_timer_done(&t);
	loop_defer_done(&d);
	loop_end();
}

static void defer_thrice(struct loop_defer *d)
{
	if (++seen.n == 3)
		loop_quit(seen.loop, 5);
	else
		loop_defer_schedule(d);
}

/* Nothing else could wake the loop. */
static void defer_does_not_wait_for_others(void)
{
	struct loop_defer d;

	loop_begin();
	loop_defer_init(&d, seen.loop, defer_thrice);
	loop_defer_schedule(&d);
	CHECK_INT(loop_run(seen.loop), 5);
	CHECK_INT(seen.n, 3);
	loop_defer_done(&d);
	loop_end();
}

static void defer_quit(struct loop_defer *d)
{
	loop_quit(seen.loop, 3);
}

static void quit_is_not_lost(void)
{
	struct loop_defer d;

	loop_begin();
	loop_quit(seen.loop, 2);
	CHECK_INT(loop_run(seen.loop), 2);
	loop_defer_init(&d, seen.loop, defer_quit);
	loop_defer_schedule(&d);
	CHECK_INT(loop_run(seen.loop), 3);
	loop_defer_done(&d);
	loop_end();
}

/* ---- signals ---- */

static void signal_note(struct loop_signal *s, int sig, pid_t sender)
{
	seen.order[seen.n++] = sig;
	seen.sender = sender;
}

static void signal_comes_with_sender(void)
{
	static const int set[] = { SIGUSR1, SIGUSR2 };
	static const int wrong[] = { 4711 };
	struct loop_signal s;

	loop_begin();
	CHECK_INT(loop_signal_init(&s, seen.loop, wrong, 1, signal_note), -EINVAL);
	loop_signal_done(&s);
	CHECK(loop_signal_init(&s, seen.loop, set, ARRAY_SIZE(set), signal_note) == 0);
	CHECK(kill(getpid(), SIGUSR2) == 0);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	turns(3);
	CHECK_INT(seen.n, 2);
	CHECK_INT(seen.order[0] + seen.order[1], SIGUSR1 + SIGUSR2);
	CHECK_INT(seen.sender, getpid());
	/* sigqueue(3) goes through rt_sigqueueinfo(2), where the sender fills the record in. */
	CHECK(sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 0 }) == 0);
	turns(2);
	CHECK_INT(seen.n, 3);
	CHECK_INT(seen.sender, LOOP_SENDER_UNKNOWN);
	loop_signal_done(&s);
	loop_signal_done(&s);
	/* Still blocked, so this does not end the test. */
	CHECK(kill(getpid(), SIGUSR1) == 0);
	turns(1);
	CHECK_INT(seen.n, 3);
	loop_end();
}

/* ---- processes ---- */

/* A child with the exit signal `sig`, which ends as told. */
static int child_of(int sig, int exit_code, int die_by, int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD, .exit_signal = (unsigned)sig };
	pid_t pid;

	args.pidfd = (uintptr_t)ret_pidfd;
	pid = sysio_clone3(&args);
	if (pid == 0) {
		if (die_by)
			(void)kill(getpid(), die_by);
		_exit(exit_code);
	}
	return pid;
}

static void child_note(struct loop_child *c, int code, int status)
{
	seen.n++;
	seen.code = code;
	seen.status = status;
	loop_quit(seen.loop, 0);
}

static void child_is_reaped(void)
{
	static const struct {
		int sig, exit_code, die_by, code, status;
	} cases[] = {
		{ SIGCHLD, 0, 0, CLD_EXITED, 0 },
		{ SIGCHLD, 200, 0, CLD_EXITED, 200 },
		{ SIGCHLD, 0, SIGKILL, CLD_KILLED, SIGKILL },
		{ 0, 5, 0, CLD_EXITED, 5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_fd_ int pidfd = -1;
		struct loop_child c;
		pid_t pid;

		loop_begin();
		pid = child_of(cases[i].sig, cases[i].exit_code, cases[i].die_by, &pidfd);
		CHECK(pid > 0);
		loop_child_init(&c, seen.loop, pidfd, child_note);
		CHECK_INT(seen.n, 0);
		(void)loop_run(seen.loop);
		turns(2);
		CHECK_INT(seen.n, 1);
		CHECK_INT(seen.code, cases[i].code);
		CHECK_INT(seen.status, cases[i].status);
		CHECK(waitpid(pid, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD);
		loop_child_done(&c);
		loop_end();
	}
}

/* The loop leaves children alone that nobody watches (libev's default loop would reap them). */
static void child_of_others_is_left(void)
{
	_cleanup_fd_ int one = -1, two = -1;
	struct loop_child c;
	siginfo_t si;
	pid_t pid;

	loop_begin();
	pid = child_of(SIGCHLD, 9, 0, &one);
	CHECK(child_of(SIGCHLD, 0, 0, &two) > 0);
	loop_child_init(&c, seen.loop, two, child_note);
	(void)loop_run(seen.loop);
	(void)usleep(20000);
	turns(3);
	CHECK(waitid(P_PID, (id_t)pid, &si, WEXITED) == 0);
	CHECK_INT(si.si_status, 9);
	loop_end();
}

static void child_that_is_not_ours(void)
{
	int p[2], pidfd;
	struct loop_child c;
	pid_t middle, pid = 0;

	loop_begin();
	CHECK(pipe2(p, O_CLOEXEC) == 0);
	middle = fork();
	if (middle == 0) {
		pid = fork();
		if (pid == 0)
			(void)pause();
		_exit(write(p[1], &pid, sizeof(pid)) == sizeof(pid) ? 0 : 1);
	}
	CHECK(waitpid(middle, NULL, 0) == middle);
	CHECK(read(p[0], &pid, sizeof(pid)) == sizeof(pid));
	pidfd = pidfd_of(pid);
	CHECK(pidfd >= 0);
	loop_child_init(&c, seen.loop, pidfd, child_note);
	turns(2);
	CHECK_INT(seen.n, 0);
	CHECK(pidfd_kill(pidfd, SIGKILL) == 0);
	(void)loop_run(seen.loop);
	CHECK_INT(seen.n, 1);
	CHECK_INT(seen.code, 0);
	(void)close(pidfd);
	(void)close(p[0]);
	(void)close(p[1]);
	loop_end();
}

UNIT_MAIN({ "fd is level-triggered", fd_is_level_triggered },
	  { "hang-up is readable and writable", fd_hang_up_is_readable_and_writable },
	  { "a regular file is ready", fd_regular_file_is_ready },
	  { "the number of a descriptor is used again", fd_number_is_used_again },
	  { "done within a callback", fd_done_within_callback },
	  { "a timer fires once and not early", timer_fires_once_and_not_early },
	  { "a timer is stopped", timer_is_stopped },
	  { "a timer sets and frees itself", timer_sets_and_frees_itself },
	  { "defers run once and in order", defer_runs_once_in_order },
	  { "one runs last", defer_runs_last },
	  { "and where others never end", defer_runs_last_where_others_never_end },
	  { "a defer keeps nobody out", defer_keeps_nobody_out },
	  { "a defer does not wait for others", defer_does_not_wait_for_others },
	  { "quit is not lost", quit_is_not_lost },
	  { "signals come with their sender", signal_comes_with_sender },
	  { "a child is reaped", child_is_reaped },
	  { "children of others are left", child_of_others_is_left },
	  { "a process that is not our child", child_that_is_not_ours })
