/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "base/time/clock.h"

/*
 * A walk in depth with one open directory for each level. Every name is opened as O_PATH first and
 * looked at, and then that very descriptor is opened again (by /proc/self/fd): what stands under
 * the name by then does not matter.
 */

/* Bytes of paths that are remembered for hard links. */
#define TREE_LINKS_BYTES ((size_t)16 << 20)

/* A file with more than one name. */
struct tree_known {
	char key[48]; /* device and inode */
	char path[];  /* the first of them */
};

struct tree_source {
	unsigned flags;
	DIR *dirs[TREE_DEPTH_MAX];
	size_t n_dirs;
	size_t ends[TREE_DEPTH_MAX]; /* length of `path` at each of them */
	char path[TREE_PATH_MAX];    /* of the entry that was told of last */
	char target[TREE_PATH_MAX];
	uint64_t mount; /* of the root of the tree, with TREE_ONE_MOUNT */
	int start_fd;   /* of the root of the tree until it was told of */
	int file_fd;    /* of the file that was told of last */
	uint64_t left;  /* of that one, or of the extent in hand */
	struct tree_extent *map;
	size_t n_map, extent; /* of that file: the next one */
	struct map known;     /* struct tree_known */
	size_t known_bytes;
};

bool tree_is_kernels(int fd)
{
	/* mqueue has no name in linux/magic.h. */
	static const unsigned long kernels[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC,  TRACEFS_MAGIC,      SECURITYFS_MAGIC,
		BPF_FS_MAGIC,       PSTOREFS_MAGIC, EFIVARFS_MAGIC,     SELINUX_MAGIC,
		BINFMTFS_MAGIC,     NSFS_MAGIC,     0x19800202,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		if ((unsigned long)fs.f_type == kernels[i])
			return true;
	}
	return false;
}

/* 0 where the kernel does not say. */
static uint64_t tree_source_mount(int path_fd)
{
	struct statx st;

	if (statx(path_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID))
		return 0;
	return st.stx_mnt_id;
}

