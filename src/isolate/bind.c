/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/bind.h"

#include <linux/mount.h>
#include <sys/mount.h>

#include "base/fd.h"
#include "isolate/mount.h"

int isolate_bind(int source_fd, bool read_only, bool no_exec, struct error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				   .propagation = MS_PRIVATE };
	_cleanup_fd_ int fd = -1;
	int r;

	if (read_only)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (no_exec)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	fd = mount_copy_tree(source_fd, "", err);
	if (fd < 0)
		return fd;
	r = mount_change(fd, &attr, true, err);
	return r < 0 ? r : TAKE_FD(fd);
}

int isolate_bind_read_only(int fd, struct error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	return mount_change(fd, &attr, false, err);
}
