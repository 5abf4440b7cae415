/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/tree/dev.h"

#define PLACE_NO_SUID_DEV_EXEC (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define PLACE_LIMIT_MAX 4096 /* bytes of a file of a group */
/* The same for mount_below(). */
#define PLACE_MS_NO_SUID_DEV_EXEC ((unsigned long)(MS_NOSUID | MS_NODEV | MS_NOEXEC))

static const char place_shm_options[] = "mode=1777,size=64m";

int place_new(int target_fd, const char *fs, unsigned attrs, struct error *err)
{
	_cleanup_fd_ int fd = mount_new(fs, NULL, attrs, err);
	int r;

	if (fd < 0)
		return fd;
	r = mount_attach(fd, target_fd, "", err);
	return r < 0 ? r : TAKE_FD(fd);
}

static int place_shm(int dev_fd, int shm_fd, struct error *err)
{
	int r;

	if (shm_fd < 0)
		return mount_below(dev_fd, "shm", "tmpfs", PLACE_MS_NO_SUID_DEV_EXEC,
				   place_shm_options, err);
	r = mount_restrict(shm_fd, PLACE_NO_SUID_DEV_EXEC, err);
	return r < 0 ? r : mount_attach(shm_fd, dev_fd, "shm", err);
}

static int place_pts(int dev_fd, const struct place_dev_plan *plan, struct error *err)
{
	_cleanup_fd_ int console_fd = -1;
	int pts_fd = plan->pts_fd, r;
	char options[64];

	(void)str_printf(options, sizeof(options), "mode=0620,ptmxmode=0666,gid=%u", plan->tty);
	if (pts_fd < 0)
		return mount_below(dev_fd, "pts", "devpts", MS_NOSUID | MS_NOEXEC, options, err);
	r = mount_attach(pts_fd, dev_fd, "pts", err);
	if (r < 0)
		return r;
	/* From the place that it has now: what is detached cannot be copied. */
	console_fd = mount_copy(dev_fd, "pts/0", err);
	if (console_fd < 0)
		return error_wrap(err, console_fd, "console");
	if (sysio_mknodat(dev_fd, "console", S_IFREG | 0600, 0) < 0)
		return error_set(err, -errno, "make the file console");
	return mount_attach(console_fd, dev_fd, "console", err);
}

int place_dev(int target_fd, const struct place_dev_plan *plan, struct error *err)
{
	static const struct mount_option options[] = {
		{ "mode", "0755" }, { "size", "64k" }, { "nr_inodes", "1024" }, { NULL, NULL }
	};
	_cleanup_fd_ int fd = mount_new(
		"tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	int r;

	if (fd < 0)
		return fd;
	r = dev_fill_sealed(fd, target_fd, err);
	if (r >= 0)
		r = place_pts(fd, plan, err);
	if (r >= 0)
		r = place_shm(fd, plan->shm_fd, err);
	if (r >= 0)
		r = mount_below(fd, "mqueue", "mqueue", PLACE_MS_NO_SUID_DEV_EXEC, NULL, err);
	/* A kernel may be built without POSIX message queues: then there are none to be had. */
	if (r == -ENODEV)
		r = 0;
	return r < 0 ? error_wrap(err, r, "/dev") : TAKE_FD(fd);
}

int place_sys(int target_fd, bool writable, struct error *err)
{
	unsigned read_only = writable ? 0 : MOUNT_ATTR_RDONLY;
	int fd = place_new(target_fd, "sysfs", read_only | PLACE_NO_SUID_DEV_EXEC, err);

	return fd < 0 ? error_wrap(err, fd, "/sys") : fd;
}

int place_cgroups(int sys_fd, bool writable, struct error *err)
{
	int r = mount_below(sys_fd, "fs/cgroup", "cgroup2",
			    (writable ? 0UL : MS_RDONLY) | PLACE_MS_NO_SUID_DEV_EXEC, NULL, err);

	return r < 0 ? error_wrap(err, r, "/sys") : 0;
}

/* Writes what is there already: 0 if the kernel takes it. */
static int place_write_same(int dir_fd, const char *name)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	int r = fd_read_file(dir_fd, name, PLACE_LIMIT_MAX, &b);

	if (r < 0)
		return r;
	fd = sysio_openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	return write(fd, buf_data(&b), b.len) < 0 ? -errno : 0;
}

/* The mount's options are not to be seen from here, so the kernel is asked by a write. */
int place_check_groups(int sys_fd, struct error *err)
{
	static const char *const limits[] = { "pids.max", "memory.max", "cpu.weight",
					      "cpuset.cpus" };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int dir_fd =
		rootfd_open(sys_fd, "fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int r;

	if (dir_fd < 0)
		return error_set(err, dir_fd, "open /sys/fs/cgroup");
	r = fd_read_file(dir_fd, "cgroup.controllers", PLACE_LIMIT_MAX, &b);
	if (r < 0)
		return error_set(err, r, "read /sys/fs/cgroup/cgroup.controllers");
	/* Without controllers there are no limits. */
	if (b.len <= 1)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		r = place_write_same(dir_fd, limits[i]);
		if (r == -EPERM)
			return 0;
		if (r != -ENOENT)
			break;
	}
	return error_refuse(
		err, ERROR_PRECONDITION,
		"a container with writable groups could lift its limits: cgroup2 is not "
		"mounted with nsdelegate (mount -o remount,nsdelegate /sys/fs/cgroup)");
}
