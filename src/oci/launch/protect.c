/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "oci/config/given.h"

/*
 * A detached copy of the mount of the one file: the mount belongs to the descriptor and then to the
 * process, so that it is gone when the process is.
 */
static int protect_mount(struct error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd =
		sysio_open_tree(AT_FDCWD, "/proc/self/exe", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return error_set(err, -errno, "copy the mount of this program");
	if (sysio_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
		return error_set(err, -errno, "make the mount of this program read-only");
	return TAKE_FD(fd);
}

int protect_is_needed(struct error *err)
{
	_cleanup_fd_ int own = given_open("/proc/self/exe", O_PATH, 0);
	struct statvfs vfs;

	if (own < 0 || fstatvfs(own, &vfs) < 0)
		return error_set(err, own < 0 ? own : -errno, "look at this program");
	return !(vfs.f_flag & ST_RDONLY);
}

int protect_program(char **argv, struct error *err)
{
	_cleanup_fd_ int fd = protect_mount(err);

	if (fd < 0)
		return fd;
	(void)execveat(fd, "", argv, environ, AT_EMPTY_PATH);
	return error_set(err, -errno, "execute this program again");
}
