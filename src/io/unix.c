/* SPDX-License-Identifier: Apache-2.0 */
#include "io/unix.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"

/* ---- sockets by directory and name ---- */

/* bind(2) or connect(2). */
typedef int (*unix_act_fn)(int fd, const struct sockaddr *addr, socklen_t len);

static int unix_act(unix_act_fn act, int fd, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int r;

	r = str_copy(addr.sun_path, sizeof(addr.sun_path), path);
	if (r < 0)
		return r;
	return act(fd, (const struct sockaddr *)(const void *)&addr, sizeof(addr)) < 0 ? -errno : 0;
}

/* Whether path leads to dir_fd: no where /proc is missing or of another pid namespace. */
static bool unix_path_leads(const char *path, int dir_fd)
{
	struct stat a, b;

	return stat(path, &a) == 0 && fstat(dir_fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/*
 * The working directory belongs to the whole process, so this is for a keeper without a /proc,
 * whose other threads use no relative paths.
 */
static int unix_act_inside(unix_act_fn act, int fd, int dir_fd, const char *name)
{
	_cleanup_fd_ int was_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (was_fd < 0 || fchdir(dir_fd) < 0)
		return -errno;
	r = unix_act(act, fd, name);
	if (fchdir(was_fd) < 0 && r == 0)
		r = -errno;
	return r;
}

static int unix_act_at(unix_act_fn act, int fd, int dir_fd, const char *name)
{
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int r;

	if (dir_fd == AT_FDCWD)
		return unix_act(act, fd, name);
	r = str_printf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	if (r < 0)
		return r;
	if (!unix_path_leads(path, dir_fd))
		return unix_act_inside(act, fd, dir_fd, name);
	r = str_printf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd, name);
	if (r < 0)
		return r;
	return unix_act(act, fd, path);
}

/* Takes an old socket away, and nothing else. */
static int unix_clear(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	return sysio_unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int unix_listen_mode(int dir_fd, const char *name, int type, mode_t mode, struct error *err)
{
	_cleanup_fd_ int fd = sysio_socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;
	int r;

	if (fd < 0)
		return error_set(err, -errno, "make a socket for %s", name);
	/* bind() gives the name the mode of the socket itself, less the umask. */
	if (fchmod(fd, mode) < 0)
		return error_set(err, -errno, "set the mode of the socket %s", name);
	r = unix_clear(dir_fd, name);
	if (r < 0)
		return error_set(err, r, "replace the socket %s", name);
	mask = umask(0);
	r = unix_act_at(bind, fd, dir_fd, name);
	(void)umask(mask);
	if (r < 0)
		return error_set(err, r, "bind the socket %s", name);
	if (listen(fd, SOMAXCONN) < 0)
		return error_set(err, -errno, "listen on the socket %s", name);
	return TAKE_FD(fd);
}

int unix_listen(int dir_fd, const char *name, int type, struct error *err)
{
	return unix_listen_mode(dir_fd, name, type, 0600, err);
}

int unix_connect(int dir_fd, const char *name, int type, struct error *err)
{
	_cleanup_fd_ int fd = sysio_socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return error_set(err, -errno, "make a socket for %s", name);
	r = unix_act_at(connect, fd, dir_fd, name);
	if (r < 0) {
		(void)error_set(err, r, "connect to the socket %s", name);
		if (err && (r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN))
			err->kind = ERROR_UNAVAILABLE;
		return r;
	}
	return TAKE_FD(fd);
}

/* ---- abstract names ---- */

/* The listener there: its pid, or 0. */
static int unix_claimant(const struct sockaddr_un *addr, socklen_t len)
{
	_cleanup_fd_ int fd =
		sysio_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);

	if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)addr, len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return 0;
	return peer.pid;
}

int unix_claim(const char *name, int *ret_pid, struct error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd =
		sysio_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len;
	int r;

	*ret_pid = 0;
	if (fd < 0)
		return error_set(err, -errno, "make a socket for %s", name);
	r = str_copy(addr.sun_path + 1, sizeof(addr.sun_path) - 1, name);
	if (r < 0)
		return error_set(err, r, "claim the name %s", name);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	/* Nobody accepts: that it listens is how its pid can be asked for. */
	if (bind(fd, (const struct sockaddr *)(const void *)&addr, len) == 0 &&
	    listen(fd, SOMAXCONN) == 0)
		return TAKE_FD(fd);
	r = -errno;
	if (r == -EADDRINUSE)
		*ret_pid = unix_claimant(&addr, len);
	return error_set(err, r, "claim the name %s", name);
}

/* ---- who is there ---- */

/* A pidfd is readable once its process has ended, also before that is reaped. */
static bool unix_pid_lives(pid_t pid)
{
	_cleanup_fd_ int pidfd = pidfd_of(pid);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 ? poll(&p, 1, 0) == 0 : pidfd != -ESRCH;
}

bool unix_is_served(int dir_fd, const char *name, int type)
{
	_cleanup_fd_ int fd = sysio_socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	int r;

	r = fd < 0 ? -EBADF : unix_act_at(connect, fd, dir_fd, name);
	if (r < 0)
		return r == -EAGAIN;
	/* The kernel keeps the credentials of the time of listen(2). */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid <= 0)
		return true;
	return unix_pid_lives(cred.pid);
}

/* ---- descriptors by token ---- */

/* In the byte order of the machine, to which both ends belong. The target follows, without NUL. */
struct fdchan_header {
	uint32_t magic;
	uint32_t target_len;
	uint64_t token;
};

#define FDCHAN_MAGIC 0x6e616366U
/* More than the one that is meant, so that a sender of several is found out. */
#define FDCHAN_FDS 4

