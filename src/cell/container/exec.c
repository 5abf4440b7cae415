/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/exec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/signal_name.h"
#include "base/text/str.h"
#include "cell/container/container.h"
#include "cell/container/session.h"
#include "cell/output/input.h"
#include "cell/output/terminal.h"
#include "cell/start/container_plan.h"
#include "cell/start/program.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

#define EXEC_READ_MAX 65536
#define EXEC_REASON_MAX 512
/* The exit code of a program whose output is not all there. */
#define EXEC_LOST 125
/* Past so many the output cannot be read. */
#define EXEC_READ_ERRORS_MAX 16
/* More than the kernel keeps between the two ends of a terminal. */
#define EXEC_TERMINAL_REST ((size_t)128 << 10)
/* Behind the end of its program an exec waits so long for others that hold its output open. */
#define EXEC_DRAIN_GRACE (200 * NSEC_PER_MSEC)

enum exec_event { EXEC_REAPED, EXEC_DRAINED, EXEC_CANCEL, EXEC_EVENT_COUNT };

#define NEVER EXEC_STATE_COUNT

static const enum exec_state edges[][EXEC_EVENT_COUNT] = {
	[EXEC_RUNNING] = { EXEC_DRAINING, NEVER, EXEC_CANCELLED },
	[EXEC_DRAINING] = { NEVER, EXEC_OVER, EXEC_OVER },
	[EXEC_CANCELLED] = { EXEC_OVER, NEVER, EXEC_CANCELLED },
	[EXEC_OVER] = { NEVER, NEVER, EXEC_OVER },
};
_Static_assert(ARRAY_SIZE(edges) == EXEC_STATE_COUNT, "each state has its edges");

static const enum isolate_ns exec_kinds[] = {
	[CONTAINER_NS_PID] = ISOLATE_NS_PID,
	[CONTAINER_NS_MOUNT] = ISOLATE_NS_MOUNT,
	[CONTAINER_NS_CGROUP] = ISOLATE_NS_CGROUP,
};
_Static_assert(ARRAY_SIZE(exec_kinds) == CONTAINER_NS_COUNT, "each namespace has its kind");

/*
 * Theory of operation: a program that ends closes its pipes one by one before it can be reaped, and
 * each end of a pipe would wake the keeper for itself. So the keeper holds the program's ends too,
 * until it has reaped it: then one look tells whether anybody else has them, or anything is left to
 * be read.
 */
struct exec_stream {
	struct keeper_exec *exec;
	struct loop_fd source;
	int fd;
	int child_fd; /* the program's end of the pipe, held until it is reaped */
	size_t left;  /* once cut: bytes that were in the pipe then */
};

struct keeper_exec {
	struct list link;
	struct container *container; /* NULL: gone */
	struct loop *loop;
	struct keeper_exec_ops ops;
	void *userdata;
	enum exec_state state;
	struct isolate_child child;
	pid_t session;
	struct loop_child watch;
	struct loop_fd report; /* of child.report_fd, where on_start is wanted */
	struct exec_stream streams[2];
	struct input input;
	struct terminal terminal;
	bool is_tty;
	int read_error; /* the last one that is not the end of a stream */
	int n_read_errors;
	struct loop_timer timer;
	struct loop_defer gone;
	bool paused;
	bool timed_out;
	bool cut;  /* who still holds its output open is not waited for */
	bool last; /* exec_cut() has counted what is left */
	int exit_code;
	int sig;
	char reason[EXEC_REASON_MAX];
};

static void stream_close(struct exec_stream *s)
{
	loop_fd_done(&s->source);
	s->fd = fd_close(s->fd);
	s->child_fd = fd_close(s->child_fd);
}

static void exec_close_streams(struct keeper_exec *x)
{
	for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
		stream_close(&x->streams[i]);
}

static void exec_leave_container(struct keeper_exec *x)
{
	list_remove(&x->link);
	if (x->container)
		x->container->n_execs--;
	x->container = NULL;
}

struct keeper_exec *exec_free(struct keeper_exec *x)
{
	if (!x)
		return NULL;
	exec_leave_container(x);
	exec_close_streams(x);
	input_done(&x->input);
	terminal_done(&x->terminal);
	loop_child_done(&x->watch);
	loop_fd_done(&x->report);
	loop_timer_done(&x->timer);
	loop_defer_done(&x->gone);
	isolate_child_done(&x->child);
	free(x);
	return NULL;
}

