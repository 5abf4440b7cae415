/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/given.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

int given_open(const char *path, int flags, mode_t mode)
{
	int fd = sysio_openat(AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode);

	return fd < 0 ? -errno : fd;
}

int given_read(const char *path, size_t max, struct buf *b)
{
	_cleanup_fd_ int fd = given_open(path, O_RDONLY, 0);

	return fd < 0 ? fd : fd_read_all(fd, max, b);
}

int given_copy_tree(const char *path)
{
	int fd =
		sysio_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return fd < 0 ? -errno : fd;
}

int given_make_dir(const char *path)
{
	char prefix[PATH_MAX];

	if (str_copy(prefix, sizeof(prefix), path) < 0)
		return -ENAMETOOLONG;
	for (char *p = prefix + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (sysio_mkdirat(AT_FDCWD, prefix, c ? 0755 : 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = c;
		if (!c)
			return given_open(path, O_RDONLY | O_DIRECTORY, 0);
	}
}
