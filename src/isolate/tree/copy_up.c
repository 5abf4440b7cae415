/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/copy_up.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

/* By descriptor alone, one component at a time, never following a link. */

#define COPY_UP_CHUNK (1 << 20)

static int copy_up_meta(int fd, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (fchown(fd, st->st_uid, st->st_gid) < 0 || fchmod(fd, st->st_mode & 07777) < 0 ||
	    futimens(fd, times) < 0)
		return -errno;
	return 0;
}

#define COPY_UP_NAMES_MAX 4096 /* bytes of all names of attributes, then they are too many */
#define COPY_UP_VALUE_MAX 65536

/* An attribute that the destination has no place for is left behind. */
static int copy_up_attribute(int from_fd, int to_fd, const char *name, char *value)
{
	ssize_t n = fgetxattr(from_fd, name, value, COPY_UP_VALUE_MAX);

	if (n < 0)
		return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
	if (fsetxattr(to_fd, name, value, (size_t)n, 0) < 0 && errno != EOPNOTSUPP &&
	    errno != EPERM && errno != EACCES)
		return -errno;
	return 0;
}

static int copy_up_attributes(int from_fd, int to_fd, char *value)
{
	char names[COPY_UP_NAMES_MAX];
	ssize_t n = flistxattr(from_fd, names, sizeof(names));
	int r = 0;

	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (ssize_t at = 0; at < n && r == 0; at += (ssize_t)strlen(names + at) + 1)
		r = copy_up_attribute(from_fd, to_fd, names + at, value);
	return r;
}

/* The attributes come behind the owner, whose change takes capabilities away. value: room for one
 * of them; NULL: none is copied. */
static int copy_up_all_meta(int from_fd, int to_fd, const struct stat *st, char *value)
{
	int r = copy_up_meta(to_fd, st);

	return r < 0 || !value ? r : copy_up_attributes(from_fd, to_fd, value);
}

