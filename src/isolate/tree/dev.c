/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/plan/plan.h"

#define DEV_MEMORY_MAJOR 1
#define DEV_NULL_MINOR 3

static const struct {
	const char *name;
	unsigned major, minor;
	bool of_container; /* and not of a keeper */
} dev_nodes[] = {
	{ "null", DEV_MEMORY_MAJOR, DEV_NULL_MINOR, false },
	{ "zero", DEV_MEMORY_MAJOR, 5, false },
	{ "full", DEV_MEMORY_MAJOR, 7, false },
	{ "random", DEV_MEMORY_MAJOR, 8, false },
	{ "urandom", DEV_MEMORY_MAJOR, 9, false },
	{ "tty", 5, 0, true },
};

static const struct {
	const char *name, *target;
} dev_links[] = {
	{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

static const struct {
	const char *name;
	bool of_container;
} dev_dirs[] = {
	{ "shm", false },
	{ "pts", true },
	{ "mqueue", true },
};

static int dev_make_nodes(int dir_fd, bool container, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(dev_nodes); i++)
		if ((container || !dev_nodes[i].of_container) &&
		    sysio_mknodat(dir_fd, dev_nodes[i].name, S_IFCHR | 0666,
				  makedev(dev_nodes[i].major, dev_nodes[i].minor)) < 0)
			return error_set(err, -errno, "make the device %s", dev_nodes[i].name);
	return 0;
}

/* What is beside the nodes. */
static int dev_make_rest(int dir_fd, bool container, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(dev_dirs); i++)
		if ((container || !dev_dirs[i].of_container) &&
		    sysio_mkdirat(dir_fd, dev_dirs[i].name, 0755) < 0)
			return error_set(err, -errno, "make the directory %s", dev_dirs[i].name);
	for (size_t i = 0; container && i < ARRAY_SIZE(dev_links); i++)
		if (sysio_symlinkat(dev_links[i].target, dir_fd, dev_links[i].name) < 0)
			return error_set(err, -errno, "make the link %s", dev_links[i].name);
	return 0;
}

int dev_fill(int dir_fd, struct error *err)
{
	int r = dev_make_nodes(dir_fd, false, err);

	return r < 0 ? r : dev_make_rest(dir_fd, false, err);
}

/* The nodes are made on target_fd, copied from there, since what is detached cannot be, and taken
 * away again. */
static int dev_copy_nodes(int target_fd, int fds[ARRAY_SIZE(dev_nodes)], struct error *err)
{
	static const struct mount_option options[] = {
		{ "mode", "0700" }, { "size", "64k" }, { "nr_inodes", "16" }, { NULL, NULL }
	};
	_cleanup_fd_ int nodes_fd =
		mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	int r = nodes_fd < 0 ? nodes_fd : dev_make_nodes(nodes_fd, true, err);

	if (r >= 0)
		r = mount_attach(nodes_fd, target_fd, "", err);
	for (size_t i = 0; i < ARRAY_SIZE(dev_nodes) && r >= 0; i++)
		r = fds[i] = mount_copy(nodes_fd, dev_nodes[i].name, err);
	return r < 0 ? r : mount_leave(nodes_fd, err);
}

int dev_fill_sealed(int dir_fd, int target_fd, struct error *err)
{
	int fds[ARRAY_SIZE(dev_nodes)];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = -1;
	r = dev_copy_nodes(target_fd, fds, err);
	if (r >= 0)
		r = dev_make_rest(dir_fd, true, err);
	if (r >= 0)
		r = mount_attach(dir_fd, target_fd, "", err);
	for (size_t i = 0; i < ARRAY_SIZE(fds) && r >= 0; i++) {
		if (sysio_mknodat(dir_fd, dev_nodes[i].name, S_IFREG | 0666, 0) < 0)
			r = error_set(err, -errno, "make the file %s", dev_nodes[i].name);
		else
			r = mount_attach(fds[i], dir_fd, dev_nodes[i].name, err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		(void)fd_close(fds[i]);
	return r;
}

bool isolate_dev_has_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(dev_nodes); i++)
		if (str_eq(name, dev_nodes[i].name))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(dev_dirs); i++)
		if (str_eq(name, dev_dirs[i].name))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(dev_links); i++)
		if (str_eq(name, dev_links[i].name))
			return true;
	return str_eq(name, "console");
}

int dev_link(int dir_fd, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(dev_links); i++)
		if (sysio_symlinkat(dev_links[i].target, dir_fd, dev_links[i].name) < 0 &&
		    errno != EEXIST)
			return error_set(err, -errno, "make the link %s", dev_links[i].name);
	return 0;
}

bool dev_is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(DEV_MEMORY_MAJOR, DEV_NULL_MINOR);
}

int dev_open_null(int dir_fd, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, "null", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, -errno, "open /dev/null");
	if (!dev_is_null(fd))
		return error_set(err, -ENODEV, "/dev/null");
	return TAKE_FD(fd);
}
