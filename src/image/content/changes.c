/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. Directories that are to be read are paths in a list, so that two descriptors
 * do however deep a tree is; each is opened from the top, through no link. What the kernel writes
 * to an upper directory (Documentation/filesystems/overlayfs.rst): what is new or was written to,
 * as it is; a character device 0:0 (a whiteout) for what was deleted; and on a directory that took
 * the place of another the attribute "opaque", behind which nothing of the image is seen. With
 * "userxattr" no directory is redirected: one that was renamed was copied.
 *
 * Paths are sorted so that whatever is in a directory follows it at once; then each directory of
 * the image around a change is known to be missing in the list, or is there just before.
 */

#include "image/content/changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define CHANGES_OPAQUE "user.overlay.opaque"

struct changes_walk {
	int upper_fd, image_fd;
	struct buf found;   /* a kind, a path, a zero byte; and so on */
	struct buf pending; /* paths of directories, with a zero byte behind each */
	size_t at;          /* of these, the next */
	size_t n;
	struct error *err;
};

/* One directory of both trees. */
struct changes_dir {
	int upper_fd, image_fd; /* image_fd -1: the image has none there */
	const char *path;       /* "" at the top */
};

/* ---- what is told ---- */

static int changes_too_many(const struct changes_walk *w)
{
	return error_refuse(w->err, ERROR_EXHAUSTED,
			    "it has changed more than can be told (%u paths of together %u MiB); "
			    "export has all of its files",
			    CHANGES_MAX, CHANGES_BYTES_MAX >> 20);
}

static int changes_failed(const struct changes_walk *w, int r)
{
	return r == -ENOBUFS ? changes_too_many(w) : error_set(w->err, r, "compare its files");
}

static int changes_add(struct changes_walk *w, enum change_kind kind, const char *path)
{
	int r = ++w->n > CHANGES_MAX ? -ENOBUFS : buf_addf(&w->found, "%c%s", (char)kind, path);

	if (r == 0)
		r = buf_add(&w->found, "", 1);
	return r < 0 ? changes_failed(w, r) : 0;
}

static int changes_later(struct changes_walk *w, const char *path)
{
	int r = buf_add(&w->pending, path, strlen(path) + 1);

	return r < 0 ? changes_failed(w, r) : 0;
}

