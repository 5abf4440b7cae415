/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/give.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

union give_room {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
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

int give_send(int spawner_fd, int fd)
{
	union give_room control = { .room = "" };
	char byte = 0;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(spawner_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int give_receive(int child_fd)
{
	union give_room control = { .room = "" };
	char byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	do
		n = recvmsg(child_fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EBADMSG;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}
