/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/rootfd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "base/tree.h"

/*
 * An entry's directory is found from the top, name by name, each opened without following a link;
 * the last one that was found is kept, since entries come in order. A file or link is made under a
 * name of its own beside its place, and then renamed.
 */

#define TREE_TEMPORARY_SIZE (sizeof(".nacre-") + ID_LEN)

struct tree_sink {
	int top_fd;              /* the directory that the tree is put into */
	char name[NAME_MAX + 1]; /* of the tree's root there; "": its own */
	int dir_fd;              /* the directory of the entry in hand */
	char dir[TREE_PATH_MAX]; /* its path, as entries have it */
	int file_fd;             /* of the file in hand, which is called `temporary` */
	char temporary[TREE_TEMPORARY_SIZE];
	char place[NAME_MAX + 1]; /* its name in the end */
	struct tree_entry entry;  /* of that file, without its strings */
	bool owner;
};

/* Splits a path before its last name: its parent is *ret_dir, with one '/' in front ("/" where
 * there is none). */
static int tree_sink_split(const char *path, char ret_dir[TREE_PATH_MAX],
			   char ret_name[NAME_MAX + 1])
{
	const char *slash;
	int r;

	path += strspn(path, "/");
	slash = strrchr(path, '/');
	r = str_copy(ret_name, NAME_MAX + 1, slash ? slash + 1 : path);
	if (r == 0)
		r = str_printf(ret_dir, TREE_PATH_MAX, "/%.*s", slash ? (int)(slash - path) : 0,
			       path);
	if (str_empty(ret_name) || str_eq(ret_name, ".") || str_eq(ret_name, ".."))
		return -EINVAL;
	return r < 0 ? r : 0;
}

static int tree_sink_find(struct tree_sink *s, int root_fd, const char *path, struct error *err)
{
	char dir[TREE_PATH_MAX];
	int fd = rootfd_open(root_fd, path, O_RDONLY | O_DIRECTORY, 0);

	if (fd == -ENOENT || fd == -ENOTDIR) {
		if (tree_sink_split(path, dir, s->name) < 0)
			return error_field(err, ERROR_NOT_FOUND, "path",
					   "there is no directory %.200s", path);
		fd = rootfd_open(root_fd, dir, O_RDONLY | O_DIRECTORY, 0);
		if (fd == -ENOENT || fd == -ENOTDIR)
			return error_field(err, ERROR_NOT_FOUND, "path",
					   "there is no directory %.200s", dir);
	}
	if (fd < 0)
		return error_set(err, fd, "path: open %.200s", path);
	s->top_fd = fd;
	if (tree_is_kernels(fd))
		return error_field(err, ERROR_PRECONDITION, "path",
				   "%.200s is on a file system of the kernel", path);
	return 0;
}

int tree_sink_open(struct tree_sink **ret, int root_fd, const char *path, struct error *err)
{
	_cleanup_(tree_sink_freep) struct tree_sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "write a tree");
	s->top_fd = s->dir_fd = s->file_fd = -1;
	r = tree_sink_find(s, root_fd, path, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct tree_sink *tree_sink_free(struct tree_sink *s)
{
	if (!s)
		return NULL;
	if (s->file_fd >= 0)
		(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
	(void)fd_close(s->file_fd);
	(void)fd_close(s->dir_fd);
	(void)fd_close(s->top_fd);
	free(s);
	return NULL;
}

static int tree_sink_check_path(const char *path, struct error *err)
{
	size_t len = strlen(path), depth = 0;

	if (len == 0 || len >= TREE_PATH_MAX)
		return error_field(err, ERROR_INVALID, "entry.path", "1 to %d bytes, not %zu",
				   TREE_PATH_MAX - 1, len);
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || n > NAME_MAX || (n == 1 && at[0] == '.') ||
		    (n == 2 && at[0] == '.' && at[1] == '.'))
			return error_field(err, ERROR_INVALID, "entry.path",
					   "\"%.200s\" is no relative path of plain names", path);
		if (++depth > TREE_DEPTH_MAX + 1)
			return error_field(err, ERROR_INVALID, "entry.path",
					   "deeper than %d directories", TREE_DEPTH_MAX);
		at += n;
		if (!*at)
			return 0;
	}
}

/* Where an entry is put: its path with the new name of the tree's root. */
static int tree_sink_place(const struct tree_sink *s, const char *path, char ret[TREE_PATH_MAX],
			   struct error *err)
{
	size_t first = s->name[0] ? strcspn(path, "/") : 0;
	int r;

	r = str_printf(ret, TREE_PATH_MAX, "%s%s", s->name[0] ? s->name : "", path + first);
	return r < 0 ? error_field(err, ERROR_INVALID, "entry.path", "too long") : 0;
}

