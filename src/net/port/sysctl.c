/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define SYSCTL_PATH_MAX 128

int sysctl_open(struct error *err)
{
	_cleanup_fd_ int fs_fd = sysio_fsopen("proc", FSOPEN_CLOEXEC);
	int fd;

	if (fs_fd < 0 || sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make a /proc");
	fd = sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC,
			   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? error_set(err, -errno, "mount a /proc") : fd;
}

static int sysctl_open_one(int proc_fd, const char *name, int flags, struct error *err)
{
	char path[SYSCTL_PATH_MAX];
	int fd = str_printf(path, sizeof(path), "sys/net/%s", name);

	if (fd >= 0)
		fd = rootfd_open_beneath(proc_fd, path, flags);
	return fd < 0 ? error_set(err, fd, "open the setting net/%s", name) : fd;
}

int sysctl_read(int proc_fd, const char *name, long *ret, struct error *err)
{
	_cleanup_fd_ int fd = sysctl_open_one(proc_fd, name, O_RDONLY, err);
	char text[32] = "";
	ssize_t n;

	if (fd < 0)
		return fd;
	n = sysio_pread(fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return error_set(err, -errno, "read the setting net/%s", name);
	*ret = strtol(text, NULL, 10);
	return 0;
}

int sysctl_write(int proc_fd, const char *name, const char *value, struct error *err)
{
	_cleanup_fd_ int fd = sysctl_open_one(proc_fd, name, O_WRONLY, err);
	const size_t len = strlen(value);

	if (fd < 0)
		return fd;
	if (sysio_write(fd, value, len) != (ssize_t)len)
		return error_set(err, -errno, "set net/%s to %s", name, value);
	return 0;
}
