/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"

int profile_file_seal(const void *data, size_t len, const char *field, struct error *err)
{
	_cleanup_fd_ int fd = memfd_create("profile", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_full(fd, data, len);

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "%s", field) : TAKE_FD(fd);
}

int profile_file_open(const char *path, const char *field, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	/* No FIFO and no device is waited for. */
	fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0)
		return error_field(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_PRECONDITION,
				   field, "%.200s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_field(err, ERROR_PRECONDITION, field, "%.200s is no regular file",
				   path);
	r = fd_read_all(fd, PROFILE_FILE_MAX, &b);
	if (r == -EFBIG || r == -E2BIG || r == -ENOBUFS)
		return error_field(err, ERROR_INVALID, field,
				   "%.200s is larger than the limit of %zu bytes", path,
				   PROFILE_FILE_MAX);
	if (r < 0)
		return error_field(err, ERROR_PRECONDITION, field, "read %.200s: %s", path,
				   strerror(-r));
	return profile_file_seal(buf_data(&b), b.len, field, err);
}