/* The only writer of the state. In OVER it is freed from the loop. */
static void exec_enter(struct keeper_exec *x, enum exec_event event)
{
	enum exec_state to = edges[x->state][event];

	assert(to != NEVER);
	x->state = to;
	if (to == EXEC_CANCELLED || to == EXEC_OVER) {
		exec_close_streams(x);
		input_done(&x->input);
		terminal_done(&x->terminal);
		loop_timer_stop(&x->timer);
	}
	if (to == EXEC_OVER)
		loop_defer_schedule(&x->gone);
}

static void exec_gone(struct loop_defer *defer)
{
	exec_free(container_of(defer, struct keeper_exec, gone));
}

/* Output that is missing must not look like none. */
static void exec_say_lost(struct keeper_exec *x)
{
	struct error err = ERROR_INIT;

	if (x->n_read_errors < EXEC_READ_ERRORS_MAX)
		return;
	(void)error_set(&err, x->read_error, "read its output");
	x->exit_code = EXEC_LOST;
	(void)str_copy(x->reason, sizeof(x->reason), error_text(&err));
}

/* Its end, if everything is there. The last callback is the last act. */
static void exec_finish(struct keeper_exec *x)
{
	if (x->state != EXEC_DRAINING || x->streams[0].fd >= 0 || x->streams[1].fd >= 0)
		return;
	exec_enter(x, EXEC_DRAINED);
	exec_say_lost(x);
	x->ops.on_exit(x->userdata, x->exit_code, x->sig, x->reason);
}

/* Nobody who could write is left, or is waited for: what the pipes hold now is the rest. */
static void exec_cut(struct keeper_exec *x)
{
	x->last = true;
	for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++) {
		struct exec_stream *s = &x->streams[i];
		int left = 0;

		if (s->fd < 0)
			continue;
		if (x->is_tty) {
			struct pollfd look = { .fd = s->fd, .events = POLLIN };

			/* What a terminal holds cannot be asked, but whether it holds anything. */
			s->left = EXEC_TERMINAL_REST;
			if (poll(&look, 1, 0) <= 0)
				stream_close(s);
			continue;
		}
		if (ioctl(s->fd, FIONREAD, &left) == 0 && left > 0)
			s->left = (size_t)left;
		else
			stream_close(s);
	}
}

/* Whether a read that failed was the last one: that of a terminal fails once its other end is
 * closed. Behind exec_cut() a stream that holds nothing is over, however much it held then:
 * strangers who have it open may have read that. */
static bool stream_is_over(struct exec_stream *s, int error)
{
	struct keeper_exec *x = s->exec;

	if (error == EAGAIN)
		return x->last;
	if (error == EINTR)
		return false;
	if (error == EIO && x->is_tty)
		return true;
	x->read_error = -error;
	return ++x->n_read_errors >= EXEC_READ_ERRORS_MAX;
}

/* Hands one read on; the callback may cancel the exec. */
static void stream_event(struct loop_fd *source, unsigned events)
{
	struct exec_stream *s = container_of(source, struct exec_stream, source);
	struct keeper_exec *x = s->exec;
	bool last = x->last;
	size_t max = last ? MIN(s->left, (size_t)EXEC_READ_MAX) : EXEC_READ_MAX;
	char *data = malloc(max);
	ssize_t n;

	/* Without memory the pipe keeps it; the next turn tries again. */
	if (!data)
		return;
	n = sysio_read(s->fd, data, max);
	if (n > 0)
		s->left -= last ? (size_t)n : 0;
	if (n == 0 || (n < 0 && stream_is_over(s, errno)) || (last && s->left == 0))
		stream_close(s);
	if (n > 0)
		x->ops.on_output(x->userdata, s == &x->streams[0] ? 1 : 2, data, (size_t)n);
	free(data);
	exec_finish(x);
}

/* The program is reaped: closes its ends, and each stream that is at its end by that. */
static void exec_close_ends(struct keeper_exec *x)
{
	struct pollfd look[ARRAY_SIZE(x->streams)];

	if (x->is_tty)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++) {
		x->streams[i].child_fd = fd_close(x->streams[i].child_fd);
		look[i] = (struct pollfd){ .fd = x->streams[i].fd, .events = POLLIN };
	}
	if (poll(look, ARRAY_SIZE(look), 0) <= 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
		if (look[i].revents == POLLHUP)
			stream_close(&x->streams[i]);
}

