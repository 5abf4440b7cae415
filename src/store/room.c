/* SPDX-License-Identifier: Apache-2.0 */
#include "store/room.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define STORE_ROOM (512 << 10)

int store_room_init(struct store_room *r, int dir_fd, const char *name)
{
	(void)str_printf(r->name, sizeof(r->name), "%s-reserve", name);
	r->dir_fd = fd_copy(dir_fd);
	return r->dir_fd < 0 ? r->dir_fd : 0;
}

void store_room_done(struct store_room *r)
{
	r->dir_fd = fd_close(r->dir_fd);
}

void store_room_make(const struct store_room *r)
{
	_cleanup_fd_ int fd = sysio_openat(
		r->dir_fd, r->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (posix_fallocate(fd, 0, STORE_ROOM) != 0)
		(void)sysio_unlinkat(r->dir_fd, r->name, 0);
}

bool store_room_use(const struct store_room *r)
{
	return sysio_unlinkat(r->dir_fd, r->name, 0) == 0;
}

bool store_room_is_there(const struct store_room *r)
{
	_cleanup_fd_ int fd = sysio_openat(r->dir_fd, r->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd >= 0;
}

void store_room_extend(const struct store_room *r, const char *file, size_t bytes)
{
	_cleanup_fd_ int fd = sysio_openat(r->dir_fd, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, st.st_size, (off_t)bytes);
}
