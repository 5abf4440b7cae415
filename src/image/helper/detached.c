/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"

int detached_open(int dir_fd, const char *name, uint64_t attributes, struct error *err)
{
	struct mount_attr attr = { .attr_set = attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC };
	_cleanup_fd_ int fd =
		sysio_open_tree(dir_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (fd < 0)
		return error_set(err, -errno, "make a detached mount of a directory");
	if (sysio_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
		return error_set(err, -errno, "restrict a detached mount");
	return TAKE_FD(fd);
}

int detached_open_source(const char *path, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (*path != '/')
		return error_refuse(err, ERROR_INVALID,
				    "the path of an image must be absolute: \"%.200s\"", path);
	fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return error_refuse(err, ERROR_NOT_FOUND, "there is no file \"%.300s\"", path);
	if (fd < 0 && errno == ENXIO)
		return error_refuse(err, ERROR_INVALID,
				    "\"%.300s\" is neither a file nor a directory", path);
	if (fd < 0 && (errno == ENAMETOOLONG || errno == ELOOP)) {
		(void)error_set(err, -errno, "\"%.300s\"", path);
		err->kind = ERROR_INVALID;
		return err->code;
	}
	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		(void)error_set(err, -errno, "open \"%.300s\"", path);
		err->kind = ERROR_PRECONDITION;
		return err->code;
	}
	if (fd < 0)
		return error_set(err, -errno, "open %.300s", path);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at %.300s", path);
	if (S_ISDIR(st.st_mode))
		return detached_open(fd, "", MOUNT_ATTR_RDONLY, err);
	if (!S_ISREG(st.st_mode))
		return error_refuse(err, ERROR_INVALID,
				    "\"%.300s\" is neither a file nor a directory", path);
	return TAKE_FD(fd);
}