static void exec_record_end(struct keeper_exec *x, int code, int status)
{
	struct error err = ERROR_INIT;
	int exit_code = 0;
	int r;

	/* The child is gone, so this does not block. */
	r = isolate_child_report(&x->child, &exit_code, &err);
	if (r < 0) {
		x->exit_code = exit_code;
		(void)str_copy(x->reason, sizeof(x->reason), error_text(&err));
	} else if (x->timed_out) {
		x->exit_code = 128 + SIGKILL;
		x->sig = SIGKILL;
	} else if (code == CLD_EXITED) {
		x->exit_code = status;
	} else if (code == CLD_KILLED || code == CLD_DUMPED) {
		x->exit_code = 128 + status;
		x->sig = status;
	} else {
		x->exit_code = 255;
		(void)str_copy(x->reason, sizeof(x->reason),
			       "its exit status was taken by somebody else");
	}
}

static void exec_reaped(struct loop_child *watch, int code, int status)
{
	struct keeper_exec *x = container_of(watch, struct keeper_exec, watch);

	FAILPOINT_BEFORE("exec.exit");
	exec_record_end(x, code, status);
	loop_fd_done(&x->report);
	isolate_child_done(&x->child);
	exec_enter(x, EXEC_REAPED);
	FAILPOINT_AFTER("exec.exit");
	if (x->state == EXEC_DRAINING) {
		input_end(&x->input);
		terminal_let_go(&x->terminal);
		/* A terminal ends with the program that it was made for. */
		x->cut = x->cut || x->is_tty;
		exec_close_ends(x);
	}
	if (x->state == EXEC_DRAINING && x->cut)
		exec_cut(x);
	exec_finish(x);
	/* A child that the program left behind may never close the pipe. */
	if (x->state == EXEC_DRAINING && !x->last)
		loop_timer_set(&x->timer, EXEC_DRAIN_GRACE);
}

/* The end of the report is that of its steps; what it says of one that failed is left to
 * exec_record_end(). */
static void exec_reported(struct loop_fd *source, unsigned events)
{
	struct keeper_exec *x = container_of(source, struct keeper_exec, report);
	int n = 0;

	loop_fd_done(&x->report);
	if (x->state == EXEC_RUNNING && ioctl(x->child.report_fd, FIONREAD, &n) == 0 && n == 0)
		x->ops.on_start(x->userdata);
}

static void exec_kill(struct keeper_exec *x)
{
	if (x->container && !x->container->ended)
		session_kill(x->container->host->proc_fd, x->container->cgroup_fd, x->session);
	if (x->child.pidfd >= 0)
		(void)pidfd_kill(x->child.pidfd, SIGKILL);
}

static void exec_timeout(struct loop_timer *timer)
{
	struct keeper_exec *x = container_of(timer, struct keeper_exec, timer);

	/* The drain is over; what still holds the output lives on. */
	if (x->state != EXEC_RUNNING) {
		exec_cut(x);
		exec_finish(x);
		return;
	}
	x->timed_out = true;
	(void)str_copy(x->reason, sizeof(x->reason), KEEPER_EXEC_TIME_OVER);
	exec_kill(x);
	x->cut = true;
}

void exec_pause(struct keeper_exec *x, bool paused)
{
	x->paused = paused;
	for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
		if (x->streams[i].fd >= 0)
			loop_fd_set(&x->streams[i].source, paused ? 0 : LOOP_READ);
}

void exec_cancel(struct keeper_exec *x)
{
	exec_kill(x);
	exec_enter(x, EXEC_CANCEL);
}

/* ---- what its caller sends ---- */

int exec_write(struct keeper_exec *x, const void *data, size_t len, bool close,
	       void (*done)(void *userdata, const struct error *err), struct error *err)
{
	return input_write(&x->input, data, len, close, done, x->userdata, err);
}

int exec_resize(struct keeper_exec *x, const struct terminal_size *size, struct error *err)
{
	if (!x->is_tty)
		return error_field(err, ERROR_INVALID, "input.terminal", "the program has none");
	/* Behind its end nobody is left to care. */
	return terminal_is_open(&x->terminal) ? terminal_resize(&x->terminal, size, err) : 0;
}

