/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file/sysio.h"
#include "base/text/str.h"

#define FD_NULL_MAJOR 1
#define FD_NULL_MINOR 3

int fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved;
	return -1;
}

/* Opens the lowest free number, which is fd. Not close-on-exec, as no standard stream is. */
static int fd_open_null_at(int fd)
{
	struct stat st;
	int at = sysio_openat(AT_FDCWD, "/dev/null", O_RDWR | O_NOCTTY, 0);
	int r = at < 0 ? -errno : 0;

	if (r == 0 && fstat(at, &st) < 0)
		r = -errno;
	if (r == 0 && (at != fd || !S_ISCHR(st.st_mode) ||
		       st.st_rdev != makedev(FD_NULL_MAJOR, FD_NULL_MINOR)))
		r = -ENODEV;
	if (r < 0)
		(void)fd_close(at);
	return r;
}

int fd_open_standard(const char *program)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int r = fcntl(fd, F_GETFD) < 0 ? fd_open_null_at(fd) : 0;

		if (r == 0)
			continue;
		(void)dprintf(STDERR_FILENO,
			      "%s: standard stream %d is closed, and /dev/null cannot be opened "
			      "in its place: %s (open the stream, or repair /dev/null)\n",
			      program, fd, strerror(-r));
		return r;
	}
	return 0;
}

int fd_copy(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : copy;
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int fd_read_full(int fd, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = sysio_read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPIPE;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_write_full(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = sysio_write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_read_all(int fd, size_t max, struct buf *b)
{
	char part[4096];

	for (;;) {
		ssize_t n;
		int r;

		n = sysio_read(fd, part, sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if ((size_t)n > max)
			return -EFBIG;
		r = buf_add(b, part, (size_t)n);
		if (r < 0)
			return r;
		max -= (size_t)n;
	}
}

int fd_read_file(int dir_fd, const char *name, size_t max, struct buf *b)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);

	if (fd < 0)
		return -errno;
	return fd_read_all(fd, max, b);
}

int fd_write_file(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, name, O_WRONLY | O_CLOEXEC | O_NOCTTY, 0);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = sysio_write(fd, text, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int fd_list_dir(int dir_fd, char ***ret)
{
	_cleanup_strv_ char **names = NULL;
	DIR *dir = NULL;
	int fd, r = 0;

	/* A descriptor of its own: the position of a directory belongs to the open file. */
	fd = sysio_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		(void)fd_close(fd);
		return r;
	}
	for (;;) {
		const struct dirent *e = readdir(dir);

		if (!e)
			break;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		r = strv_add(&names, e->d_name);
		if (r < 0)
			break;
	}
	(void)closedir(dir);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(names);
	return 0;
}

int pidfd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int pidfd_kill(int pidfd, int sig)
{
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

bool pidfd_has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

int process_start_time(int proc_fd, pid_t pid, unsigned long long *ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char name[64];
	char *p, *save = NULL;
	int r;

	r = str_printf(name, sizeof(name), proc_fd >= 0 ? "%d/stat" : "/proc/%d/stat", (int)pid);
	if (r < 0)
		return r;
	r = fd_read_file(proc_fd >= 0 ? proc_fd : AT_FDCWD, name, 4096, &b);
	if (r < 0)
		return r;
	text = buf_take_str(&b);
	if (!text)
		return -ENOMEM;

	/* Field 2, the name in parentheses, may hold anything: begin behind its last parenthesis.
	 */
	p = strrchr(text, ')');
	if (!p)
		return -EBADMSG;
	for (int field = 3; field <= 22; field++) {
		const char *word = strtok_r(field == 3 ? p + 1 : NULL, " ", &save);

		if (!word)
			return -EBADMSG;
		if (field == 22)
			*ret = strtoull(word, NULL, 10);
	}
	return 0;
}
