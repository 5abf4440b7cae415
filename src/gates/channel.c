/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/channel.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"

#define CHANNEL_MESSAGES_PER_TURN 16
#define CAP(name) (UINT64_C(1) << (name))

/* A packet that waits. */
struct channel_packet {
	struct list siblings;
	size_t len;
	uint8_t data[];
};

static uint8_t channel_packet[GATEMSG_SIZE_MAX];

static void channel_drop(struct channel *c, struct channel_packet *p)
{
	list_remove(&p->siblings);
	c->n_queued--;
	free(p);
}

void channel_done(struct channel *c)
{
	struct channel_packet *p;

	if (c->fd < 0)
		return;
	loop_fd_done(&c->source);
	c->fd = fd_close(c->fd);
	list_for_each (p, &c->queue, struct channel_packet, siblings)
		channel_drop(c, p);
	if (c->gone)
		*c->gone = true;
}

/* 0: sent; -EAGAIN. An end shows where the socket is read. */
static int channel_push(const struct channel *c, const uint8_t *data, size_t len)
{
	ssize_t n = send(c->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : 0;
}

static void channel_write(struct channel *c)
{
	struct channel_packet *p;

	list_for_each (p, &c->queue, struct channel_packet, siblings) {
		if (channel_push(c, p->data, p->len) < 0)
			break;
		channel_drop(c, p);
	}
	loop_fd_set(&c->source, LOOP_READ | (c->n_queued ? LOOP_WRITE : 0));
}

/* A packet, with at most one descriptor; *ret_fd is -1 without. */
static ssize_t channel_receive(int fd, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = channel_packet, .iov_len = sizeof(channel_packet) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = CMSG_LEN(sizeof(int)) }; /* not two */
	const struct cmsghdr *c;
	ssize_t n;

	*ret_fd = -1;
	n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return h.msg_flags & MSG_TRUNC ? -EBADMSG : n;
}

/* 1: a message was taken; 0: none is there; else it was the end. */
static int channel_read(struct channel *c, struct error *err)
{
	_cleanup_fd_ int passed = -1;
	struct gatemsg m;
	ssize_t n = channel_receive(c->fd, &passed);
	int r;

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return error_set(err, n < 0 ? (int)n : -EPIPE, "nacre-gate");
	r = gatemsg_decode(&m, channel_packet, (size_t)n, err);
	if (r < 0)
		return error_wrap(err, r, "nacre-gate");
	c->passed_fd = &passed;
	c->ops->on_message(c, &m);
	return 1;
}

/* gone: set by channel_done(), until it is NULL again. */
static void channel_watch_end(struct channel *c, bool *gone)
{
	c->gone = gone;
}

/* At most `most` messages. */
static void channel_take(struct channel *c, unsigned most)
{
	struct error err = ERROR_INIT;
	bool *outer = c->gone;
	bool gone = false;
	int r = 1;

	channel_watch_end(c, &gone);
	for (unsigned i = 0; i < most && r > 0 && !gone; i++)
		r = channel_read(c, &err);
	if (gone && outer)
		*outer = true;
	if (gone)
		return;
	channel_watch_end(c, outer);
	if (r >= 0)
		return;
	loop_fd_done(&c->source);
	c->ops->on_end(c, &err);
}

static void channel_event(struct loop_fd *source, unsigned events)
{
	struct channel *c = container_of(source, struct channel, source);

	if (events & LOOP_WRITE)
		channel_write(c);
	channel_take(c, CHANNEL_MESSAGES_PER_TURN);
}

void channel_drain(struct channel *c)
{
	if (c->fd >= 0)
		channel_take(c, UINT_MAX);
}

int channel_pair(int *ours, int *theirs, struct error *err)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, -errno, "make a socket for nacre-gate");
	*ours = pair[0];
	*theirs = pair[1];
	r = fd_set_nonblock(*ours, true);
	return r < 0 ? error_set(err, r, "make a socket for nacre-gate") : 0;
}

void channel_init(struct channel *c, struct loop *loop, int fd, const struct channel_ops *ops)
{
	*c = (struct channel){ .ops = ops, .fd = fd };
	list_init(&c->queue);
	loop_fd_init(&c->source, loop, fd, LOOP_READ, channel_event);
}

int channel_send(struct channel *c, const struct gatemsg *m, struct error *err)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct channel_packet *p;
	int len = gatemsg_encode(m, packet, err);

	if (len < 0)
		return len;
	if (c->n_queued == 0 && channel_push(c, packet, (size_t)len) == 0)
		return 0;
	if (c->n_queued == CHANNEL_QUEUE_MAX)
		return error_set(err, -ENOBUFS, "tell nacre-gate");
	p = malloc(sizeof(*p) + (size_t)len);
	if (!p)
		return error_set(err, -ENOMEM, "tell nacre-gate");
	*p = (struct channel_packet){ .len = (size_t)len };
	memcpy(p->data, packet, (size_t)len);
	list_init(&p->siblings);
	list_add_tail(&c->queue, &p->siblings);
	c->n_queued++;
	loop_fd_set(&c->source, LOOP_READ | LOOP_WRITE);
	return 0;
}

int channel_send_fd(struct channel *c, const struct gatemsg *m, int fd, struct error *err)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	int len = gatemsg_encode(m, packet, err);
	struct iovec iov = { .iov_base = packet };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&h);

	if (len < 0)
		return len;
	if (c->fd < 0 || c->n_queued > 0)
		return error_set(err, -EAGAIN, "tell nacre-gate");
	iov.iov_len = (size_t)len;
	*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(c->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return error_set(err, -errno, "tell nacre-gate");
	return 0;
}

/*
 * Should: leave the steps of gate/drop.c their capabilities, and hand down the listed descriptors.
 * Must not: hand down anything else.
 */
int channel_spawn(const struct channel_spawn *spec, struct isolate_child *ret, struct error *err)
{
	static char *const env[] = { NULL };
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	if (spec->net_fd >= 0) {
		plan.ns[ISOLATE_NS_NET] = ISOLATE_JOIN;
		plan.ns_fd[ISOLATE_NS_NET] = spec->net_fd;
	}
	plan.cgroup_fd = spec->cgroup_fd;
	plan.argv = spec->argv;
	plan.env = env;
	plan.caps = CAP(CAP_SYS_ADMIN) | CAP(CAP_SETUID) | CAP(CAP_SETGID) | CAP(CAP_SETPCAP);
	plan.no_new_privs = true;
	plan.new_session = true;
	plan.stdio[2] = STDERR_FILENO;
	for (size_t i = 0; i < spec->n_fds; i++)
		plan.keep_fds[i] = spec->fds[i];
	plan.n_keep_fds = spec->n_fds;
	return isolate_spawn(&plan, ret, err);
}

int channel_spawn_role(const char *program, const char *role, uid_t uid, gid_t gid, const int *fds,
		       size_t n_fds, struct isolate_child *ret, struct error *err)
{
	char user[16], group[16];
	char *argv[5] = { (char *)(uintptr_t)program };
	const struct channel_spawn spec = {
		.argv = argv, .net_fd = -1, .cgroup_fd = -1, .fds = fds, .n_fds = n_fds
	};
	size_t n = 1;

	if (role)
		argv[n++] = (char *)(uintptr_t)role;
	argv[n++] = user;
	argv[n] = group;
	(void)str_printf(user, sizeof(user), "%u", uid);
	(void)str_printf(group, sizeof(group), "%u", gid);
	return channel_spawn(&spec, ret, err);
}