int exec_signal(struct keeper_exec *x, int sig, struct error *err)
{
	int r = 0;

	if (sig < 1 || sig > SIGNAL_MAX_NUMBER)
		return error_field(err, ERROR_INVALID, "input.signal", "%d is not from 1 to %d",
				   sig, SIGNAL_MAX_NUMBER);
	if (x->child.pidfd >= 0)
		r = pidfd_kill(x->child.pidfd, sig);
	return r < 0 && r != -ESRCH ? error_set(err, r, "send signal %d to a program", sig) : 0;
}

/* ---- the start ---- */

static int exec_find_user(struct container *c, const char *user, struct isolate_user *ret,
			  struct error *err)
{
	_cleanup_fd_ int root_fd = -1;
	char name[32];

	if (str_empty(user)) {
		*ret = *c->user;
		return 0;
	}
	if (c->kind == CONTAINER_IMAGE) {
		/* Our own child, not reaped yet: the number can be no other process. */
		(void)str_printf(name, sizeof(name), "%d/root", (int)c->child.pid);
		root_fd = sysio_openat(c->host->proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (root_fd < 0)
			return error_set(err, -errno, "open the root of container %s", c->name);
	}
	return program_user(c->kind, root_fd, user, ret, err);
}

int exec_open_root(const struct container *c, const char **ret_name, struct error *err)
{
	int fd;

	if (c->kind != CONTAINER_IMAGE || c->status.state != CONTAINER_RUNNING || c->ended)
		return error_refuse(err, ERROR_PRECONDITION, "container %s %s", c->name,
				    c->kind == CONTAINER_IMAGE ? "does not run"
							       : "has no root of its own");
	/* Our own child, not reaped yet: the number can be no other process. */
	fd = isolate_root_open(c->host->proc_fd, c->child.pid);
	*ret_name = c->name;
	if (fd == -ENOENT || fd == -ESRCH)
		return error_refuse(err, ERROR_PRECONDITION, "container %s has ended", c->name);
	return fd < 0 ? error_set(err, fd, "open the root of container %s", c->name) : fd;
}

static int exec_open_namespaces(struct container *c, struct error *err)
{
	for (size_t i = 0; i < CONTAINER_NS_COUNT; i++) {
		if (c->ns_fd[i] >= 0)
			continue;
		c->ns_fd[i] = isolate_ns_open(c->host->proc_fd, c->child.pid, exec_kinds[i]);
		if (c->ns_fd[i] == -ENOENT || c->ns_fd[i] == -ESRCH)
			return error_refuse(err, ERROR_PRECONDITION, "container %s has ended",
					    c->name);
		if (c->ns_fd[i] < 0)
			return error_set(err, c->ns_fd[i], "open a namespace of container %s",
					 c->name);
	}
	return 0;
}

/* The container's own, so that its programs share no open file with anybody else's. */
static int exec_open_null(struct container *c, struct error *err)
{
	if (c->null_fd < 0)
		c->null_fd = isolate_null_open(err);
	return c->null_fd < 0 ? error_wrap(err, c->null_fd, "open what container %s reads", c->name)
			      : 0;
}

static int exec_plan(struct container *c, const struct isolate_user *user,
		     struct isolate_plan *plan, struct cell_maps *maps, struct error *err)
{
	int r;

	assert(c->status.state == CONTAINER_RUNNING);
	isolate_plan_init(plan);
	program_plan(plan, c->kind, user);
	plan->cgroup_fd = c->cgroup_fd;
	if (c->kind == CONTAINER_PROCESS) {
		container_plan_host(c, plan);
		return 0;
	}
	if (c->kind == CONTAINER_IMAGE)
		container_plan_security(c, plan);
	r = exec_open_namespaces(c, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < CONTAINER_NS_COUNT; i++) {
		plan->ns[exec_kinds[i]] = ISOLATE_JOIN;
		plan->ns_fd[exec_kinds[i]] = c->ns_fd[i];
	}
	cell_plan_join(c->cell, plan);
	if (c->kind == CONTAINER_IMAGE)
		cell_plan_users(c->cell, plan, maps);
	return 0;
}

static int exec_env(char ***ret, const struct container *c, const struct keeper_exec_spec *spec,
		    const struct isolate_user *user)
{
	_cleanup_str_ char *home = NULL;
	_cleanup_strv_ char **env = NULL;
	int r;

	r = program_env_over(&env, c->env, spec->env);
	if (r < 0)
		return r;
	/* A home that we have added is the one of the container's user, not of this one. */
	if (c->home_added && !str_empty(spec->user) && !strv_env_get(spec->env, "HOME")) {
		home = str_format("HOME=%s", user->home);
		r = home ? strv_env_put(&env, home) : -ENOMEM;
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(env);
	return 0;
}

/* The program's ends; where it has no input, -1 in the first. */
struct exec_stdio {
	int fds[3];
};

static void exec_stdio_done(struct exec_stdio *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->fds); i++)
		s->fds[i] = fd_close(s->fds[i]);
}

