/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/tree_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/tree/tree_path.h"

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

/*
 * Should: judge a target by the file that was resolved. Must not: judge it by its text, which may
 * lead through links of the image or of a volume.
 */
static int tree_check_place(const struct tree_view *v, int target_fd, const char *path,
			    struct error *err)
{
	int r = tree_view_is_root(v, target_fd, err);

	if (r > 0)
		return error_refuse(err, ERROR_INVALID,
				    "%s: leads to the root, and nothing can be mounted on that",
				    path);
	if (r == 0)
		r = tree_view_is_in_part(v, target_fd, err);
	if (r > 0)
		return error_refuse(err, ERROR_INVALID,
				    "%s: leads into /dev or /sys of the container, and nothing can "
				    "be mounted there but on /dev/shm and new names in /dev",
				    path);
	return r < 0 ? error_wrap(err, r, "%s", path) : 0;
}

static int tree_failed(int r, const char *path, struct error *err)
{
	if (r == -ENOTDIR || r == -ELOOP || r == -EISDIR)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: is something else in the root, or on the way to it", path);
	return error_set(err, r, "%s: make it", path);
}

static int tree_plain_failed(int r, const char *path, struct error *err)
{
	if (r == -ELOOP)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"%s: is a symbolic link, or lies behind one (the root must have "
			"a directory there)",
			path);
	if (r == -ENOTDIR)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: is not a directory (the root must have a directory there)",
				    path);
	return error_set(err, r, "%s: make it", path);
}

