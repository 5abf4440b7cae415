/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/give.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"

union give_room {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int[GIVE_FDS_MAX]))];
};

int give_open(int *ret_spawner_fd, int *ret_child_fd, struct error *err)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return error_set(err, -errno, "make the socket for the root");
	*ret_spawner_fd = fds[0];
	*ret_child_fd = fds[1];
	return 0;
}

int give_send(int spawner_fd, const struct give *give, struct iovec *data, size_t n_data)
{
	union give_room control = { .room = "" };
	size_t size = give->n_fds * sizeof(int);
	struct msghdr msg = { .msg_iov = data,
			      .msg_iovlen = n_data,
			      .msg_control = control.room,
			      .msg_controllen = CMSG_SPACE(size) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(c), give->fds, size);
	return sendmsg(spawner_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int give_receive(int child_fd, struct give *ret, void *data, size_t size)
{
	union give_room control = { .room = "" };
	struct iovec room = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &room,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(child_fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	ret->n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(ret->fds, CMSG_DATA(c), ret->n_fds * sizeof(int));
	return (int)n;
}