static int exec_open_pipe(int *ours, int *child, bool input, struct error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	*ours = ends[input ? 1 : 0];
	*child = ends[input ? 0 : 1];
	return 0;
}

static int exec_open_terminal(struct keeper_exec *x, struct container *c,
			      const struct keeper_exec_spec *spec, struct error *err)
{
	int r, fd;

	r = terminal_open_of(&x->terminal, c->host->proc_fd, c->child.pid, &spec->terminal, err);
	if (r < 0)
		return r;
	fd = terminal_dup(&x->terminal, err);
	x->streams[0].fd = fd;
	if (fd < 0 || !spec->stdin_open)
		return fd < 0 ? fd : 0;
	fd = terminal_dup(&x->terminal, err);
	return fd < 0 ? fd : input_start_terminal(&x->input, fd);
}

static int exec_open_stdio(struct keeper_exec *x, struct container *c,
			   const struct keeper_exec_spec *spec, struct exec_stdio *stdio,
			   struct error *err)
{
	int r = 0, fd = -1;

	x->is_tty = spec->tty;
	if (spec->tty)
		return exec_open_terminal(x, c, spec, err);
	if (spec->stdin_open)
		r = exec_open_pipe(&fd, &stdio->fds[0], true, err);
	if (r == 0 && fd >= 0)
		r = input_start(&x->input, fd);
	if (r == 0)
		r = exec_open_pipe(&x->streams[0].fd, &stdio->fds[1], false, err);
	if (r == 0)
		r = exec_open_pipe(&x->streams[1].fd, &stdio->fds[2], false, err);
	return r;
}

/*
 * A container that has handed controllers on to groups below its own (systemd does) lets no process
 * into its own any more: EBUSY. Who comes later then gets a group beside those.
 */
static int exec_spawn_below(struct keeper_exec *x, const struct container *c,
			    struct isolate_plan *plan, struct error *err)
{
	_cleanup_fd_ int group_fd = -1;

	*err = (struct error)ERROR_INIT;
	group_fd = cgroup_make(c->cgroup_fd, SESSION_GROUP, err);
	if (group_fd < 0)
		return group_fd;
	plan->cgroup_fd = group_fd;
	return isolate_spawn(plan, &x->child, err);
}

static int exec_spawn(struct keeper_exec *x, struct container *c,
		      const struct keeper_exec_spec *spec, struct error *err)
{
	_cleanup_(exec_stdio_done) struct exec_stdio stdio = { .fds = { -1, -1, -1 } };
	_cleanup_strv_ char **env = NULL;
	struct isolate_user user;
	struct isolate_plan plan;
	struct cell_maps maps;
	int r;

	r = exec_find_user(c, spec->user, &user, err);
	if (r < 0)
		return r;
	r = exec_plan(c, &user, &plan, &maps, err);
	if (r < 0)
		return r;
	r = exec_env(&env, c, spec, &user);
	if (r == 0 && spec->tty)
		r = program_env_terminal(&env);
	if (r < 0)
		return error_set(err, r, "make the environment of %s", spec->argv[0]);

	r = exec_open_stdio(x, c, spec, &stdio, err);
	if (r == 0 && !spec->tty && !spec->stdin_open)
		r = exec_open_null(c, err);
	if (r < 0)
		return r;
	plan.argv = spec->argv;
	plan.env = env;
	plan.cwd = str_empty(spec->cwd) ? c->cwd : spec->cwd;
	for (size_t i = 0; i < ARRAY_SIZE(stdio.fds); i++)
		plan.stdio[i] = spec->tty ? x->terminal.pty.slave_fd : stdio.fds[i];
	if (plan.stdio[0] < 0)
		plan.stdio[0] = c->null_fd;
	plan.terminal = spec->tty;
	r = FAILPOINT("exec.start");
	if (r < 0)
		return error_set(err, r, "start %s", spec->argv[0]);
	r = isolate_spawn(&plan, &x->child, err);
	if (r == -EBUSY && c->kind == CONTAINER_IMAGE)
		r = exec_spawn_below(x, c, &plan, err);
	if (r < 0)
		return r;
	FAILPOINT_AFTER("exec.start");
	/* A new session has the number of its first process. */
	x->session = x->child.pid;
	for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
		x->streams[i].child_fd = TAKE_FD(stdio.fds[i + 1]);
	return 0;
}

