/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FUZZ_TMPFS_H
#define NACRE_FUZZ_TMPFS_H

#include <fcntl.h>
#include <linux/mount.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "fuzz.h"

/* A directory that is mounted nowhere and ends with its descriptor. */
static inline int fuzz_tmpfs(void)
{
	_cleanup_fd_ int fs_fd = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	_cleanup_fd_ int mount_fd = -1;
	int fd;

	fuzz_need(fs_fd >= 0 && sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	mount_fd = sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
	fuzz_need(mount_fd >= 0);
	fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fuzz_need(fd >= 0);
	return fd;
}

#endif