/* Places that the daemon makes, or writes, in each container. */
static bool changes_is_own(const char *path)
{
	static const char *const own[] = { "/dev",          "/proc",      "/sys",
					   "/etc/hostname", "/etc/hosts", "/etc/resolv.conf" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (str_eq(path, own[i]))
			return true;
	return false;
}

/* ---- one name ---- */

static bool changes_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static bool changes_are_same_directory(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid;
}

/* image: NULL where it has nothing of that name. */
static int changes_compare(struct changes_walk *w, const char *path, const struct stat *upper,
			   const struct stat *image)
{
	bool is_dir = S_ISDIR(upper->st_mode), both = image && is_dir && S_ISDIR(image->st_mode);
	int r = 0;

	if (changes_is_whiteout(upper))
		return image ? changes_add(w, CHANGE_DELETED, path) : 0;
	if (!image)
		r = changes_add(w, CHANGE_ADDED, path);
	else if (!both || !changes_are_same_directory(upper, image))
		r = changes_add(w, CHANGE_CHANGED, path);
	return r == 0 && is_dir ? changes_later(w, path) : r;
}

static bool changes_stat(int dir_fd, const char *name, struct stat *ret)
{
	return dir_fd >= 0 && fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

/* In the upper directory; or, the other way, in that of the image, for what an opaque one hides. */
static int changes_look(struct changes_walk *w, const struct changes_dir *d, const char *name,
			bool hidden)
{
	char path[CHANGES_PATH_MAX + 1];
	struct stat upper, image;
	bool is_above, is_below;

	if (str_printf(path, sizeof(path), "%s/%s", d->path, name) < 0)
		return error_refuse(
			w->err, ERROR_EXHAUSTED,
			"it has paths of more than %u bytes: export has all of its files",
			CHANGES_PATH_MAX);
	is_above = changes_stat(d->upper_fd, name, &upper);
	is_below = changes_stat(d->image_fd, name, &image);
	if (changes_is_own(path))
		return 0;
	if (hidden)
		return is_above || !is_below ? 0 : changes_add(w, CHANGE_DELETED, path);
	return is_above ? changes_compare(w, path, &upper, is_below ? &image : NULL) : 0;
}

/* ---- one directory ---- */

static void changes_closedir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int changes_each(struct changes_walk *w, const struct changes_dir *d, int fd, bool hidden)
{
	int own_fd = sysio_openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	__attribute__((cleanup(changes_closedir))) DIR *dir = own_fd < 0 ? NULL : fdopendir(own_fd);
	int r = 0;

	if (!dir) {
		r = -errno;
		(void)fd_close(own_fd);
		return changes_failed(w, r);
	}
	while (r == 0) {
		const struct dirent *e = readdir(dir);

		if (!e)
			break;
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			r = changes_look(w, d, e->d_name, hidden);
	}
	return r;
}

/* A directory now, through no link; or a negative errno. */
static int changes_open(int top_fd, const char *path)
{
	_cleanup_fd_ int fd = rootfd_point(top_fd, *path ? path + 1 : ".");
	int dir_fd;

	if (fd < 0)
		return fd;
	dir_fd = sysio_openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return dir_fd < 0 ? -errno : dir_fd;
}

static int changes_read(struct changes_walk *w, const char *path)
{
	_cleanup_fd_ int upper_fd = changes_open(w->upper_fd, path);
	_cleanup_fd_ int image_fd = changes_open(w->image_fd, path);
	const struct changes_dir d = { upper_fd, image_fd, path };
	bool opaque;
	int r;

	/* Taken away, or replaced, meanwhile. */
	if (upper_fd < 0)
		return upper_fd == -ENOENT || upper_fd == -ENOTDIR || upper_fd == -ELOOP
			       ? 0
			       : changes_failed(w, upper_fd);
	opaque = image_fd >= 0 && fgetxattr(upper_fd, CHANGES_OPAQUE, NULL, 0) > 0;
	r = changes_each(w, &d, upper_fd, false);
	return r == 0 && opaque ? changes_each(w, &d, image_fd, true) : r;
}

static int changes_read_all(struct changes_walk *w)
{
	int r = changes_later(w, "");

	while (r == 0 && w->at < w->pending.len) {
		_cleanup_str_ char *path = strdup((const char *)buf_data(&w->pending) + w->at);

		if (!path)
			return changes_failed(w, -ENOMEM);
		w->at += strlen(path) + 1;
		r = changes_read(w, path);
	}
	return r;
}

/* ---- the order ---- */

/* '/' comes before all else, so that what is in a directory stands behind it. */
static int changes_order(const void *a, const void *b)
{
	const unsigned char *x = *(const unsigned char *const *)a;
	const unsigned char *y = *(const unsigned char *const *)b;

	x++;
	y++;
	while (*x && *x == *y) {
		x++;
		y++;
	}
	if (*x == '/' || *y == '/')
		return !*x || !*y ? (int)*x - (int)*y : *x == '/' ? -1 : 1;
	return (int)*x - (int)*y;
}

/* As pointers into the text, sorted. */
static int changes_sort(struct buf *text, size_t n, const char ***ret)
{
	const char **list = calloc(n + 1, sizeof(*list));
	const char *at = (const char *)buf_data(text);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		list[i] = at;
		at += strlen(at) + 1;
	}
	qsort(list, n, sizeof(*list), changes_order);
	*ret = list;
	return 0;
}

/* Whether `last` is the directory of the first len bytes of path, or in there. */
static bool changes_is_within(const char *last, const char *path, size_t len)
{
	return strncmp(last, path, len) == 0 && (!last[len] || last[len] == '/');
}

/* Those around a path that the list has not told yet. */
static int changes_add_around(struct changes_walk *w, const char *last, const char *path)
{
	int r = 0;

	for (const char *end = strchr(path + 1, '/'); end && r == 0; end = strchr(end + 1, '/')) {
		char around[CHANGES_PATH_MAX + 1];

		(void)str_printf(around, sizeof(around), "%.*s", (int)(end - path), path);
		if (!changes_is_within(last, path, (size_t)(end - path)))
			r = changes_add(w, CHANGE_CHANGED, around);
	}
	return r;
}

/* Adds them behind what was found. */
static int changes_complete(struct changes_walk *w)
{
	const char **list = NULL;
	struct buf found = w->found;
	size_t n = w->n;
	int r;

	w->found = (struct buf)BUF_INIT_LIMIT(CHANGES_BYTES_MAX);
	w->n = 0;
	r = changes_sort(&found, n, &list);
	if (r < 0)
		(void)changes_failed(w, r);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = changes_add_around(w, i ? list[i - 1] + 1 : "", list[i] + 1);
		if (r == 0)
			r = changes_add(w, (enum change_kind)list[i][0], list[i] + 1);
	}
	free(list);
	buf_done(&found);
	return r;
}

/* ---- all of it ---- */

int changes_find(struct changes *ret, int upper_fd, int image_fd, struct error *err)
{
	struct changes_walk w = { .upper_fd = upper_fd,
				  .image_fd = image_fd,
				  .found = BUF_INIT_LIMIT(CHANGES_BYTES_MAX),
				  .pending = BUF_INIT_LIMIT(CHANGES_BYTES_MAX),
				  .err = err };
	const char **list = NULL;
	int r = changes_read_all(&w);

	if (r == 0)
		r = changes_complete(&w);
	if (r == 0) {
		r = changes_sort(&w.found, w.n, &list);
		if (r < 0)
			(void)changes_failed(&w, r);
	}
	buf_done(&w.pending);
	if (r < 0) {
		buf_done(&w.found);
		return r;
	}
	*ret = (struct changes){ .list = list, .n = w.n, .text = w.found };
	return 0;
}

void changes_done(struct changes *c)
{
	free(c->list);
	buf_done(&c->text);
	*c = (struct changes){ .n = 0 };
}