/* Opens the directory `dir` (relative; "" for the top) name by name, and keeps it. */
static int tree_sink_enter(struct tree_sink *s, const char *dir, struct error *err)
{
	_cleanup_fd_ int fd = -1;

	if (s->dir_fd >= 0 && str_eq(s->dir, dir))
		return 0;
	fd = fd_copy(s->top_fd);
	for (const char *at = dir; fd >= 0 && *at;) {
		size_t n = strcspn(at, "/");
		char name[NAME_MAX + 1];
		int next;

		memcpy(name, at, n);
		name[n] = '\0';
		next = rootfd_open(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (next < 0)
			return error_set(err, next, "open the directory %.300s", dir);
		(void)fd_close(fd);
		fd = next;
		at += n + (at[n] == '/');
	}
	if (fd < 0)
		return error_set(err, fd, "open the directory %.300s", dir);
	(void)str_copy(s->dir, sizeof(s->dir), dir);
	(void)fd_close(s->dir_fd);
	s->dir_fd = TAKE_FD(fd);
	return 0;
}

static int tree_sink_dress(int fd, const struct tree_entry *e, bool owner)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_NOW },
		{ .tv_sec = (time_t)(e->mtime / NSEC_PER_SEC),
		  .tv_nsec = (long)(e->mtime % NSEC_PER_SEC) },
	};

	/* Whoever is given a file takes its set-user-ID bit off, so the mode comes last. */
	if (owner && fchown(fd, e->uid, e->gid) < 0)
		return -errno;
	if (fchmod(fd, e->mode & 07777) < 0)
		return -errno;
	return futimens(fd, times) < 0 ? -errno : 0;
}

static int tree_sink_name_temporary(struct tree_sink *s)
{
	char id[ID_SIZE];
	int r = id_new(id);

	return r < 0 ? r : str_printf(s->temporary, sizeof(s->temporary), ".nacre-%s", id);
}

static int tree_sink_directory(struct tree_sink *s, const struct tree_entry *e, bool owner,
			       struct error *err)
{
	_cleanup_fd_ int fd = -1;
	bool made = sysio_mkdirat(s->dir_fd, s->place, 0700) == 0;
	int r = made || errno == EEXIST ? 0 : -errno;

	if (r == 0) {
		fd = rootfd_open(s->dir_fd, s->place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		r = fd < 0 ? fd : 0;
	}
	/* One that was there keeps its own. */
	if (r == 0 && made)
		r = tree_sink_dress(fd, e, owner);
	return r < 0 ? error_set(err, r, "make the directory %.300s", e->path) : 0;
}

static int tree_sink_link(struct tree_sink *s, const struct tree_entry *e, bool owner,
			  struct error *err)
{
	int r = tree_sink_name_temporary(s);

	if (str_empty(e->target) || strlen(e->target) >= TREE_PATH_MAX)
		return error_field(err, ERROR_INVALID, "entry.link_target", "1 to %d bytes",
				   TREE_PATH_MAX - 1);
	if (r >= 0 && sysio_symlinkat(e->target, s->dir_fd, s->temporary) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, r, "make the link %.300s", e->path);
	r = 0;
	if (owner && fchownat(s->dir_fd, s->temporary, e->uid, e->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(s->dir_fd, s->temporary, s->dir_fd, s->place) < 0)
		r = -errno;
	if (r < 0)
		(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
	return r < 0 ? error_set(err, r, "make the link %.300s", e->path) : 0;
}

static int tree_sink_file(struct tree_sink *s, const struct tree_entry *e, bool owner,
			  struct error *err)
{
	int r = tree_sink_name_temporary(s);
	int fd = -1;

	if (r >= 0)
		fd = sysio_openat(s->dir_fd, s->temporary,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, r < 0 ? r : -errno, "make the file %.300s", e->path);
	s->file_fd = fd;
	s->entry = *e;
	s->entry.path = s->entry.target = s->entry.reason = NULL;
	s->owner = owner;
	return 0;
}

int tree_sink_finish(struct tree_sink *s, struct error *err)
{
	int r;

	if (s->file_fd < 0)
		return 0;
	r = tree_sink_dress(s->file_fd, &s->entry, s->owner);
	if (r == 0 && sysio_renameat(s->dir_fd, s->temporary, s->dir_fd, s->place) < 0)
		r = -errno;
	if (r < 0)
		(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
	s->file_fd = fd_close(s->file_fd);
	return r < 0 ? error_set(err, r, "put the file %.200s into %.200s", s->place,
				 *s->dir ? s->dir : "its directory")
		     : 0;
}

int tree_sink_entry(struct tree_sink *s, const struct tree_entry *e, bool owner, struct error *err)
{
	char path[TREE_PATH_MAX], dir[TREE_PATH_MAX];
	int r;

	r = tree_sink_finish(s, err);
	if (r == 0)
		r = tree_sink_check_path(e->path, err);
	if (r == 0)
		r = tree_sink_place(s, e->path, path, err);
	if (r < 0)
		return r;
	r = tree_sink_split(path, dir, s->place);
	if (r < 0)
		return error_field(err, ERROR_INVALID, "entry.path", "\"%.200s\"", path);
	r = tree_sink_enter(s, dir + 1, err);
	if (r < 0)
		return r;
	switch (e->type) {
	case TREE_FILE:
		return tree_sink_file(s, e, owner, err);
	case TREE_DIRECTORY:
		return tree_sink_directory(s, e, owner, err);
	case TREE_LINK:
		return tree_sink_link(s, e, owner, err);
	case TREE_OTHER:
	default:
		return error_field(err, ERROR_INVALID, "entry.type",
				   "neither a file nor a directory nor a link");
	}
}

int tree_sink_write(struct tree_sink *s, const void *data, size_t len, struct error *err)
{
	int r;

	if (s->file_fd < 0)
		return error_field(err, ERROR_INVALID, "data", "no file was begun");
	r = fd_write_full(s->file_fd, data, len);
	return r < 0 ? error_set(err, r, "write %.300s", s->place) : 0;
}
