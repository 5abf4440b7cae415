/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "oci/config/given.h"

int message_send(int socket_fd, const void *data, size_t len, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	} control = { .bytes = "" };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds > MESSAGE_FDS_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *c = &control.align;

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
	}
	while (iov.iov_len > 0) {
		ssize_t n = sendmsg(socket_fd, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
	return 0;
}

void message_close(int fds[MESSAGE_FDS_MAX])
{
	for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
		fds[i] = fd_close(fds[i]);
}

int message_receive(int socket_fd, char *ret_byte, int ret_fds[MESSAGE_FDS_MAX])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	} control = { .bytes = "" };
	struct iovec iov = { .iov_base = ret_byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
		ret_fds[i] = -1;
	do
		n = recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(ret_fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return (int)n;
}

/* The address of a name; one that is long goes through /proc/self/fd of its directory, which *ret
 * keeps open. */
static int message_address(int dir_fd, const char *path, struct sockaddr_un *ret, int *ret_dir)
{
	const char *slash = strrchr(path, '/');
	int r;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (dir_fd >= 0)
		return str_printf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s",
				  dir_fd, path);
	if (strlen(path) < sizeof(ret->sun_path) || !slash)
		return str_copy(ret->sun_path, sizeof(ret->sun_path), path);
	{
		_cleanup_str_ char *dir = str_format("%.*s", (int)(slash - path), path);

		if (!dir)
			return -ENOMEM;
		*ret_dir = given_open(*dir ? dir : "/", O_PATH | O_DIRECTORY, 0);
	}
	if (*ret_dir < 0)
		return *ret_dir;
	r = str_printf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", *ret_dir,
		       slash + 1);
	return r;
}

int message_connect(int dir_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = -1, kept = -1;
	struct sockaddr_un addr;
	int r;

	r = message_address(dir_fd, path, &addr, &kept);
	if (r < 0)
		return error_set(err, r, "name the socket %s", path);
	fd = sysio_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return error_set(err, -errno, "connect to %s", path);
	return TAKE_FD(fd);
}

int message_listen(int dir_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = -1, kept = -1;
	struct sockaddr_un addr;
	int r;

	r = message_address(dir_fd, name, &addr, &kept);
	if (r < 0)
		return error_set(err, r, "name the socket %s", name);
	fd = sysio_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "make a socket");
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1) < 0)
		return error_set(err, -errno, "listen on %s", name);
	return TAKE_FD(fd);
}
