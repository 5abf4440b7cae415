/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/rootfd.h"
#include "base/str.h"
#include "isolate/mount.h"

/* What lxcfs and its like put into a container. */
static const char *const tree_proc_files[] = {
	"/proc/cpuinfo",
	"/proc/diskstats",
	"/proc/loadavg",
	"/proc/meminfo",
	"/proc/net/dev",
	"/proc/slabinfo",
	"/proc/stat",
	"/proc/swaps",
	"/proc/sys/crypto/fips_enabled",
	"/proc/sys/kernel/ns_last_pid",
	"/proc/uptime",
};

/* Without "", "." and ".."; the root is "". */
static int tree_clean(char *to, size_t size, const char *path)
{
	size_t len = 0;

	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len && to[--len] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			if (len + 1 + n >= size)
				return -ENAMETOOLONG;
			to[len++] = '/';
			memcpy(to + len, path, n);
			len += n;
		}
		path += n;
	}
	to[len] = '\0';
	return 0;
}

bool tree_path_is(const char *path, const char *known)
{
	char clean[PATH_MAX];

	return tree_clean(clean, sizeof(clean), path) == 0 && str_eq(clean, known);
}

static bool tree_is_on_proc(int fd)
{
	struct statfs fs;

	/* What cannot be told is refused. */
	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

static int tree_check_proc(int target_fd, int mount_fd, const char *path, struct error *err)
{
	bool on_proc = tree_is_on_proc(target_fd);

	if (tree_path_is(path, "/proc")) {
		if (tree_is_on_proc(mount_fd))
			return 0;
		return error_refuse(err, ERROR_INVALID, "%s: only a procfs goes there", path);
	}
	if (!on_proc)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(tree_proc_files); i++)
		if (tree_path_is(path, tree_proc_files[i]) && !tree_is_on_proc(mount_fd))
			return 0;
	return error_refuse(err, ERROR_INVALID, "%s: nothing is mounted in a procfs", path);
}

static int tree_failed(int r, const char *path, struct error *err)
{
	if (r == -ENOTDIR || r == -ELOOP || r == -EISDIR)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: is something else in the root, or on the way to it", path);
	return error_set(err, r, "%s: make it", path);
}

int tree_dir(int root_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_make_dir_through(root_fd, path);

	if (fd < 0)
		return tree_failed(fd, path, err);
	if (tree_is_on_proc(fd))
		return error_refuse(err, ERROR_INVALID, "%s: nothing is made in a procfs", path);
	return TAKE_FD(fd);
}

/*
 * Should: mount on the very file that was resolved, and then find the mount under the name again.
 * Must not: believe a name twice (security.md A07): where another process has exchanged a directory
 * on the way, the mount lies elsewhere inside the root, and this process ends with its namespace.
 */
int tree_attach(int root_fd, int mount_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int target_fd = -1, found_fd = -1;
	struct stat st;
	int r;

	if (fstat(mount_fd, &st) < 0)
		return error_set(err, -errno, "%s: look at what goes there", path);
	target_fd = S_ISDIR(st.st_mode) ? rootfd_make_dir_through(root_fd, path)
					: rootfd_make_file_through(root_fd, path);
	if (target_fd < 0)
		return tree_failed(target_fd, path, err);
	r = tree_check_proc(target_fd, mount_fd, path, err);
	if (r < 0)
		return r;
	r = mount_attach(mount_fd, target_fd, "", err);
	if (r < 0)
		return error_wrap(err, r, "%s", path);

	found_fd = rootfd_open(root_fd, path, O_PATH, 0);
	if (found_fd < 0)
		return error_set(err, found_fd, "%s: look at the mount", path);
	r = mount_is_same(found_fd, mount_fd, err);
	if (r < 0)
		return error_wrap(err, r, "%s", path);
	return r ? 0 : error_refuse(err, ERROR_PRECONDITION, "%s: changed under way", path);
}
