/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sysio.h"

int mount_new(const char *fs, const struct mount_option *options, unsigned attrs, struct error *err)
{
	_cleanup_fd_ int fd = sysio_fsopen(fs, FSOPEN_CLOEXEC);
	int mount_fd;

	if (fd < 0)
		return error_set(err, -errno, "open the file system %s", fs);
	for (; options && options->key; options++)
		if (sysio_fsconfig(fd, options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
				   options->key, options->value, 0) < 0)
			return error_set(err, -errno, "option %s of %s", options->key, fs);
	if (sysio_fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make the file system %s", fs);
	mount_fd = sysio_fsmount(fd, FSMOUNT_CLOEXEC, attrs);
	return mount_fd < 0 ? error_set(err, -errno, "mount %s", fs) : mount_fd;
}

int mount_copy(int dir_fd, const char *name, struct error *err)
{
	int fd = sysio_open_tree(dir_fd, name,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
					 (*name ? 0 : AT_EMPTY_PATH));

	return fd < 0 ? error_set(err, -errno, "copy the mount of %s", *name ? name : "a file")
		      : fd;
}

int mount_restrict(int mount_fd, unsigned attrs, struct error *err)
{
	struct mount_attr attr = { .attr_set = attrs };

	if (sysio_mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr) < 0)
		return error_set(err, -errno, "restrict a mount");
	return 0;
}

int mount_attach(int mount_fd, int dir_fd, const char *name, struct error *err)
{
	if (sysio_move_mount(mount_fd, "", dir_fd, name,
			     MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH)) < 0)
		return error_set(err, -errno, "mount on %s", *name ? name : "the root");
	return 0;
}

int mount_below(int dir_fd, const char *name, const char *fs, unsigned long flags,
		const char *options, struct error *err)
{
	if (fchdir(dir_fd) < 0)
		return error_set(err, -errno, "enter the directory of %s", name);
	if (sysio_mount("none", name, fs, flags, options) < 0)
		return error_set(err, -errno, "mount %s on %s", fs, name);
	return 0;
}
