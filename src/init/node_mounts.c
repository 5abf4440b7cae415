/* SPDX-License-Identifier: Apache-2.0 */
#include "init/node_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"

/* <sys/mount.h> and <linux/mount.h> do not go together in glibc 2.36. */
#define PROPAGATION_SLAVE (1U << 19)

/* Directories and sockets only, and a tmpfs for each cell stands on a mount of its own. */
#define NODE_RUN_SIZE "4m"

static int node_mounts_hide_run(struct error *err)
{
	_cleanup_fd_ int fs = -1, mount = -1;

	fs = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return error_set(err, -errno, "open a tmpfs");
	if (sysio_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0700", 0) < 0 ||
	    sysio_fsconfig(fs, FSCONFIG_SET_STRING, "size", NODE_RUN_SIZE, 0) < 0 ||
	    sysio_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make a tmpfs");
	mount = sysio_fsmount(fs, FSMOUNT_CLOEXEC,
			      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (mount < 0)
		return error_set(err, -errno, "mount a tmpfs");
	if (sysio_move_mount(mount, "", AT_FDCWD, "/run", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_set(err, -errno, "mount a tmpfs on the keeper's /run");
	return 0;
}

int node_mounts_make(int *ret_host_ns_fd, struct error *err)
{
	struct mount_attr slave = { .propagation = PROPAGATION_SLAVE };
	_cleanup_fd_ int host_fd = -1;
	int r;

	host_fd = sysio_openat(AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC, 0);
	if (host_fd < 0)
		return error_set(err, -errno, "open the mount namespace of the host");
	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "make a mount namespace for the keeper");
	if (sysio_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &slave) < 0)
		return error_set(err, -errno, "keep the keeper's mounts from the host");
	r = node_mounts_hide_run(err);
	if (r < 0)
		return r;
	*ret_host_ns_fd = TAKE_FD(host_fd);
	return 0;
}
