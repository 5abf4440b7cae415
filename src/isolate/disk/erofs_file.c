/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/disk/erofs_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"

/* On disk, all of it little-endian: Documentation/filesystems/erofs.rst. */
#define EROFS_BLOCK 4096
#define EROFS_SUPER_AT 1024
#define EROFS_ROOT_NID 36 /* of 32 bytes each: right behind the superblock */
#define EROFS_ROOT_AT (EROFS_ROOT_NID * 32)

int erofs_file_mount(int fd, struct error *err)
{
	char source[32];
	int r;

	(void)str_printf(source, sizeof(source), "/proc/self/fd/%d", fd);
	r = mount_new_from("erofs", source, "ro", NULL, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, err);
	if (r == -ENOTBLK)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the kernel cannot mount this file as EROFS (Linux 6.12 can, "
				    "with CONFIG_EROFS_FS_BACKED_BY_FILE, but none in a tmpfs)");
	return r;
}

static int erofs_file_refuse_layer(struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION,
			    "the kernel's overlay does not take a mounted file as a layer (Linux "
			    "6.15 does, but for a file that lies in an overlay itself)");
}

int erofs_file_add_layer(int overlay_fd, int mount_fd, struct error *err)
{
	if (sysio_fsconfig(overlay_fd, FSCONFIG_SET_FD, "lowerdir+", NULL, mount_fd) == 0)
		return 0;
	/* Before 6.5 there is no such key, before 6.13 no descriptor for it, and before 6.15 none
	 * that was opened with O_PATH, as those of mounts are. */
	if (errno == EINVAL || errno == EBADF || errno == EOPNOTSUPP)
		return erofs_file_refuse_layer(err);
	return error_set(err, -errno, "set the overlay's lowerdir+");
}

/* ---- the trial ---- */

static void erofs_file_put(uint8_t *at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* A file system with an empty root, in a file without a name. */
static int erofs_file_make(int dir_fd, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	static const struct {
		size_t at, size;
		uint64_t value;
	} fields[] = {
		{ EROFS_SUPER_AT, 4, 0xe0f5e1e2 }, /* magic */
		{ EROFS_SUPER_AT + 12, 1, 12 },    /* blocks of 4096 bytes */
		{ EROFS_SUPER_AT + 14, 2, EROFS_ROOT_NID },
		{ EROFS_SUPER_AT + 16, 8, 1 }, /* inodes */
		{ EROFS_SUPER_AT + 36, 4, 1 }, /* blocks */
		{ EROFS_ROOT_AT + 4, 2, S_IFDIR | 0755 },
		{ EROFS_ROOT_AT + 6, 2, 2 }, /* links */
	};
	uint8_t block[EROFS_BLOCK] = { 0 };
	int r;

	if (fd < 0)
		return error_set(err, -errno, "make a file to try EROFS with");
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		erofs_file_put(block + fields[i].at, fields[i].value, fields[i].size);
	r = fd_write_full(fd, block, sizeof(block));
	return r < 0 ? error_set(err, r, "write a file to try EROFS with") : TAKE_FD(fd);
}

/* Two of them, since an overlay that cannot be written to has no fewer. */
static int erofs_file_try_layers(int a_fd, int b_fd, struct error *err)
{
	_cleanup_fd_ int fs_fd = sysio_fsopen("overlay", FSOPEN_CLOEXEC);
	int r;

	if (fs_fd < 0)
		return error_set(err, -errno, "open the overlay file system");
	r = erofs_file_add_layer(fs_fd, a_fd, err);
	if (r == 0)
		r = erofs_file_add_layer(fs_fd, b_fd, err);
	if (r < 0)
		return r;
	if (sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return errno == EINVAL ? erofs_file_refuse_layer(err)
				       : error_set(err, -errno, "make an overlay of EROFS");
	return 0;
}

int erofs_file_try(int dir_fd, struct error *err)
{
	_cleanup_fd_ int fd = erofs_file_make(dir_fd, err), a_fd = -1, b_fd = -1;

	if (fd < 0)
		return fd;
	a_fd = erofs_file_mount(fd, err);
	if (a_fd < 0)
		return a_fd;
	b_fd = erofs_file_mount(fd, err);
	if (b_fd < 0)
		return b_fd;
	return erofs_file_try_layers(a_fd, b_fd, err);
}
