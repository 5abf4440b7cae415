/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A directory is read to its end at once; of what is in it the directories wait, by path from the
 * top, in one buffer that is used as a stack. The path is opened a component at a time from the
 * top, so no depth needs more descriptors, and one that has been moved away meanwhile is just not
 * found.
 */

#include "image/content/measure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define MEASURE_BLOCK 512 /* of st_blocks, whatever the file system */
#define MEASURE_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

struct measure_walk {
	struct measure *m;
	dev_t dev;
	char *paths; /* one behind the other, each ended by NUL */
	size_t n, size;
	uint64_t *links; /* inodes that were seen: an open hash, 0 is free */
	size_t n_links, links_size;
	size_t n_opens;
};

static void measure_walk_done(struct measure_walk *w)
{
	free(w->paths);
	free(w->links);
}

/* ---- hard links ---- */

static bool measure_put_link(uint64_t *links, size_t size, uint64_t inode)
{
	size_t at = (size_t)(inode * UINT64_C(0x9e3779b97f4a7c15)) & (size - 1);

	for (; links[at]; at = (at + 1) & (size - 1))
		if (links[at] == inode)
			return false;
	links[at] = inode;
	return true;
}

static int measure_grow_links(struct measure_walk *w)
{
	size_t size = w->links_size ? w->links_size * 2 : 1024;
	uint64_t *links = calloc(size, sizeof(*links));

	if (!links)
		return -ENOMEM;
	for (size_t i = 0; i < w->links_size; i++)
		if (w->links[i])
			(void)measure_put_link(links, size, w->links[i]);
	free(w->links);
	w->links = links;
	w->links_size = size;
	return 0;
}

/* 1: it is met for the first time. */
static int measure_is_new(struct measure_walk *w, uint64_t inode)
{
	int r;

	if (w->n_links >= MEASURE_LINKS_MAX) {
		w->m->incomplete = true;
		return 0;
	}
	if (w->n_links * 2 >= w->links_size) {
		r = measure_grow_links(w);
		if (r < 0)
			return r;
	}
	if (!measure_put_link(w->links, w->links_size, inode))
		return 0;
	w->n_links++;
	return 1;
}

/* ---- the walk ---- */

/* "path/name" goes onto the stack: each begins with '/'. */
static int measure_push(struct measure_walk *w, const char *path, const char *name)
{
	size_t len = strlen(path), name_len = strlen(name), more = len + name_len + 2;

	if (w->n + more > MEASURE_PENDING_MAX || more > MEASURE_PATH_MAX) {
		w->m->incomplete = true;
		return 0;
	}
	if (w->n + more > w->size) {
		size_t size = w->size ? w->size * 2 : 4096;
		char *paths;

		while (size < w->n + more)
			size *= 2;
		paths = realloc(w->paths, size);
		if (!paths)
			return -ENOMEM;
		w->paths = paths;
		w->size = size;
	}
	memcpy(w->paths + w->n, path, len);
	w->paths[w->n + len] = '/';
	memcpy(w->paths + w->n + len + 1, name, name_len + 1);
	w->n += more;
	return 0;
}

/* The path on top of the stack, which the caller frees; NULL where there is none. */
static int measure_pop(struct measure_walk *w, char **ret)
{
	size_t at = w->n;

	*ret = NULL;
	if (!at)
		return 0;
	for (at--; at > 0 && w->paths[at - 1];)
		at--;
	*ret = strdup(w->paths + at);
	w->n = at;
	return *ret ? 1 : -ENOMEM;
}

static int measure_count(struct measure_walk *w, const struct stat *st)
{
	int r = 1;

	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
		r = measure_is_new(w, (uint64_t)st->st_ino);
	if (r <= 0)
		return r;
	w->m->bytes += (uint64_t)st->st_blocks * MEASURE_BLOCK;
	w->m->n_inodes++;
	return 0;
}

static int measure_entry(struct measure_walk *w, int fd, const char *path, const char *name)
{
	struct stat st;
	int r;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		w->m->incomplete = w->m->incomplete || errno != ENOENT;
		return 0;
	}
	/* What is mounted there is not of this disk. */
	if (st.st_dev != w->dev)
		return 0;
	r = measure_count(w, &st);
	return r == 0 && S_ISDIR(st.st_mode) ? measure_push(w, path, name) : r;
}

/* dir_fd/path, whose components are separated by '/' and none a link. */
static int measure_open(struct measure_walk *w, int dir_fd, char *path)
{
	_cleanup_fd_ int fd = fd_copy(dir_fd);
	char *name = path;

	while (fd >= 0 && name) {
		char *slash = strchr(name, '/');
		int next;

		if (w->n_opens++ >= MEASURE_OPENS_MAX)
			return -E2BIG;

		if (slash)
			*slash = '\0';
		next = sysio_openat(fd, name, MEASURE_FLAGS, 0);
		if (slash)
			*slash = '/';
		if (next < 0)
			return -errno;
		(void)fd_close(fd);
		fd = next;
		name = slash ? slash + 1 : NULL;
	}
	return TAKE_FD(fd);
}

static void measure_close(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int measure_directory(struct measure_walk *w, int dir_fd, char *path)
{
	_cleanup_fd_ int fd = measure_open(w, dir_fd, path + 1);
	_cleanup_(measure_close) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		w->m->incomplete = w->m->incomplete || fd != -ENOENT;
		return 0;
	}
	fd = -1;
	for (;;) {
		const struct dirent *e = readdir(dir);
		int r;

		if (!e)
			return 0;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		r = measure_entry(w, dirfd(dir), path, e->d_name);
		if (r < 0)
			return r;
	}
}

static int measure_walk(struct measure_walk *w, int dir_fd)
{
	for (;;) {
		_cleanup_str_ char *path = NULL;
		int r;

		r = measure_pop(w, &path);
		if (r > 0)
			r = measure_directory(w, dir_fd, path);
		if (r < 0 || !path)
			return r;
	}
}

int measure_tree(struct measure *m, int dir_fd, const char *name)
{
	_cleanup_(measure_walk_done) struct measure_walk w = { .m = m };
	struct stat st;
	int r;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	w.dev = st.st_dev;
	m->changed = st.st_mtim.tv_sec;
	r = measure_count(&w, &st);
	if (r == 0 && S_ISDIR(st.st_mode))
		r = measure_push(&w, "", name);
	return r == 0 ? measure_walk(&w, dir_fd) : r;
}