/* By hand, a block at a time. A hole stays one: what is zero is not written. */
static int copy_up_rest(int from_fd, int to_fd)
{
	static const char zeroes[4096];
	char block[4096];

	for (;;) {
		ssize_t n = sysio_read(from_fd, block, sizeof(block));
		int r = 0;

		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (memcmp(block, zeroes, (size_t)n) != 0)
			r = fd_write_full(to_fd, block, (size_t)n);
		else if (lseek(to_fd, n, SEEK_CUR) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
}

/* What is between holes, as far as both file systems do that. 0, 1: the rest is to be copied by
 * hand, from where both are. */
static int copy_up_pieces(int from_fd, int to_fd, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t from = lseek(from_fd, at, SEEK_DATA), to;
		ssize_t n;

		if (from < 0 && errno == ENXIO)
			return 0;
		to = from < 0 ? -1 : lseek(from_fd, from, SEEK_HOLE);
		at = from < 0 ? at : from;
		while (to >= 0 && at < to) {
			off_t in = at, out = at;

			n = copy_file_range(from_fd, &in, to_fd, &out, (size_t)(to - at), 0);
			if (n <= 0)
				break;
			at += n;
		}
		if (to >= 0 && at == to)
			continue;
		return lseek(from_fd, at, SEEK_SET) < 0 || lseek(to_fd, at, SEEK_SET) < 0 ? -errno
											  : 1;
	}
	return 0;
}

static int copy_up_data(int from_fd, int to_fd, off_t size)
{
	int r = size > 0 ? copy_up_pieces(from_fd, to_fd, size) : 1;

	/* copy_file_range() does not go from one kind of file system to another, and files of the
	 * kernel's own making have another size than they say. */
	if (r > 0) {
		r = copy_up_rest(from_fd, to_fd);
		size = lseek(to_fd, 0, SEEK_CUR);
	}
	if (r == 0 && (size < 0 || ftruncate(to_fd, size) < 0))
		r = -errno;
	return r;
}

static int copy_up_file(int from_dir, int to_dir, const char *name, const struct stat *st,
			char *value)
{
	_cleanup_fd_ int from_fd = sysio_openat(
		from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	_cleanup_fd_ int to_fd = -1;
	struct stat seen;
	int r;

	if (from_fd < 0 || fstat(from_fd, &seen) < 0)
		return -errno;
	if (!S_ISREG(seen.st_mode))
		return -ESTALE;
	to_fd = sysio_openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			     0600);
	if (to_fd < 0)
		return -errno;
	r = copy_up_data(from_fd, to_fd, seen.st_size);
	return r < 0 ? r : copy_up_all_meta(from_fd, to_fd, st, value);
}

/* What it is known by among the names of files that have several. */
static void copy_up_key(char key[32], const struct stat *st)
{
	(void)str_printf(key, 32, "%llx-%llx", (unsigned long long)st->st_dev,
			 (unsigned long long)st->st_ino);
}

static int copy_up_link(int from_dir, int to_dir, const char *name, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target));

	if (n < 0 || n == sizeof(target))
		return n < 0 ? -errno : -ENAMETOOLONG;
	target[n] = '\0';
	if (sysio_symlinkat(target, to_dir, name) < 0 ||
	    fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int copy_up_node(int to_dir, const char *name, const struct stat *st)
{
	if (sysio_mknodat(to_dir, name, st->st_mode, st->st_rdev) < 0 ||
	    fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* A stack of open pairs instead of a call in a call. */
struct copy_up_level {
	int from_fd, to_fd;
	struct stat st;
};

struct copy_up {
	struct copy_up_level levels[COPY_UP_DEPTH_MAX];
	size_t depth;
	/* To a disk, with attributes and hard links; -1 and NULL: to a tmpfs. */
	int links_fd;
	char *value;
};

static void copy_up_done(struct copy_up *c)
{
	while (c->depth) {
		c->depth--;
		(void)fd_close(c->levels[c->depth].from_fd);
		(void)fd_close(c->levels[c->depth].to_fd);
	}
}

static int copy_up_push(struct copy_up *c, int from_dir, int to_dir, const char *name)
{
	struct copy_up_level *l = &c->levels[c->depth];

	if (c->depth == COPY_UP_DEPTH_MAX)
		return -ELOOP;
	l->from_fd =
		sysio_openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (l->from_fd < 0)
		return -errno;
	l->to_fd = sysio_openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (l->to_fd < 0 || fstat(l->from_fd, &l->st) < 0) {
		int r = -errno;

		(void)fd_close(l->from_fd);
		(void)fd_close(l->to_fd);
		return r;
	}
	c->depth++;
	return 0;
}

/* A file with several names is copied where the first of them is seen. */
static int copy_up_linked(const struct copy_up *c, int from_dir, int to_dir, const char *name,
			  const struct stat *st)
{
	char key[32];
	int r;

	copy_up_key(key, st);
	if (sysio_linkat(c->links_fd, key, to_dir, name) == 0)
		return 0;
	if (errno != ENOENT && errno != EMLINK)
		return -errno;
	r = copy_up_file(from_dir, to_dir, name, st, c->value);
	if (r == 0 && sysio_linkat(to_dir, name, c->links_fd, key) < 0 && errno != EEXIST)
		r = -errno;
	return r;
}

static int copy_up_one(struct copy_up *c, const char *name)
{
	bool disk = c->links_fd >= 0;

	int from_dir = c->levels[c->depth - 1].from_fd, to_dir = c->levels[c->depth - 1].to_fd;
	struct stat st;

	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) && disk && st.st_nlink > 1)
		return copy_up_linked(c, from_dir, to_dir, name, &st);
	if (S_ISREG(st.st_mode))
		return copy_up_file(from_dir, to_dir, name, &st, c->value);
	if (S_ISLNK(st.st_mode))
		return copy_up_link(from_dir, to_dir, name, &st);
	if (S_ISSOCK(st.st_mode) || (disk && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return copy_up_node(to_dir, name, &st);
	if (sysio_mkdirat(to_dir, name, 0700) < 0)
		return -errno;
	return copy_up_push(c, from_dir, to_dir, name);
}

static bool copy_up_is_dot(const char *name)
{
	return str_eq(name, ".") || str_eq(name, "..");
}

/*
 * One entry at a time, so that a directory can be left in the middle for one below it: the position
 * is set behind the entry that was taken.
 */
static int copy_up_step(struct copy_up *c)
{
	struct copy_up_level *l = &c->levels[c->depth - 1];
	_Alignas(struct dirent64) char block[1024];
	struct dirent64 *entry = (struct dirent64 *)(void *)block;
	long n = syscall(SYS_getdents64, l->from_fd, block, sizeof(block));
	int r;

	if (n < 0)
		return -errno;
	if (n == 0) {
		r = copy_up_all_meta(l->from_fd, l->to_fd, &l->st, c->value);
		(void)fd_close(l->from_fd);
		(void)fd_close(l->to_fd);
		c->depth--;
		return r;
	}
	if (lseek(l->from_fd, entry->d_off, SEEK_SET) < 0)
		return -errno;
	return copy_up_is_dot(entry->d_name) ? 0 : copy_up_one(c, entry->d_name);
}

static int copy_up_all(struct copy_up *c, int dir_fd, int to_fd, struct error *err)
{
	int r = copy_up_push(c, dir_fd, to_fd, ".");

	while (r == 0 && c->depth)
		r = copy_up_step(c);
	return r < 0 ? error_set(err, r, "copy what the directory holds") : 0;
}

int copy_up(int root_fd, const char *path, int tmpfs_fd, struct error *err)
{
	_cleanup_(copy_up_done) struct copy_up c = { .links_fd = -1 };
	_cleanup_fd_ int dir_fd = rootfd_open(root_fd, path, O_PATH | O_DIRECTORY, 0);

	if (dir_fd == -ENOENT)
		return 0;
	if (dir_fd < 0)
		return error_set(err, dir_fd, "open what is to be copied");
	return copy_up_all(&c, dir_fd, tmpfs_fd, err);
}

int copy_up_to_disk(int root_fd, const char *path, int dir_fd, int links_fd, struct error *err)
{
	_cleanup_str_ char *value = malloc(COPY_UP_VALUE_MAX);
	_cleanup_(copy_up_done) struct copy_up c = { .links_fd = links_fd, .value = value };
	_cleanup_fd_ int from_fd = rootfd_open(root_fd, path, O_PATH | O_DIRECTORY, 0);
	int r;

	if (!value)
		return error_set(err, -ENOMEM, "copy what the directory holds");
	/* A link that leads nowhere, or in a circle, is told by the mount. */
	if (from_fd == -ENOENT || from_fd == -ENOTDIR || from_fd == -ELOOP)
		return 0;
	if (from_fd < 0)
		return error_set(err, from_fd, "open what is to be copied");
	r = copy_up_all(&c, from_fd, dir_fd, err);
	return r < 0 ? r : 1;
}