static int exec_check(const struct container *c, const struct keeper_exec_spec *spec,
		      struct error *err)
{
	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "container %s does not run", c->name);
	if (c->n_execs >= CONTAINER_EXECS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "container %s has %d execs already",
				    c->name, CONTAINER_EXECS_MAX);
	return program_check(spec->argv, spec->env, spec->cwd, spec->user, err);
}

/* Why it cannot be started where the container ends just now: each step has its own word for that,
 * and a clone into a pid namespace without an init calls it a lack of memory. */
static int exec_explain(const struct container *c, struct error *err)
{
	int fd = -1;

	if (c->kind != CONTAINER_IMAGE)
		return err->code;
	/* What ends gives this namespace up before it closes the one of its processes. */
	fd = isolate_ns_open(c->host->proc_fd, c->child.pid, ISOLATE_NS_MOUNT);
	if (fd == -ENOENT || fd == -ESRCH) {
		*err = (struct error)ERROR_INIT;
		return error_refuse(err, ERROR_PRECONDITION, "container %s has ended", c->name);
	}
	(void)fd_close(fd);
	return err->code;
}

int exec_new(struct keeper_exec **ret, struct container *c, const struct keeper_exec_spec *spec,
	     const struct keeper_exec_ops *ops, void *userdata, struct error *err)
{
	struct keeper_exec *x;
	int r;

	r = exec_check(c, spec, err);
	if (r < 0)
		return r;
	x = malloc(sizeof(*x));
	if (!x)
		return error_set(err, -ENOMEM, "make an exec in container %s", c->name);
	*x = (struct keeper_exec){ .loop = c->host->loop,
				   .ops = *ops,
				   .userdata = userdata,
				   .state = EXEC_RUNNING,
				   .terminal = TERMINAL_INIT,
				   .child = ISOLATE_CHILD_INIT };
	input_init(&x->input, x->loop);
	list_init(&x->link);
	loop_timer_init(&x->timer, x->loop, exec_timeout);
	loop_defer_init(&x->gone, x->loop, exec_gone);
	for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
		x->streams[i] = (struct exec_stream){ .exec = x, .fd = -1, .child_fd = -1 };
	r = exec_spawn(x, c, spec, err);
	if (r < 0) {
		exec_free(x);
		return exec_explain(c, err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(x->streams) && x->streams[i].fd >= 0; i++)
		loop_fd_init(&x->streams[i].source, x->loop, x->streams[i].fd, LOOP_READ,
			     stream_event);
	loop_child_init(&x->watch, x->loop, x->child.pidfd, exec_reaped);
	if (ops->on_start)
		loop_fd_init(&x->report, x->loop, x->child.report_fd, LOOP_READ, exec_reported);
	if (spec->timeout != NSEC_NEVER)
		loop_timer_set(&x->timer, spec->timeout);
	x->container = c;
	c->n_execs++;
	list_add_tail(&c->execs, &x->link);
	*ret = x;
	return 0;
}

/* ---- all of a list ---- */

struct keeper_exec *exec_first(struct list *execs)
{
	return list_first(execs, struct keeper_exec, link);
}

void exec_end_all(struct list *execs)
{
	struct keeper_exec *x;

	list_for_each (x, execs, struct keeper_exec, link) {
		x->cut = true;
		if (x->child.pidfd >= 0)
			(void)pidfd_kill(x->child.pidfd, SIGKILL);
		else if (x->state == EXEC_DRAINING)
			loop_timer_set(&x->timer, 0);
	}
}

void exec_detach_all(struct container *c, struct list *to)
{
	struct keeper_exec *x;

	list_for_each (x, &c->execs, struct keeper_exec, link) {
		exec_leave_container(x);
		list_add_tail(to, &x->link);
	}
}

bool exec_list_has_pid(struct list *execs, pid_t pid)
{
	struct keeper_exec *x;

	list_for_each (x, execs, struct keeper_exec, link)
		if (x->child.pidfd >= 0 && x->child.pid == pid)
			return true;
	return false;
}
