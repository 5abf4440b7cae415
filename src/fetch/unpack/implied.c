/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/implied.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/unpack/place.h"
#include "wire/message/implied.h"

static const char implied_marks[] = { [IMPLIED_BY_ENTRY] = 'y', [IMPLIED_BY_WHITEOUT] = 'w' };

#define IMPLIED_BYTES_MAX (UINT64_C(1) << 30) /* of the list */

static int implied_note(struct implied *i, const char *path, struct error *err)
{
	size_t len = strlen(path) + 1;
	int r;

	i->n_bytes += len;
	if (i->n_bytes > IMPLIED_BYTES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "the layer has too many directories that it does not describe");
	if (i->file_fd < 0)
		i->file_fd =
			sysio_openat(i->root_fd, IMPLIED_FILE,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = i->file_fd < 0 ? -errno : fd_write_full(i->file_fd, path, len);
	return r < 0 ? error_set(err, r, "list a directory that is not described") : 0;
}

/* How many of the components of the path are there, as directories: what is above one that is there
 * is there too. The last component is the entry itself. */
static int implied_find(const struct implied *i, const char *path, const uint16_t *ends, size_t n,
			int *ret_fd)
{
	char dir[PLACE_PATH_MAX + 1];
	size_t low = 0, high = n;

	*ret_fd = rootfd_open(i->root_fd, "/", O_RDONLY | O_DIRECTORY, 0);
	while (*ret_fd >= 0 && low < high) {
		size_t middle = (low + high + 1) / 2;
		int fd;

		(void)str_printf(dir, sizeof(dir), "%.*s", (int)ends[middle - 1], path);
		fd = rootfd_open(i->root_fd, dir, O_RDONLY | O_DIRECTORY, 0);
		if (fd >= 0) {
			(void)fd_close(*ret_fd);
			*ret_fd = fd;
			low = middle;
		} else if (fd == -ENOENT) {
			high = middle - 1;
		} else {
			*ret_fd = fd_close(*ret_fd);
			return fd;
		}
	}
	return *ret_fd < 0 ? *ret_fd : (int)low;
}

/* Makes the directory `path`, whose last component begins at `name`, in *fd, which is that
 * directory then. */
static int implied_make_one(const struct implied *i, const char *path, const char *name, int *fd)
{
	_cleanup_fd_ int made_fd = -1;
	int r = sysio_mkdirat(*fd, name, 0755) < 0 ? -errno : 0;

	/* A link that leads to nothing so far. */
	if (r == -EEXIST) {
		made_fd = rootfd_make_dir(i->root_fd, path);
		r = MIN(made_fd, 0);
	}
	if (r < 0)
		return r;
	r = sysio_openat(made_fd >= 0 ? made_fd : *fd, made_fd >= 0 ? "." : name,
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (r < 0)
		return -errno;
	(void)fd_close(*fd);
	*fd = r;
	return 0;
}

/* 1: it is marked; 0: this file system marks nothing, so that it stays as it was made. */
static int implied_mark(int fd, enum implied_by by)
{
	if (fsetxattr(fd, IMPLIED_MARK, &implied_marks[by], 1, 0) == 0)
		return 1;
	return errno == ENOTSUP ? 0 : -errno;
}

int implied_make(struct implied *i, const char *path, enum implied_by by, struct error *err)
{
	uint16_t ends[PLACE_PATH_MAX / 2 + 1];
	char dir[PLACE_PATH_MAX + 1];
	_cleanup_fd_ int fd = -1;
	size_t n = 0, from;
	int r;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		ends[n++] = (uint16_t)(slash - path);
	r = implied_find(i, path, ends, n, &fd);
	from = (size_t)MAX(r, 0);
	for (size_t k = from; k < n && r >= 0; k++) {
		size_t begin = k ? (size_t)ends[k - 1] + 1 : 0;

		(void)str_printf(dir, sizeof(dir), "%.*s", (int)ends[k], path);
		r = implied_make_one(i, dir, dir + begin, &fd);
		if (r == 0)
			r = implied_mark(fd, by);
		if (r > 0 && implied_note(i, dir, err) < 0)
			return err ? err->code : -EIO;
	}
	return r < 0 ? place_fail(err, r, "make its directory", path) : 0;
}

bool implied_is(int dir_fd, enum implied_by by)
{
	char mark = '\0';

	return fgetxattr(dir_fd, IMPLIED_MARK, &mark, 1) == 1 && mark == implied_marks[by];
}

int implied_given(const struct implied *i, int dir_fd)
{
	if (i->file_fd < 0 || fremovexattr(dir_fd, IMPLIED_MARK) == 0 || errno == ENODATA ||
	    errno == ENOTSUP)
		return 0;
	return -errno;
}

int implied_finish(struct implied *i, struct error *err)
{
	return i->root_given ? 0 : implied_note(i, "", err);
}

void implied_done(struct implied *i)
{
	i->file_fd = fd_close(i->file_fd);
}