static int tree_system_target(const struct tree_view *v, const struct tree_base *base,
			      const char *path, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_make_dir_plain(base->fd, base->rest);
	int r;

	if (fd < 0)
		return tree_plain_failed(fd, path, err);
	r = tree_view_is_foreign(v, base, fd, err);
	if (r < 0)
		return error_wrap(err, r, "%s", path);
	if (r > 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: lies in a volume that is mounted before it (the root "
				    "itself must have a directory there)",
				    path);
	return TAKE_FD(fd);
}

/* In a file system of this process's own from its descriptor; else in the root. */
static int tree_any_target(const struct tree_view *v, const struct tree_base *base,
			   const char *path, bool is_dir, struct error *err)
{
	int root_fd = base->is_new ? base->fd : v->s->root_fd;
	const char *name = base->is_new ? base->rest : path;
	int fd = is_dir ? rootfd_make_dir_through(root_fd, name)
			: rootfd_make_file_through(root_fd, name);

	return fd < 0 ? tree_failed(fd, path, err) : fd;
}

int tree_dir(const struct tree_view *v, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct tree_base base;
	char clean[PATH_MAX];
	bool is_plain;
	int r = tree_path_clean(clean, sizeof(clean), path);

	if (r < 0)
		return error_set(err, r, "%s", path);
	tree_view_base(v, clean, &base);
	/* Where nothing is mounted on /dev, the root has a directory there. */
	is_plain = base.is_new || tree_path_below(clean, "/dev");
	if (is_plain)
		fd = rootfd_make_dir_plain(base.fd, base.rest);
	else
		fd = rootfd_make_dir_through(v->s->root_fd, path);
	if (fd < 0)
		return is_plain ? tree_plain_failed(fd, path, err) : tree_failed(fd, path, err);
	if (tree_is_on_proc(fd))
		return error_refuse(err, ERROR_INVALID, "%s: nothing is made in a procfs", path);
	return TAKE_FD(fd);
}

/* The part of a container that a path begins in, /proc or /sys: -1 for none. */
static int tree_part(const struct tree_view *v, const char *clean, const char **ret_rest)
{
	static const struct {
		const char *path;
		enum tree_part part;
	} parts[] = { { "/proc", TREE_PROC }, { "/sys", TREE_SYS } };

	for (size_t i = 0; v->part_fds && i < ARRAY_SIZE(parts); i++) {
		const char *rest = tree_path_below(clean, parts[i].path);

		if (!rest)
			continue;
		*ret_rest = *rest ? rest : ".";
		return v->part_fds[parts[i].part];
	}
	return -1;
}

int tree_open(const struct tree_view *v, const char *path, bool *ret_is_own, struct error *err)
{
	struct tree_base base;
	char clean[PATH_MAX];
	const char *rest;
	int fd, part_fd, r = tree_path_clean(clean, sizeof(clean), path);

	if (r < 0)
		return error_set(err, r, "open it");
	part_fd = tree_part(v, clean, &rest);
	if (part_fd >= 0) {
		*ret_is_own = true;
		fd = rootfd_open(part_fd, rest, O_PATH, 0);
		return fd < 0 && fd != -ENOENT ? error_set(err, fd, "open it") : fd;
	}
	tree_view_base(v, clean, &base);
	/* What is bound on /dev has links that lead out of it, to /proc or /run. */
	*ret_is_own = !base.is_root && (base.is_new || !tree_path_below(clean, "/dev"));
	if (*ret_is_own)
		fd = rootfd_open(base.fd, base.rest, O_PATH, 0);
	else
		fd = rootfd_open(v->s->root_fd, path, O_PATH, 0);
	return fd < 0 && fd != -ENOENT ? error_set(err, fd, "open it") : fd;
}

int tree_see(const struct tree_view *v, int mount_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int found_fd = rootfd_open(v->s->root_fd, path, O_PATH, 0);
	int r;

	if (found_fd < 0)
		return error_set(err, found_fd, "%s: look at the mount", path);
	r = mount_is_same(found_fd, mount_fd, err);
	if (r < 0)
		return error_wrap(err, r, "%s", path);
	return r ? 0 : error_refuse(err, ERROR_PRECONDITION, "%s: changed under way", path);
}

/* The path below a container's /dev that is meant, where nothing of the house has the first name of
 * it; else NULL. */
static const char *tree_dev_name(const struct tree_view *v, const char *clean)
{
	const char *path = v->part_fds ? tree_path_below(clean, "/dev") : NULL;
	char first[NAME_MAX + 1];

	if (!path || !*path ||
	    str_printf(first, sizeof(first), "%.*s", (int)strcspn(path, "/"), path) < 0)
		return NULL;
	return isolate_dev_has_name(first) ? NULL : path;
}

/*
 * Should: stay below the first name. Must not: follow a link on the way, which a volume that is
 * mounted there before may have. Right in /dev nobody else has made one.
 */
static int tree_dev_target(const struct tree_view *v, const char *name, const char *path,
			   bool is_dir, struct error *err)
{
	_cleanup_fd_ int above_fd = -1;
	const char *last = strrchr(name, '/');
	int dev_fd = v->part_fds[TREE_DEV], fd;
	char above[PATH_MAX];

	if (last) {
		(void)str_printf(above, sizeof(above), "%.*s", (int)(last - name), name);
		above_fd = rootfd_make_dir_plain(dev_fd, above);
		if (above_fd < 0)
			return tree_plain_failed(above_fd, path, err);
		dev_fd = above_fd;
		name = last + 1;
	}
	fd = is_dir ? rootfd_make_dir_through(dev_fd, name)
		    : rootfd_make_file_through(dev_fd, name);

	return fd < 0 ? tree_failed(fd, path, err) : fd;
}

/*
 * Should: mount on the very file that was resolved, and then find the mount under the name again.
 * Must not: believe a name twice (security.md A07): where another process has exchanged a directory
 * on the way, the mount lies elsewhere inside the root, and this process ends with its namespace.
 */
int tree_attach(const struct tree_view *v, int mount_fd, const char *path, bool is_system,
		struct error *err)
{
	_cleanup_fd_ int target_fd = -1;
	struct tree_base base;
	char clean[PATH_MAX];
	const char *dev_name;
	struct stat st;
	int r = tree_path_clean(clean, sizeof(clean), path);

	if (r < 0 || fstat(mount_fd, &st) < 0)
		return error_set(err, r < 0 ? r : -errno, "%s: look at what goes there", path);
	tree_view_base(v, clean, &base);
	dev_name = is_system ? NULL : tree_dev_name(v, clean);
	if (is_system)
		target_fd = tree_system_target(v, &base, path, err);
	else if (dev_name)
		target_fd = tree_dev_target(v, dev_name, path, S_ISDIR(st.st_mode), err);
	else
		target_fd = tree_any_target(v, &base, path, S_ISDIR(st.st_mode), err);
	if (target_fd < 0)
		return target_fd;
	r = tree_check_proc(target_fd, mount_fd, path, err);
	if (r == 0 && !dev_name)
		r = tree_check_place(v, target_fd, path, err);
	if (r < 0)
		return r;
	r = mount_attach(mount_fd, target_fd, "", err);
	if (r < 0)
		return error_wrap(err, r, "%s", path);
	return tree_see(v, mount_fd, base.is_new ? clean : path, err);
}
