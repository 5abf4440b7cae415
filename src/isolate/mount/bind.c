/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"

/* Words before them. */
#define BIND_MOUNTINFO_TAGS 6
#define BIND_MOUNTINFO_MAX ((size_t)4 << 20)

int isolate_bind(int source_fd, unsigned flags, struct error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	_cleanup_fd_ int fd = -1;
	int r;

	if (flags & ISOLATE_BIND_DEVICES)
		attr.attr_set &= ~(uint64_t)MOUNT_ATTR_NODEV;
	if (!(flags & ISOLATE_BIND_PEERS))
		attr.propagation = MS_PRIVATE;
	if (flags & ISOLATE_BIND_READ_ONLY)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (flags & ISOLATE_BIND_NO_EXEC)
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

/* The words between the options of a mount and "-" (proc_pid_mountinfo(5)). */
static void bind_read_tags(char *line, bool *ret_shared, bool *ret_slave)
{
	char *save = NULL;
	int i = 0;

	for (char *word = strtok_r(line, " ", &save); word && !str_eq(word, "-");
	     word = strtok_r(NULL, " ", &save)) {
		if (i++ < BIND_MOUNTINFO_TAGS)
			continue;
		*ret_shared = *ret_shared || str_has_prefix(word, "shared:");
		*ret_slave = *ret_slave || str_has_prefix(word, "master:");
	}
}

int isolate_bind_peers(int fd, bool *ret_shared, bool *ret_slave, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char *save = NULL;
	uint64_t id = 0;
	int r = mount_id(fd, &id, err);

	*ret_shared = *ret_slave = false;
	if (r < 0)
		return r;
	r = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", BIND_MOUNTINFO_MAX, &b);
	if (r < 0)
		return error_set(err, r, "read the mounts");
	text = buf_take_str(&b);
	if (!text)
		return error_set(err, -ENOMEM, "read the mounts");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strtoull(line, NULL, 10) == id)
			bind_read_tags(line, ret_shared, ret_slave);
	return 0;
}

bool isolate_has_selinux(void)
{
	_cleanup_fd_ int fd =
		sysio_openat(AT_FDCWD, "/sys/fs/selinux/enforce", O_PATH | O_CLOEXEC, 0);

	return fd >= 0;
}
