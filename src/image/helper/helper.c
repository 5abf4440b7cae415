/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/helper.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "image/helper/helper_env.h"

#define HELPER_MESSAGES_PER_TURN 64
/* Bytes that wait in the socket: the names of FETCH_IMAGES_MAX images, twice. */
#define HELPER_ROOM (8 << 20)

static void helper_fail(struct helper *h, const struct error *err)
{
	if (!h->err.code)
		h->err = *err;
	helper_kill(h);
}

static void helper_take(struct helper *h, const uint8_t *packet, size_t len)
{
	struct error err = ERROR_INIT;
	struct fetchmsg m;
	int r;

	r = fetchmsg_decode(&m, packet, len, &err);
	if (r < 0) {
		(void)error_wrap(&err, r, "%s sent something else than", h->name);
	} else if (m.type == FETCHMSG_ERROR) {
		(void)str_copy(err.text, sizeof(err.text), m.error.text);
		err.kind = (enum error_kind)m.error.kind;
		err.code = -(int)m.error.code;
	} else if (h->ops->on_message(h, &m, &err) == 0) {
		return;
	}
	helper_fail(h, &err);
}

/* 1: a packet was taken, 0: none waits, -1: no more will come. */
static int helper_receive(struct helper *h)
{
	static uint8_t packet[FETCHMSG_SIZE_MAX];
	ssize_t n;

	/* A helper that ends without having read all that it was told resets the connection; that
	 * is told once, in front of its last words. */
	do {
		n = recv(h->sock_fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	if (n == 0)
		return -1;
	/* What comes after the first fault is not looked at. */
	if (!h->err.code)
		helper_take(h, packet, (size_t)n);
	return 1;
}

static void helper_room(struct helper *h)
{
	struct error err = ERROR_INIT;

	loop_fd_set(&h->sock, LOOP_READ);
	if (!h->err.code && h->ops->on_room(h, &err) < 0)
		helper_fail(h, &err);
}

static void helper_sock_event(struct loop_fd *source, unsigned events)
{
	struct helper *h = container_of(source, struct helper, sock);
	int r = 1;

	if (events & LOOP_WRITE)
		helper_room(h);
	for (int i = 0; i < HELPER_MESSAGES_PER_TURN && r > 0; i++)
		r = helper_receive(h);
	/* At the end the descriptor would stay readable; the process's own end says the rest. */
	if (r < 0)
		loop_fd_done(&h->sock);
}

static void helper_read_report(struct helper *h)
{
	struct error err = ERROR_INIT;
	int exit_code;

	if (h->reported)
		return;
	h->reported = true;
	loop_fd_done(&h->report);
	if (isolate_child_report(&h->child, &exit_code, &err) < 0)
		helper_fail(h, &err);
}

static void helper_report_event(struct loop_fd *source, unsigned events)
{
	helper_read_report(container_of(source, struct helper, report));
}

static void helper_judge(struct helper *h, int code, int status)
{
	if (h->err.code)
		return;
	if (code == CLD_EXITED && status == 0)
		return;
	if (code == CLD_EXITED)
		(void)error_refuse(&h->err, ERROR_FAULT, "%s ended with status %d without a reason",
				   h->name, status);
	else if (status == SIGXCPU)
		(void)error_refuse(&h->err, ERROR_EXHAUSTED, "%s used up its processor time",
				   h->name);
	else
		(void)error_refuse(&h->err, ERROR_FAULT, "%s was killed by signal %d", h->name,
				   status);
}

static void helper_release(struct helper *h)
{
	loop_fd_done(&h->sock);
	loop_fd_done(&h->report);
	loop_child_done(&h->watch);
	isolate_child_done(&h->child);
	h->sock_fd = fd_close(h->sock_fd);
	h->running = false;
}

static void helper_child_event(struct loop_child *source, int code, int status)
{
	struct helper *h = container_of(source, struct helper, watch);
	struct error err;

	/* The process is gone: what it wrote is all there. */
	helper_read_report(h);
	while (helper_receive(h) > 0)
		;
	helper_judge(h, code, status);
	helper_release(h);
	err = h->err;
	h->ops->on_end(h, err.code ? &err : NULL);
}

static int helper_send(int fd, const struct fetchmsg *m, const int *fds, size_t n_fds,
		       struct error *err)
{
	static uint8_t packet[FETCHMSG_SIZE_MAX];
	union {
		char room[CMSG_SPACE(sizeof(int) * HELPER_FDS_MAX)];
		struct cmsghdr align;
	} control = { .room = { 0 } };
	struct iovec part = { .iov_base = packet };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;
	int len;

	assert(n_fds <= HELPER_FDS_MAX);
	len = fetchmsg_encode(m, packet, err);
	if (len < 0)
		return len;
	part.iov_len = (size_t)len;
	if (n_fds > 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(sizeof(int) * n_fds) };
		memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * n_fds);
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? error_set(err, -errno, "send a message to a helper") : 0;
}

/*
 * Should: give the helper new namespaces of every kind but the user's and the cgroup's (and the
 * network's, for one that loads from there; for one that unpacks network and mounts are
 * helper_namespaces.h's, and it goes to the mounts itself), its descriptors, and no more privilege
 * than its first steps need. Must not: hand down anything else.
 */
static int helper_spawn(struct helper *h, const struct helper_config *config, int sock_fd,
			struct error *err)
{
	char *argv[] = { NULL, NULL, NULL };
	_cleanup_str_ char *path = strdup(config->path);
	_cleanup_str_ char *command = strdup(config->command);
	_cleanup_strv_ char **env = NULL;
	struct isolate_plan plan;

	env = helper_env();
	if (!path || !command || !env)
		return error_set(err, -ENOMEM, "start a helper");
	argv[0] = path;
	argv[1] = command;
	isolate_plan_init(&plan);
	plan.ns[ISOLATE_NS_PID] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_MOUNT] = config->mount_ns_fd >= 0 ? ISOLATE_KEEP : ISOLATE_NEW;
	plan.ns[ISOLATE_NS_NET] = config->network ? ISOLATE_KEEP : ISOLATE_NEW;
	if (config->net_ns_fd >= 0) {
		plan.ns[ISOLATE_NS_NET] = ISOLATE_JOIN;
		plan.ns_fd[ISOLATE_NS_NET] = config->net_ns_fd;
	}
	plan.ns[ISOLATE_NS_IPC] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_UTS] = ISOLATE_NEW;
	plan.argv = argv;
	plan.env = env;
	plan.caps = config->caps;
	plan.no_new_privs = true;
	plan.new_session = true;
	plan.stdio[2] = STDERR_FILENO;
	plan.keep_fds[0] = sock_fd;
	plan.keep_fds[1] = config->from_fd;
	plan.keep_fds[2] = config->to_fd;
	plan.n_keep_fds = 3;
	if (config->mount_ns_fd >= 0)
		plan.keep_fds[plan.n_keep_fds++] = config->mount_ns_fd;
	if (config->more_fd >= 0)
		plan.keep_fds[plan.n_keep_fds++] = config->more_fd;
	return isolate_spawn(&plan, &h->child, err);
}