static int tree_source_again(int path_fd, int flags)
{
	char name[64];
	int fd;

	(void)str_printf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = sysio_openat(AT_FDCWD, name, flags | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* The last name of a path without the '/' behind it; its length in *ret_len. */
static const char *tree_last(const char *path, size_t *ret_len)
{
	size_t len = strlen(path), begin;

	while (len > 0 && path[len - 1] == '/')
		len--;
	begin = len;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	*ret_len = len - begin;
	return path + begin;
}

static int tree_source_set_name(struct tree_source *s, const char *path, const char *name,
				struct error *err)
{
	size_t len;
	const char *last = tree_last(path, &len);

	if (len == 0 || (len == 1 && last[0] == '.'))
		return str_copy(s->path, sizeof(s->path), name);
	if (len == 2 && memcmp(last, "..", 2) == 0)
		return error_field(err, ERROR_INVALID, "path", "\"%.200s\" ends with \"..\"", path);
	return str_printf(s->path, sizeof(s->path), "%.*s", (int)len, last) < 0
		       ? error_field(err, ERROR_INVALID, "path", "its last name is too long")
		       : 0;
}

int tree_source_open(struct tree_source **ret, int root_fd, const char *path, const char *name,
		     unsigned flags, struct error *err)
{
	_cleanup_(tree_source_freep) struct tree_source *s = calloc(1, sizeof(*s));
	bool directory = str_has_suffix(path, "/") || str_has_suffix(path, "/.");
	bool follow = directory || flags & TREE_FOLLOW;
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "read a tree");
	s->start_fd = s->file_fd = -1;
	s->flags = flags;
	r = tree_source_set_name(s, path, name, err);
	if (r < 0)
		return r;
	s->start_fd = rootfd_open(root_fd, path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0);
	if (s->start_fd == -ENOENT || s->start_fd == -ENOTDIR)
		return error_field(err, ERROR_NOT_FOUND, "path", "there is no %s%.200s",
				   directory ? "directory " : "", path);
	if (s->start_fd == -ENAMETOOLONG)
		return error_field(err, ERROR_INVALID, "path", "a name in %.200s is too long",
				   path);
	if (s->start_fd < 0)
		return error_set(err, s->start_fd, "path: open %.200s", path);
	s->mount = flags & TREE_ONE_MOUNT ? tree_source_mount(s->start_fd) : 0;
	*ret = TAKE_PTR(s);
	return 0;
}

static void tree_source_forget(struct tree_source *s)
{
	size_t pos = 0;

	for (;;) {
		struct tree_known *k = map_next(&s->known, &pos);

		if (!k)
			break;
		(void)map_remove(&s->known, k->key);
		free(k);
	}
	map_done(&s->known);
}

struct tree_source *tree_source_free(struct tree_source *s)
{
	if (!s)
		return NULL;
	while (s->n_dirs > 0)
		(void)closedir(s->dirs[--s->n_dirs]);
	(void)fd_close(s->start_fd);
	(void)fd_close(s->file_fd);
	tree_source_forget(s);
	free(s->map);
	free(s);
	return NULL;
}

static int tree_source_enter(struct tree_source *s, int path_fd, struct error *err)
{
	int fd;

	if (s->n_dirs == TREE_DEPTH_MAX)
		return error_field(err, ERROR_EXHAUSTED, "path",
				   "%.300s is deeper than %d directories", s->path, TREE_DEPTH_MAX);
	fd = tree_source_again(path_fd, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return error_set(err, fd, "open %.300s", s->path);
	s->dirs[s->n_dirs] = fdopendir(fd);
	if (!s->dirs[s->n_dirs]) {
		(void)fd_close(fd);
		return error_set(err, -ENOMEM, "read %.300s", s->path);
	}
	s->ends[s->n_dirs++] = strlen(s->path);
	return 0;
}

/*
 * Where the file has data, as far as its file system tells; false: everywhere. What comes and goes
 * meanwhile is read as it is then: a map is only where to look.
 */
static bool tree_source_find_holes(struct tree_source *s, int fd, uint64_t size)
{
	s->n_map = 0;
	for (uint64_t at = 0; at < size;) {
		struct tree_extent *e = &s->map[s->n_map];
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), end;

		if (data < 0 && errno != ENXIO)
			return false;
		if (data < 0 || (uint64_t)data >= size)
			break;
		end = lseek(fd, data, SEEK_HOLE);
		if (end <= data)
			return false;
		if (s->n_map == TREE_EXTENTS_MAX) {
			e[-1].len = size - e[-1].at;
			break;
		}
		at = MIN((uint64_t)end, size);
		*e = (struct tree_extent){ .at = (uint64_t)data, .len = at - (uint64_t)data };
		s->n_map++;
	}
	return s->n_map != 1 || s->map[0].len != size;
}

/* Goes to the next extent of the map; 0 where there is none. */
static int tree_source_go_on(struct tree_source *s)
{
	const struct tree_extent *e = &s->map[s->extent];

	if (s->extent == s->n_map)
		return 0;
	if (lseek(s->file_fd, (off_t)e->at, SEEK_SET) < 0)
		return -errno;
	s->left = e->len;
	s->extent++;
	return 1;
}

static int tree_source_map(struct tree_source *s, struct tree_entry *ret, struct error *err)
{
	int r = 0;

	if (!s->map)
		s->map = calloc(TREE_EXTENTS_MAX, sizeof(*s->map));
	if (!s->map)
		return error_set(err, -ENOMEM, "read %.300s", s->path);
	if (tree_source_find_holes(s, s->file_fd, ret->size)) {
		ret->map = s->map;
		ret->n_map = s->n_map;
		s->left = 0;
		r = tree_source_go_on(s);
	} else {
		s->n_map = 0;
		if (lseek(s->file_fd, 0, SEEK_SET) < 0)
			r = -errno;
	}
	return r < 0 ? error_set(err, r, "read %.300s", s->path) : 0;
}

static int tree_source_begin_file(struct tree_source *s, int path_fd, uint64_t size,
				  struct error *err)
{
	int fd = tree_source_again(path_fd, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return error_set(err, fd, "open %.300s", s->path);
	s->file_fd = fd;
	s->left = size;
	return 0;
}

/* An empty path of a descriptor is the link itself (2.6.39). */
static int tree_source_link(struct tree_source *s, int path_fd, struct error *err)
{
	ssize_t n = readlinkat(path_fd, "", s->target, sizeof(s->target) - 1);

	if (n < 0)
		return error_set(err, -errno, "read the link %.300s", s->path);
	s->target[n] = '\0';
	return 0;
}

/* The path under which this file was told of before; NULL: it is remembered now, where there is
 * room. */
static const char *tree_source_known(struct tree_source *s, const struct stat *st)
{
	size_t len = strlen(s->path) + 1;
	struct tree_known *k;
	char key[sizeof(k->key)];

	(void)str_printf(key, sizeof(key), "%llx:%llx", (unsigned long long)st->st_dev,
			 (unsigned long long)st->st_ino);
	k = map_get(&s->known, key);
	if (k)
		return k->path;
	if (s->known.n >= TREE_LINKS_MAX || s->known_bytes + len > TREE_LINKS_BYTES)
		return NULL;
	k = malloc(sizeof(*k) + len);
	if (!k)
		return NULL;
	memcpy(k->key, key, sizeof(key));
	memcpy(k->path, s->path, len);
	if (map_add(&s->known, k->key, k) < 0)
		free(k);
	else
		s->known_bytes += len;
	return NULL;
}

static int tree_source_file(struct tree_source *s, int path_fd, const struct stat *st,
			    struct tree_entry *ret, struct error *err)
{
	bool exact = s->flags & TREE_EXACT;
	int r;

	if (exact && st->st_nlink > 1)
		ret->target = tree_source_known(s, st);
	if (ret->target) {
		ret->type = TREE_HARD_LINK;
		return 0;
	}
	ret->type = TREE_FILE;
	ret->size = (uint64_t)st->st_size;
	s->n_map = s->extent = 0;
	r = tree_source_begin_file(s, path_fd, ret->size, err);
	if (r == 0 && exact && (uint64_t)st->st_blocks < ret->size / 512)
		r = tree_source_map(s, ret, err);
	return r;
}

/* What is mounted in its place is passed over. */
static int tree_source_place(const struct stat *st, struct tree_entry *ret)
{
	ret->type = S_ISDIR(st->st_mode) ? TREE_DIRECTORY : TREE_FILE;
	return 1;
}

/* Nanoseconds since 1970. A time outside of their range becomes the nearest one inside. */
static uint64_t tree_source_time(const struct timespec *t)
{
	if (t->tv_sec < 0)
		return 0;
	if ((uint64_t)t->tv_sec >= INT64_MAX / NSEC_PER_SEC)
		return INT64_MAX;
	return (uint64_t)t->tv_sec * NSEC_PER_SEC + (uint64_t)t->tv_nsec;
}

/* Tells of what the O_PATH descriptor stands for, s->path being its name. */
static int tree_source_tell(struct tree_source *s, int path_fd, struct tree_entry *ret,
			    struct error *err)
{
	struct stat st;
	int r = 0;

	if (fstat(path_fd, &st) < 0)
		return error_set(err, -errno, "look at %.300s", s->path);
	*ret = (struct tree_entry){
		.type = TREE_OTHER,
		.path = s->path,
		.mode = st.st_mode & 07777,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.mtime = tree_source_time(&st.st_mtim),
	};
	if (s->flags & TREE_ONE_MOUNT && tree_source_mount(path_fd) != s->mount)
		return tree_source_place(&st, ret);
	if (tree_is_kernels(path_fd)) {
		ret->reason = "it is on a file system of the kernel";
	} else if (S_ISREG(st.st_mode)) {
		r = tree_source_file(s, path_fd, &st, ret, err);
	} else if (S_ISDIR(st.st_mode)) {
		ret->type = TREE_DIRECTORY;
		r = tree_source_enter(s, path_fd, err);
	} else if (S_ISLNK(st.st_mode)) {
		ret->type = TREE_LINK;
		ret->target = s->target;
		r = tree_source_link(s, path_fd, err);
	} else if (S_ISFIFO(st.st_mode)) {
		ret->type = TREE_FIFO;
	} else {
		ret->reason = S_ISSOCK(st.st_mode) ? "it is a socket" : "it is a device";
	}
	return r < 0 ? r : 1;
}

/* The next name of the innermost directory, behind its path; 0 where it has no more. */
static int tree_source_name(struct tree_source *s, const char **ret, struct error *err)
{
	DIR *dir = s->dirs[s->n_dirs - 1];
	size_t end = s->ends[s->n_dirs - 1];
	const struct dirent *e;

	do {
		errno = 0;
		e = readdir(dir);
	} while (e && (str_eq(e->d_name, ".") || str_eq(e->d_name, "..")));
	s->path[end] = '\0';
	if (!e)
		return errno ? error_set(err, -errno, "read %.300s", s->path) : 0;
	if (str_printf(s->path + end, sizeof(s->path) - end, "/%s", e->d_name) < 0) {
		s->path[end] = '\0';
		return error_field(err, ERROR_EXHAUSTED, "path",
				   "a name in %.300s is longer than %d bytes in all", s->path,
				   TREE_PATH_MAX);
	}
	*ret = s->path + end + 1;
	return 1;
}

int tree_source_next(struct tree_source *s, struct tree_entry *ret, struct error *err)
{
	s->file_fd = fd_close(s->file_fd);
	if (s->start_fd >= 0) {
		_cleanup_fd_ int fd = TAKE_FD(s->start_fd);

		return tree_source_tell(s, fd, ret, err);
	}
	while (s->n_dirs > 0) {
		_cleanup_fd_ int fd = -1;
		const char *name;
		int r;

		r = tree_source_name(s, &name, err);
		if (r < 0)
			return r;
		if (r == 0) {
			(void)closedir(s->dirs[--s->n_dirs]);
			continue;
		}
		fd = rootfd_open(dirfd(s->dirs[s->n_dirs - 1]), name, O_PATH | O_NOFOLLOW, 0);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return error_set(err, fd, "open %.300s", s->path);
		return tree_source_tell(s, fd, ret, err);
	}
	return 0;
}

ssize_t tree_source_read(struct tree_source *s, void *data, size_t size, struct error *err)
{
	ssize_t n;

	if (s->file_fd < 0)
		return 0;
	if (s->left == 0) {
		int r = tree_source_go_on(s);

		if (r <= 0)
			return r < 0 ? error_set(err, r, "read %.300s", s->path) : 0;
	}
	do
		n = sysio_read(s->file_fd, data, MIN(size, s->left));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "read %.300s", s->path);
	s->left = n == 0 ? 0 : s->left - (size_t)n;
	/* It became shorter. */
	if (n == 0)
		s->extent = s->n_map;
	return n;
}
