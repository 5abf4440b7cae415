/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/checkpoint/criu.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/spawn/spawn.h"
#include "oci/config/given.h"

#define CRIU_PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define CRIU_SOCKET "3"

/* ---- the program ---- */

static bool criu_is_there(const char *path)
{
	_cleanup_fd_ int fd = given_open(path, O_PATH, 0);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

int criu_find(struct criu *c)
{
	const char *path = strv_env_get(environ, "PATH");

	for (const char *at = str_empty(path) ? CRIU_PATH_DEFAULT : path; at;) {
		size_t len = strcspn(at, ":");

		if (len > 0 &&
		    str_printf(c->path, sizeof(c->path), "%.*s/criu", (int)len, at) > 0 &&
		    criu_is_there(c->path))
			return 0;
		at = at[len] ? at + len + 1 : NULL;
	}
	return -ENOENT;
}

/* What it executes itself (tar, ip, iptables) it looks for in PATH. */
static int criu_set_env(struct criu *c)
{
	c->env = strv_copy(environ);
	if (!c->env)
		return -ENOMEM;
	return str_empty(strv_env_get(c->env, "PATH"))
		       ? strv_env_put(&c->env, "PATH=" CRIU_PATH_DEFAULT)
		       : 0;
}

void criu_done(struct criu *c)
{
	strv_free(c->env);
	c->env = NULL;
}

/* ---- one conversation ---- */

struct talk {
	const struct criu_job *job;
	struct isolate_child child;
	struct arena arena;
	int fd;     /* our end */
	bool ended; /* criu, and it was reaped */
};

#define TALK_INIT                                                                                  \
	{                                                                                          \
		.child = ISOLATE_CHILD_INIT, .fd = -1, .arena = ARENA_INIT_LIMIT(1 << 20)          \
	}

/* How criu ended. */
static void talk_wait(struct talk *t, siginfo_t *info)
{
	int r;

	*info = (siginfo_t){ .si_pid = 0 };
	do
		r = waitid(P_PIDFD, (id_t)t->child.pidfd, info, WEXITED);
	while (r < 0 && errno == EINTR);
	t->ended = true;
}

/* A caller that goes away early closes the socket: criu then takes back what it has done, and ends.
 */
static void talk_done(struct talk *t)
{
	siginfo_t info;

	t->fd = fd_close(t->fd);
	if (t->child.pidfd >= 0 && !t->ended)
		talk_wait(t, &info);
	isolate_child_done(&t->child);
	arena_done(&t->arena);
}

static void talk_plan(const struct criu *c, const struct criu_job *job, struct isolate_plan *plan)
{
	isolate_plan_init(plan);
	plan->env = c->env;
	plan->cwd = "/";
	plan->keep_credentials = true;
	plan->keep_oom_score = true;
	plan->stdio[1] = STDERR_FILENO;
	plan->stdio[2] = STDERR_FILENO;
	for (int i = 0; job->has_streams && i < 3; i++)
		plan->stdio[i] = i;
	plan->cgroup_fd = job->group_fd;
}

static int talk_begin(struct talk *t, const struct criu *c, const struct criu_job *job,
		      struct error *err)
{
	const char *const argv[] = { c->path, "swrk", CRIU_SOCKET, NULL };
	struct isolate_plan plan;
	int pair[2], status = 0;
	int r;

	t->job = job;
	talk_plan(c, job, &plan);
	plan.argv = (char *const *)(uintptr_t)argv;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, -errno, "make a pair of sockets");
	t->fd = pair[0];
	plan.keep_fds[plan.n_keep_fds++] = pair[1];
	for (size_t i = 0; i < job->n_keep_fds; i++)
		plan.keep_fds[plan.n_keep_fds++] = job->keep_fds[i];
	r = isolate_spawn(&plan, &t->child, err);
	if (r == 0)
		r = isolate_child_report(&t->child, &status, err);
	(void)fd_close(pair[1]);
	return r < 0 ? error_wrap(err, r, "start criu") : 0;
}

