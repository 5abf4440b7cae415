/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ipv6.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rootfd.h"
#include "base/sysio.h"

/* What stands below sys/net belongs to the namespace of the thread that opens it. */
#define IPV6_SWITCH "sys/net/ipv6/conf/all/disable_ipv6"

static int ipv6_open_proc(struct error *err)
{
	_cleanup_fd_ int fs_fd = sysio_fsopen("proc", FSOPEN_CLOEXEC);
	int fd;

	if (fs_fd < 0 || sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make a /proc");
	fd = sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC,
			   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? error_set(err, -errno, "mount a /proc") : fd;
}

int ipv6_off(struct error *err)
{
	_cleanup_fd_ int proc_fd = ipv6_open_proc(err);
	_cleanup_fd_ int fd = -1;
	char is = '\0';

	if (proc_fd < 0)
		return proc_fd;
	fd = rootfd_open_beneath(proc_fd, IPV6_SWITCH, O_RDWR);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return error_set(err, fd, "open " IPV6_SWITCH);
	if (sysio_write(fd, "1", 1) != 1)
		return error_set(err, -errno, "turn IPv6 off");
	if (sysio_pread(fd, &is, 1, 0) != 1 || is != '1')
		return error_set(err, -EIO, "turn IPv6 off");
	return 0;
}
