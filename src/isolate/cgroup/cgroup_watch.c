/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/cgroup_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/time/clock.h"
#include "isolate/cgroup/flat.h"

/*
 * Such a file polls as readable for ever, and as POLLPRI | POLLERR from a change of it until it is
 * read. The epoll inside asks for EPOLLPRI alone, and so is what libev, which knows only
 * "readable", can wait for.
 */

#define CGROUP_WATCH_TEXT_MAX 4096

void cgroup_watch_close(struct cgroup_watch *w)
{
	w->poll_fd = fd_close(w->poll_fd);
	w->file_fd = fd_close(w->file_fd);
}

int cgroup_watch_open(struct cgroup_watch *ret, int dir_fd, const char *file, struct error *err)
{
	_cleanup_fd_ int file_fd = sysio_openat(dir_fd, file, O_RDONLY | O_CLOEXEC, 0);
	_cleanup_fd_ int poll_fd = -1;
	struct epoll_event event = { .events = EPOLLPRI };

	if (file_fd < 0)
		return error_set(err, -errno, "open %s", file);
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (poll_fd < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, file_fd, &event) < 0)
		return error_set(err, -errno, "watch %s", file);
	*ret = (struct cgroup_watch){ .file_fd = TAKE_FD(file_fd), .poll_fd = TAKE_FD(poll_fd) };
	return 0;
}

static int cgroup_watch_value(int file_fd, const char *key, uint64_t *ret)
{
	char text[CGROUP_WATCH_TEXT_MAX];
	ssize_t n = sysio_pread(file_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return flat_find(text, key, ret) ? 0 : -ENOENT;
}

int cgroup_watch_read(struct cgroup_watch *w, const char *key, uint64_t *ret)
{
	return cgroup_watch_value(w->file_fd, key, ret);
}

static int cgroup_wait_until(int fd, const char *key, uint64_t value, nsec_t end)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };

	for (;;) {
		uint64_t now_value = 0;
		int r = cgroup_watch_value(fd, key, &now_value);
		nsec_t now = clock_mono();

		if (r < 0 || now_value == value)
			return r;
		if (now >= end)
			return -ETIMEDOUT;
		r = poll(&p, 1, (int)((end - now) / NSEC_PER_MSEC) + 1);
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

int cgroup_wait(int dir_fd, const char *file, const char *key, uint64_t value, int timeout_ms)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, file, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	return cgroup_wait_until(fd, key, value, clock_mono() + (nsec_t)timeout_ms * NSEC_PER_MSEC);
}

int cgroup_freeze(int dir_fd, int timeout_ms, struct error *err)
{
	int r = fd_write_file(dir_fd, "cgroup.freeze", "1");

	if (r < 0)
		return error_set(err, r, "freeze a cgroup");
	r = cgroup_wait(dir_fd, "cgroup.events", "frozen", 1, timeout_ms);
	if (r == 0)
		return 0;
	(void)fd_write_file(dir_fd, "cgroup.freeze", "0");
	if (r == -ETIMEDOUT)
		return error_refuse(err, ERROR_DEADLINE,
				    "a process of the cgroup did not stop within %d ms",
				    timeout_ms);
	return error_set(err, r, "wait until a cgroup is frozen");
}

int cgroup_thaw(int dir_fd, int timeout_ms, struct error *err)
{
	int r = fd_write_file(dir_fd, "cgroup.freeze", "0");

	if (r < 0)
		return error_set(err, r, "thaw a cgroup");
	r = cgroup_wait(dir_fd, "cgroup.events", "frozen", 0, timeout_ms);
	if (r == -ETIMEDOUT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the cgroup stays frozen: a group above it is");
	return r < 0 ? error_set(err, r, "wait until a cgroup is thawed") : 0;
}

int cgroup_frozen(int dir_fd)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC, 0);
	uint64_t value = 0;
	int r = fd < 0 ? -errno : cgroup_watch_value(fd, "frozen", &value);

	return r < 0 ? r : value != 0;
}