static int talk_send(const struct talk *t, const struct buf *b)
{
	ssize_t n;

	do
		n = send(t->fd, buf_data(b), b->len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* criu is gone without a last word. */
static int talk_ended(struct talk *t, struct error *err)
{
	siginfo_t info;

	talk_wait(t, &info);
	if (info.si_code == CLD_EXITED)
		return error_refuse(err, ERROR_FAULT, "it ended with status %d and did not say why",
				    info.si_status);
	return error_refuse(err, ERROR_FAULT, "it was killed by signal %d", info.si_status);
}

/* Until there is a packet: 1, or 0 once criu has ended without one. The processes that it makes
 * have its end of the socket for a while: that it is closed does not tell. */
static int talk_await(const struct talk *t)
{
	struct pollfd p[] = {
		{ .fd = t->fd, .events = POLLIN },
		{ .fd = t->child.pidfd, .events = POLLIN },
	};
	int r;

	do
		r = poll(p, ARRAY_SIZE(p), -1);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	/* What it said last may have come between the two. */
	if (!p[0].revents)
		r = poll(p, 1, 0);
	return p[0].revents & POLLIN ? 1 : 0;
}

/* One packet with at most one descriptor: its length, 0 at the end. */
static ssize_t talk_receive(const struct talk *t, uint8_t *data, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = "" };
	struct iovec iov = { .iov_base = data, .iov_len = CRIU_MESSAGE_MAX };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n = talk_await(t);

	if (n <= 0)
		return n;
	do
		n = recvmsg(t->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

static int talk_hear(struct talk *t, struct criu_answer *ret, int *ret_fd, struct error *err)
{
	uint8_t *data = arena_alloc(&t->arena, CRIU_MESSAGE_MAX);
	ssize_t n;

	if (!data)
		return error_set(err, -ENOMEM, "hear it");
	n = talk_receive(t, data, ret_fd);
	if (n < 0)
		return error_set(err, (int)n, "hear it");
	return n == 0 ? talk_ended(t, err) : criu_answer_read(ret, &t->arena, data, (size_t)n, err);
}

/* What criu did not do, in its own words. */
static int talk_refused(const struct criu_answer *a, struct error *err)
{
	if (!str_empty(a->message))
		return error_refuse(err, ERROR_FAULT, "%.200s", a->message);
	return a->number > 0 && a->number < 4096
		       ? error_set(err, -(int)a->number, "it gives no reason")
		       : error_refuse(err, ERROR_FAULT, "it gives no reason");
}

/* 1 with the last answer, 0 after a notice. */
static int talk_turn(struct talk *t, struct criu_answer *a, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	int r;

	arena_done(&t->arena);
	r = talk_hear(t, a, &fd, err);
	if (r < 0)
		return r;
	if (!a->success)
		return talk_refused(a, err);
	if (a->type == (uint64_t)t->job->type)
		return 1;
	if (a->type != CRIU_NOTIFY || !a->script)
		return error_refuse(err, ERROR_FAULT, "it answers another question");
	r = t->job->notify ? t->job->notify(t->job->data, a, fd, err) : 0;
	if (criu_notified_write(&b, r == 0) < 0 || talk_send(t, &b) < 0)
		return r < 0 ? r : error_refuse(err, ERROR_FAULT, "it went away");
	return r;
}

static int talk_through(struct talk *t, struct criu_answer *a, struct error *err)
{
	int r;

	do
		r = talk_turn(t, a, err);
	while (r == 0);
	return r < 0 ? r : 0;
}

static int criu_ask(const struct criu *c, const struct criu_job *job, bool mem_track,
		    struct criu_answer *ret, struct error *err)
{
	_cleanup_(talk_done) struct talk t = TALK_INIT;
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = criu_request_write(&b, job->type, job->options, mem_track);
	if (r < 0)
		return error_set(err, r, "ask criu");
	r = talk_begin(&t, c, job, err);
	if (r < 0)
		return r;
	/* Where it cannot be sent, criu has ended: hearing says how. */
	(void)talk_send(&t, &b);
	r = talk_through(&t, ret, err);
	if (r < 0 && !job->log)
		return error_wrap(err, r, "criu could not %s", job->what);
	if (r < 0)
		return error_wrap(err, r, "criu could not %s, see %.200s", job->what, job->log);
	ret->message = NULL;
	ret->script = NULL;
	return 0;
}

int criu_run(const struct criu *c, const struct criu_job *job, pid_t *ret_restored,
	     struct error *err)
{
	struct criu_answer a;
	int r = criu_ask(c, job, false, &a, err);

	if (r == 0 && ret_restored)
		*ret_restored = a.restored;
	return r;
}

/* ---- questions ---- */

static int criu_set_version(struct criu *c, struct error *err)
{
	const struct criu_job job = { .type = CRIU_VERSION,
				      .what = "say its version",
				      .group_fd = -1 };
	struct criu_answer a;
	int r;

	r = criu_ask(c, &job, false, &a, err);
	if (r < 0)
		return r;
	c->version = a.version;
	if (c->version >= CRIU_VERSION_MIN)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "%s has version %u.%u.%u: at least %d.%d is "
			    "needed",
			    c->path, c->version / 10000, c->version / 100 % 100, c->version % 100,
			    CRIU_VERSION_MIN / 10000, CRIU_VERSION_MIN / 100 % 100);
}

int criu_open(struct criu *c, struct error *err)
{
	int r = criu_find(c);

	if (r < 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "checkpoint and restore need the program criu, which is not "
				    "in PATH");
	r = criu_set_env(c);
	return r < 0 ? error_set(err, r, "copy the environment") : criu_set_version(c, err);
}

int criu_need_mem_track(const struct criu *c, struct error *err)
{
	const struct criu_job job = { .type = CRIU_FEATURE_CHECK,
				      .what = "say what it can do",
				      .group_fd = -1 };
	struct criu_answer a;
	int r = criu_ask(c, &job, true, &a, err);

	if (r < 0 || a.mem_track)
		return r;
	return error_refuse(err, ERROR_PRECONDITION,
			    "criu cannot tell here which pages of memory have changed");
}