union fdchan_control {
	struct cmsghdr align;
	char room[CMSG_SPACE(FDCHAN_FDS * sizeof(int))];
};

static bool fdchan_target_ok(const char *target)
{
	return str_empty(target) || name_is_path(target);
}

/* What the kernel is told of one packet. */
struct fdchan_out {
	struct fdchan_header header;
	struct iovec iov[2];
	union fdchan_control control;
};

static void fdchan_fill(struct fdchan_out *out, struct msghdr *msg, uint64_t token, char *target,
			int fd)
{
	struct cmsghdr *c;

	*out = (struct fdchan_out){
		.header = { .magic = FDCHAN_MAGIC,
			    .token = token,
			    .target_len = (uint32_t)strlen(target) },
		.iov = { { .iov_base = &out->header, .iov_len = sizeof(out->header) },
			 { .iov_base = target, .iov_len = strlen(target) } },
	};
	*msg = (struct msghdr){ .msg_iov = out->iov,
				.msg_iovlen = ARRAY_SIZE(out->iov),
				.msg_control = out->control.room,
				.msg_controllen = CMSG_SPACE(sizeof(int)) };
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
}

/* All of them; they may go in several turns. */
static int fdchan_send_packets(int sock_fd, struct mmsghdr *packets, unsigned n)
{
	while (n > 0) {
		int sent = sendmmsg(sock_fd, packets, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		/* Too many descriptors are under way between sockets: as full as a full buffer. */
		if (sent < 0)
			return errno == ETOOMANYREFS ? -EAGAIN : -errno;
		packets += sent;
		n -= (unsigned)sent;
	}
	return 0;
}

int fdchan_send_all(int sock_fd, const uint64_t *tokens, const char *target, const int *fds,
		    size_t n)
{
	struct fdchan_out out[FDCHAN_TOGETHER];
	struct mmsghdr packets[FDCHAN_TOGETHER] = { { .msg_len = 0 } };
	char text[FDCHAN_TARGET_MAX];

	if (!fdchan_target_ok(target) || str_copy(text, sizeof(text), target ? target : "") < 0)
		return -EINVAL;
	for (size_t i = 0; i < n;) {
		unsigned n_here = 0;
		int r;

		for (; i < n && n_here < FDCHAN_TOGETHER; i++) {
			if (fds[i] < 0)
				continue;
			fdchan_fill(&out[n_here], &packets[n_here].msg_hdr, tokens[i], text,
				    fds[i]);
			n_here++;
		}
		r = fdchan_send_packets(sock_fd, packets, n_here);
		if (r < 0)
			return r;
	}
	return 0;
}

int fdchan_send(int sock_fd, uint64_t token, const char *target, int fd)
{
	return fd < 0 ? -EBADF : fdchan_send_all(sock_fd, &token, target, &fd, 1);
}

/* Takes the first descriptor of the message, closes all others. Returns how many came. */
static unsigned fdchan_take_fds(struct msghdr *msg, int *ret)
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n_here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n_here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n++ == 0)
				*ret = fd;
			else
				(void)fd_close(fd);
		}
	}
	return n;
}

static bool fdchan_parse(const struct fdchan_header *header, const char *target, size_t target_len,
			 struct fdchan_packet *to)
{
	if (header->magic != FDCHAN_MAGIC || header->target_len != target_len ||
	    target_len >= sizeof(to->target) || memchr(target, '\0', target_len))
		return false;
	to->token = header->token;
	memcpy(to->target, target, target_len);
	to->target[target_len] = '\0';
	return fdchan_target_ok(to->target);
}

int fdchan_receive(int sock_fd, struct fdchan_packet *ret)
{
	struct fdchan_header header = { .magic = 0 };
	char target[FDCHAN_TARGET_MAX];
	struct iovec iov[2] = { { .iov_base = &header, .iov_len = sizeof(header) },
				{ .iov_base = target, .iov_len = sizeof(target) } };
	union fdchan_control control = { .room = { 0 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = ARRAY_SIZE(iov) };
	struct fdchan_packet packet = { .fd = -1 };
	_cleanup_fd_ int fd = -1;
	unsigned n_fds;
	ssize_t n;

	msg.msg_control = control.room;
	msg.msg_controllen = sizeof(control.room);
	do {
		n = recvmsg(sock_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;

	n_fds = fdchan_take_fds(&msg, &fd);
	if (n == 0 && n_fds == 0 && !(msg.msg_flags & MSG_CTRUNC))
		return -EPIPE;
	if ((size_t)n < sizeof(header) || (msg.msg_flags & MSG_TRUNC))
		return -EPROTO;
	/* There was room for it, so the kernel could not put it into our table. */
	if (n_fds == 0 && (msg.msg_flags & MSG_CTRUNC))
		return -EMFILE;
	if (n_fds != 1 || (msg.msg_flags & MSG_CTRUNC))
		return -EPROTO;
	if (!fdchan_parse(&header, target, (size_t)n - sizeof(header), &packet))
		return -EPROTO;
	packet.fd = TAKE_FD(fd);
	*ret = packet;
	return 1;
}

/* SO_PEERPIDFD, which Debian's libc does not name. */
#define UNIX_PEERPIDFD 77

int unix_peer_process(int fd, pid_t *ret_pid)
{
	_cleanup_fd_ int pidfd = -1;
	socklen_t len = sizeof(pidfd), cred_len = sizeof(struct ucred);
	struct ucred cred;

	if (getsockopt(fd, SOL_SOCKET, UNIX_PEERPIDFD, &pidfd, &len) < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0)
		return -errno;
	if (cred.pid <= 0)
		return -ESRCH;
	*ret_pid = cred.pid;
	return TAKE_FD(pidfd);
}
