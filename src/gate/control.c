/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"

static void control_hang_up(struct control *c)
{
	if (c->fd < 0)
		return;
	loop_fd_done(&c->source);
	c->fd = fd_close(c->fd);
	c->len = 0;
}

/* Whether there is more to be told, once there is room. */
static bool control_write(struct control *c)
{
	for (;;) {
		struct gatemsg m;
		ssize_t n;
		int len;

		if (c->len == 0) {
			if (!c->ops->next(c, &m))
				return false;
			len = gatemsg_encode(&m, c->packet, NULL);
			/* A text of ours that does not fit is our mistake, and no news. */
			if (len < 0)
				continue;
			c->len = (size_t)len;
		}
		n = send(c->fd, c->packet, c->len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		c->len = 0;
		if (n < 0) {
			control_hang_up(c);
			return false;
		}
	}
}

/* Hangs up on whoever says something else than a message. */
static void control_read(struct control *c)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct gatemsg m;
	ssize_t n = recv(c->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || (size_t)n > sizeof(packet) ||
	    gatemsg_decode(&m, packet, (size_t)n, NULL) < 0) {
		control_hang_up(c);
		return;
	}
	c->ops->on_message(c, &m);
}

static void control_event(struct loop_fd *source, unsigned events)
{
	struct control *c = container_of(source, struct control, source);

	if (events & LOOP_READ)
		control_read(c);
	if (c->fd >= 0)
		control_kick(c);
}

void control_kick(struct control *c)
{
	bool more;

	if (c->fd < 0)
		return;
	more = control_write(c);
	if (c->fd >= 0)
		loop_fd_set(&c->source, LOOP_READ | (more ? LOOP_WRITE : 0));
}

static void control_accept(struct loop_fd *source, unsigned events)
{
	struct control *c = container_of(source, struct control, listener);
	int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	control_hang_up(c);
	c->fd = fd;
	loop_fd_init(&c->source, c->loop, fd, LOOP_READ, control_event);
	c->ops->on_connect(c);
	control_kick(c);
}

int control_init(struct control *c, struct loop *loop, int listen_fd, const struct control_ops *ops)
{
	*c = (struct control){ .ops = ops, .loop = loop, .listen_fd = listen_fd, .fd = -1 };
	c->packet = malloc(GATEMSG_SIZE_MAX);
	if (!c->packet)
		return -ENOMEM;
	loop_fd_init(&c->listener, loop, listen_fd, LOOP_READ, control_accept);
	return 0;
}

ssize_t control_receive(int socket_fd, uint8_t *packet, size_t size, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = packet, .iov_len = size };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	const struct cmsghdr *c;
	ssize_t n = recvmsg(socket_fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret_fd = -1;
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return h.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}