int helper_start(struct helper *h, const struct helper_config *config, const struct helper_ops *ops,
		 struct error *err)
{
	_cleanup_fd_ int theirs = -1;
	_cleanup_fd_ int ours = -1;
	static const int room = HELPER_ROOM;
	const char *name;
	int pair[2];
	int r;

	assert(!h->running);
	name = strrchr(config->path, '/');
	*h = (struct helper){
		.ops = ops, .child = ISOLATE_CHILD_INIT, .sock_fd = -1, .err = ERROR_INIT
	};
	(void)str_copy(h->name, sizeof(h->name), name ? name + 1 : config->path);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, -errno, "make a socket for a helper");
	ours = pair[0];
	theirs = pair[1];
	r = fd_set_nonblock(ours, true);
	if (r < 0)
		return error_set(err, r, "make a socket for a helper");
	/* What a request may be followed by at once. */
	if (setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) < 0)
		(void)setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	/* It waits in the socket until the helper reads it. */
	r = helper_send(ours, config->request, NULL, 0, err);
	if (r == 0)
		r = helper_spawn(h, config, theirs, err);
	if (r < 0)
		return error_wrap(err, r, "start %s", config->path);
	h->sock_fd = TAKE_FD(ours);
	h->running = true;
	loop_fd_init(&h->sock, config->loop, h->sock_fd, LOOP_READ, helper_sock_event);
	loop_fd_init(&h->report, config->loop, h->child.report_fd, LOOP_READ, helper_report_event);
	loop_child_init(&h->watch, config->loop, h->child.pidfd, helper_child_event);
	return 0;
}

int helper_tell(struct helper *h, const struct fetchmsg *m, const int *fds, size_t n_fds,
		struct error *err)
{
	int r;

	if (!h->running)
		return 0;
	r = helper_send(h->sock_fd, m, fds, n_fds, err);
	/* It is gone: its end says why. */
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

void helper_await_room(struct helper *h)
{
	if (h->running)
		loop_fd_set(&h->sock, LOOP_READ | LOOP_WRITE);
}

void helper_kill(struct helper *h)
{
	if (h->running)
		(void)pidfd_kill(h->child.pidfd, SIGKILL);
}

void helper_done(struct helper *h)
{
	if (!h->running)
		return;
	helper_kill(h);
	helper_release(h);
}
