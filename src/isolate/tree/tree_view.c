/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/tree_view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/tree/tree_path.h"

#define VIEW_LEVELS_MAX PATH_MAX
#define VIEW_MQUEUE_MAGIC 0x19800202

static const long view_magics[] = { PROC_SUPER_MAGIC,    SYSFS_MAGIC,        CGROUP_SUPER_MAGIC,
				    CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, VIEW_MQUEUE_MAGIC };

bool tree_is_system(const struct isolate_mount *m)
{
	return m->is_system || isolate_mount_is_system(m->source_fd < 0 ? m->fs : NULL, m->target);
}

int tree_view_open(struct tree_view *ret, const struct isolate_steps *s, const int *part_fds,
		   struct error *err)
{
	int r;

	*ret = (struct tree_view){ .s = s, .part_fds = part_fds };
	r = mount_id(s->root_fd, &ret->root_id, err);
	for (size_t i = 0; r == 0 && part_fds && i < TREE_PART_COUNT; i++)
		r = mount_id(part_fds[i], &ret->part_ids[i], err);
	if (r == 0 && fstat(s->root_fd, &ret->root) < 0)
		r = error_set(err, -errno, "look at the root");
	return r;
}

void tree_view_base(const struct tree_view *v, const char *clean, struct tree_base *ret)
{
	const struct isolate_plan *p = v->s->plan;

	*ret = (struct tree_base){
		.fd = v->s->root_fd, .id = v->root_id, .rest = clean, .is_root = true
	};
	for (size_t i = 0; i < v->n_attached; i++) {
		const char *rest;

		if (!tree_is_system(&p->mounts[i]))
			continue;
		rest = tree_path_below(clean, p->mounts[i].target);
		/* Of two on one target the later lies on top. */
		if (!rest || strlen(rest) > strlen(ret->rest))
			continue;
		*ret = (struct tree_base){ .fd = v->s->mount_fds[i],
					   .id = v->s->mount_ids[i],
					   .rest = rest,
					   .is_new = p->mounts[i].source_fd < 0 };
	}
	if (!*ret->rest)
		ret->rest = ".";
}

/* ---- where something lies ---- */

/* A tmpfs of the list is this process's own until the program runs. */
static bool view_mount_is_foreign(const struct tree_view *v, uint64_t id)
{
	const struct isolate_plan *p = v->s->plan;

	for (size_t i = 0; i < v->n_attached; i++) {
		const struct isolate_mount *m = &p->mounts[i];

		if (v->s->mount_ids[i] == id)
			return !tree_is_system(m) && (m->source_fd >= 0 || !str_eq(m->fs, "tmpfs"));
	}
	return false;
}

static bool view_mount_is_part(const struct tree_view *v, uint64_t id)
{
	for (size_t i = 0; i < TREE_PART_COUNT; i++)
		if (v->part_ids[i] == id)
			return true;
	return false;
}

/* Goes up from a directory, from each mount to the one that it is mounted on, to that of end_id or
 * of the root: 1 where one is met that is looked for. */
static int view_goes_through(const struct tree_view *v, int dir_fd, uint64_t end_id,
			     bool (*is_met)(const struct tree_view *v, uint64_t id),
			     struct error *err)
{
	_cleanup_fd_ int at_fd = -1;

	for (int i = 0; i < VIEW_LEVELS_MAX; i++) {
		uint64_t id;
		int r = mount_id(at_fd >= 0 ? at_fd : dir_fd, &id, err);

		if (r < 0)
			return r;
		if (id == v->root_id || id == end_id)
			return 0;
		if (is_met(v, id))
			return 1;
		r = rootfd_point(at_fd >= 0 ? at_fd : dir_fd, "..");
		if (r < 0)
			return error_set(err, r, "open the directory above");
		(void)fd_close(at_fd);
		at_fd = r;
	}
	return error_set(err, -ELOOP, "find the root above a directory");
}

int tree_view_is_foreign(const struct tree_view *v, const struct tree_base *base, int dir_fd,
			 struct error *err)
{
	return view_goes_through(v, dir_fd, base->id, view_mount_is_foreign, err);
}

static bool view_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A file has no "..": so it counts which file system it is of. */
static int view_file_is_in_part(const struct tree_view *v, int fd, const struct stat *st,
				int shm_fd, struct error *err)
{
	_cleanup_fd_ int null_fd =
		sysio_openat(v->part_fds[TREE_DEV], "null", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	struct statfs fs;
	struct stat dev, node;

	if (null_fd < 0 && null_fd != -ENOENT)
		return error_set(err, null_fd, "open null in /dev");
	if (fstatfs(fd, &fs) < 0 || fstat(v->part_fds[TREE_DEV], &dev) < 0 ||
	    fstat(null_fd >= 0 ? null_fd : v->part_fds[TREE_DEV], &node) < 0)
		return error_set(err, -errno, "look at a file");
	for (size_t i = 0; i < ARRAY_SIZE(view_magics); i++)
		if (fs.f_type == view_magics[i])
			return 1;
	/* A node of the house is of another file system than /dev (dev_fill_sealed()). Also one
	 * that is bound over another file to hide that. */
	if (st->st_dev == dev.st_dev || st->st_dev == node.st_dev)
		return 1;
	return shm_fd >= 0 ? mount_is_same(fd, shm_fd, err) : 0;
}

int tree_view_is_in_part(const struct tree_view *v, int fd, struct error *err)
{
	_cleanup_fd_ int shm_fd = -1;
	struct stat st, shm;
	uint64_t id;
	int r = v->part_fds ? mount_id(fd, &id, err) : 0;

	if (r < 0 || !v->part_fds || id == v->root_id)
		return r;
	shm_fd = sysio_openat(v->part_fds[TREE_DEV], "shm", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fstat(fd, &st) < 0 || (shm_fd >= 0 && fstat(shm_fd, &shm) < 0))
		return error_set(err, -errno, "look at a file");
	if (!S_ISDIR(st.st_mode))
		return view_file_is_in_part(v, fd, &st, shm_fd, err);
	if (shm_fd >= 0 && view_is_same(&st, &shm)) {
		r = mount_is_same(fd, shm_fd, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return view_goes_through(v, fd, v->root_id, view_mount_is_part, err);
}

int tree_view_is_root(const struct tree_view *v, int fd, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at a file");
	return view_is_same(&st, &v->root) ? mount_is_same(fd, v->s->root_fd, err) : 0;
}
