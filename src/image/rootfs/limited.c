/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rootfs/limited.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/content/room.h"
#include "isolate/disk/ext4_file.h"
#include "isolate/mount/mount.h"

#define LIMITED_FILE "disk"
#define LIMITED_PLACE "fs"

static int limited_make_file(int dir_fd, uint64_t limit, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(
		dir_fd, LIMITED_FILE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return error_set(err, -errno, "make the file of its file system");
	r = ext4_file_make(fd, limit, err);
	return r < 0 ? r : TAKE_FD(fd);
}

static int limited_mount(int dir_fd, int file_fd, struct error *err)
{
	_cleanup_fd_ int fs_fd = ext4_file_mount(file_fd, err);
	int r;

	if (fs_fd < 0)
		return error_wrap(err, fs_fd, "mount its file system");
	r = mount_attach(fs_fd, dir_fd, LIMITED_PLACE, err);
	return r < 0 ? r : TAKE_FD(fs_fd);
}

int limited_make(struct image_store *s, int dir_fd, uint64_t limit, struct error *err)
{
	_cleanup_fd_ int file_fd = -1;
	int r = room_check(s, limit, err);

	if (r < 0)
		return r;
	file_fd = limited_make_file(dir_fd, limit, err);
	if (file_fd < 0)
		return file_fd;
	if (sysio_mkdirat(dir_fd, LIMITED_PLACE, 0700) < 0)
		return error_set(err, -errno, "make the directory of its file system");
	return limited_mount(dir_fd, file_fd, err);
}

int limited_open(int dir_fd, struct error *err)
{
	_cleanup_fd_ int file_fd =
		sysio_openat(dir_fd, LIMITED_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);

	if (file_fd < 0)
		return errno == ENOENT ? -ENOENT : error_set(err, -errno, "open its file system");
	return limited_mount(dir_fd, file_fd, err);
}

void limited_detach(int containers_fd, const char *id)
{
	char path[96];
	_cleanup_fd_ int fd = -1;

	(void)str_printf(path, sizeof(path), "%s/" LIMITED_PLACE, id);
	fd = sysio_openat(containers_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)str_printf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* -EINVAL: nothing is mounted there. */
	(void)umount2(path, MNT_DETACH);
}
