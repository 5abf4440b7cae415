/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/root_view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"

static int root_view_clone(void)
{
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd = sysio_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (sysio_mount_setattr(fd, "", AT_EMPTY_PATH, &writable) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int root_view_open(int proc_fd)
{
	_cleanup_fd_ int own_fd =
		sysio_openat(AT_FDCWD, "/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC, 0);
	_cleanup_fd_ int ns_fd = sysio_openat(proc_fd, "ns/mnt", O_RDONLY | O_CLOEXEC, 0);
	int fd;

	if (own_fd < 0 || ns_fd < 0)
		return -errno;
	/* Nobody else comes along. */
	if (unshare(CLONE_FS) < 0 || setns(ns_fd, CLONE_NEWNS) < 0)
		return -errno;
	fd = root_view_clone();
	if (setns(own_fd, CLONE_NEWNS) < 0) {
		int r = -errno;

		(void)fd_close(fd);
		return r;
	}
	return fd;
}
