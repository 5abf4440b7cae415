/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The format is that of Documentation/filesystems/ext4. With checksums of group descriptors
 * (uninit_bg) the kernel takes the bitmaps and inode tables of a group as empty unless they are
 * said to be there. So the superblock, the descriptors, the first group's bitmaps, the inode and
 * the directory of the root, and the block bitmap of the last group are all that is written,
 * whatever the size. sparse_super2 without backups keeps other groups free of copies.
 */

#include "isolate/disk/ext4_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"

#define EXT4_BLOCK 4096
#define EXT4_GROUP_BLOCKS 32768
#define EXT4_GROUP_INODES 8192
#define EXT4_INODE_SIZE 256
#define EXT4_TABLE_BLOCKS (EXT4_GROUP_INODES * EXT4_INODE_SIZE / EXT4_BLOCK)
#define EXT4_DESC_SIZE 32
#define EXT4_RESERVED_INODES 10 /* the root directory (2) among them */
#define EXT4_SUPER_AT 1024
#define EXT4_SUPER_SIZE 1024
#define EXT4_UUID_AT 0x68
#define EXT4_UUID_SIZE 16

#define EXT4_INODE_UNINIT 1
#define EXT4_BLOCK_UNINIT 2
#define EXT4_TABLE_ZEROED 4

#define LOOP_MAJOR_NUMBER 7
#define LOOP_TRIES 64 /* others may be quicker at a free device */

struct ext4_shape {
	uint32_t n_blocks, n_groups;
	uint32_t n_desc_blocks;
	uint64_t n_free;
	uint8_t uuid[EXT4_UUID_SIZE];
};

struct ext4_field {
	size_t at, size;
	uint64_t value;
};

static void ext4_put(uint8_t *to, const struct ext4_field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < fields[i].size; k++)
			to[fields[i].at + k] = (uint8_t)(fields[i].value >> (8 * k));
}

/* CRC-16 with the polynomial 0x8005, reflected. */
static uint16_t ext4_crc16(uint16_t crc, const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		crc = (uint16_t)(crc ^ data[i]);
		for (unsigned bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 1 ? crc >> 1 ^ 0xa001 : crc >> 1);
	}
	return crc;
}

/* ---- what lies where ---- */

/* Superblock and descriptors are in front of the first group's bitmaps. */
static uint32_t ext4_front(const struct ext4_shape *s, uint32_t group)
{
	return group == 0 ? 1 + s->n_desc_blocks : 0;
}

static uint32_t ext4_group_size(const struct ext4_shape *s, uint32_t group)
{
	return MIN(s->n_blocks - group * EXT4_GROUP_BLOCKS, (uint32_t)EXT4_GROUP_BLOCKS);
}

/* Two bitmaps and the table; in the first group the block of the root directory too. */
static uint32_t ext4_group_used(const struct ext4_shape *s, uint32_t group)
{
	return ext4_front(s, group) + 2 + EXT4_TABLE_BLOCKS + (group == 0);
}

static int ext4_shape_init(struct ext4_shape *s, uint64_t size)
{
	*s = (struct ext4_shape){ .n_blocks = (uint32_t)(size / EXT4_BLOCK) };
	/* A last group without room for its own table is left out. */
	if (s->n_blocks > EXT4_GROUP_BLOCKS &&
	    s->n_blocks % EXT4_GROUP_BLOCKS < 2 * EXT4_TABLE_BLOCKS)
		s->n_blocks -= s->n_blocks % EXT4_GROUP_BLOCKS;
	s->n_groups = (s->n_blocks + EXT4_GROUP_BLOCKS - 1) / EXT4_GROUP_BLOCKS;
	s->n_desc_blocks = (s->n_groups * EXT4_DESC_SIZE + EXT4_BLOCK - 1) / EXT4_BLOCK;
	for (uint32_t g = 0; g < s->n_groups; g++)
		s->n_free += ext4_group_size(s, g) - ext4_group_used(s, g);
	if (getrandom(s->uuid, sizeof(s->uuid), 0) != (ssize_t)sizeof(s->uuid))
		return -EIO;
	return 0;
}

/* ---- what is written ---- */

static void ext4_describe(const struct ext4_shape *s, uint32_t group, uint8_t *to)
{
	uint32_t at = group * EXT4_GROUP_BLOCKS + ext4_front(s, group);
	bool first = group == 0, last = group == s->n_groups - 1;
	unsigned flags = EXT4_TABLE_ZEROED | (first ? 0 : EXT4_INODE_UNINIT) |
			 (first || last ? 0 : EXT4_BLOCK_UNINIT);
	uint32_t reserved = first ? EXT4_RESERVED_INODES : 0;
	const struct ext4_field fields[] = {
		{ 0x00, 4, at },
		{ 0x04, 4, at + 1 },
		{ 0x08, 4, at + 2 },
		{ 0x0c, 2, ext4_group_size(s, group) - ext4_group_used(s, group) },
		{ 0x0e, 2, EXT4_GROUP_INODES - reserved },
		{ 0x10, 2, first }, /* directories */
		{ 0x12, 2, flags },
		{ 0x1c, 2, EXT4_GROUP_INODES - reserved }, /* never used, at the table's end */
	};
	uint8_t number[4];
	uint16_t crc;

	ext4_put(to, fields, ARRAY_SIZE(fields));
	ext4_put(number, &(struct ext4_field){ 0, 4, group }, 1);
	crc = ext4_crc16(0xffff, s->uuid, sizeof(s->uuid));
	crc = ext4_crc16(crc, number, sizeof(number));
	crc = ext4_crc16(crc, to, 0x1e);
	ext4_put(to, &(struct ext4_field){ 0x1e, 2, crc }, 1);
}

static int ext4_write(int fd, const uint8_t *data, size_t len, uint64_t at)
{
	ssize_t n = pwrite(fd, data, len, (off_t)at);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -ENOSPC;
}

static int ext4_write_descriptors(int fd, const struct ext4_shape *s)
{
	size_t size = (size_t)s->n_desc_blocks * EXT4_BLOCK;
	uint8_t *all = calloc(1, size);
	int r;

	if (!all)
		return -ENOMEM;
	for (uint32_t g = 0; g < s->n_groups; g++)
		ext4_describe(s, g, all + (size_t)g * EXT4_DESC_SIZE);
	r = ext4_write(fd, all, size, EXT4_BLOCK);
	free(all);
	return r;
}

/* `used` bits from the start are set, and those that are beyond `size`. */
static int ext4_write_bitmap(int fd, uint32_t block, uint32_t used, uint32_t size)
{
	uint8_t map[EXT4_BLOCK] = { 0 };

	for (uint32_t i = 0; i < EXT4_BLOCK * 8; i++)
		if (i < used || i >= size)
			map[i / 8] = (uint8_t)(map[i / 8] | 1U << i % 8);
	return ext4_write(fd, map, sizeof(map), (uint64_t)block * EXT4_BLOCK);
}

static int ext4_write_bitmaps(int fd, const struct ext4_shape *s)
{
	uint32_t last = s->n_groups - 1, at = ext4_front(s, 0);
	int r = ext4_write_bitmap(fd, at, ext4_group_used(s, 0), ext4_group_size(s, 0));

	if (r == 0)
		r = ext4_write_bitmap(fd, at + 1, EXT4_RESERVED_INODES, EXT4_GROUP_INODES);
	if (r == 0 && last > 0)
		r = ext4_write_bitmap(fd, last * EXT4_GROUP_BLOCKS, ext4_group_used(s, last),
				      ext4_group_size(s, last));
	return r;
}

/* Inode 2: a directory of one block, in one extent. */
static int ext4_write_root(int fd, const struct ext4_shape *s)
{
	uint32_t table = ext4_front(s, 0) + 2, block = table + EXT4_TABLE_BLOCKS;
	const struct ext4_field inode_fields[] = {
		{ 0x00, 2, S_IFDIR | 0755 },
		{ 0x04, 4, EXT4_BLOCK },
		{ 0x1a, 2, 2 }, /* links */
		{ 0x1c, 4, EXT4_BLOCK / 512 },
		{ 0x20, 4, 0x80000 }, /* it has extents */
		{ 0x28, 2, 0xf30a },
		{ 0x2a, 2, 1 }, /* extent */
		{ 0x2c, 2, 4 }, /* at most */
		{ 0x38, 2, 1 }, /* blocks */
		{ 0x3c, 4, block },
		{ 0x80, 2, 32 }, /* bytes beyond 128 that are fields */
	};
	const struct ext4_field dir_fields[] = {
		{ 0, 4, 2 },
		{ 4, 2, 12 },
		{ 6, 1, 1 },
		{ 7, 1, 2 },
		{ 8, 1, '.' },
		{ 12, 4, 2 },
		{ 16, 2, EXT4_BLOCK - 12 },
		{ 18, 1, 2 },
		{ 19, 1, 2 },
		{ 20, 2, '.' << 8 | '.' },
	};
	uint8_t inode[EXT4_INODE_SIZE] = { 0 }, dir[EXT4_BLOCK] = { 0 };
	int r;

	ext4_put(inode, inode_fields, ARRAY_SIZE(inode_fields));
	ext4_put(dir, dir_fields, ARRAY_SIZE(dir_fields));
	r = ext4_write(fd, inode, sizeof(inode), (uint64_t)table * EXT4_BLOCK + EXT4_INODE_SIZE);
	return r < 0 ? r : ext4_write(fd, dir, sizeof(dir), (uint64_t)block * EXT4_BLOCK);
}

static int ext4_write_super(int fd, const struct ext4_shape *s)
{
	uint64_t n_inodes = (uint64_t)s->n_groups * EXT4_GROUP_INODES;
	const struct ext4_field fields[] = {
		{ 0x00, 4, n_inodes },
		{ 0x04, 4, s->n_blocks },
		{ 0x0c, 4, s->n_free },
		{ 0x10, 4, n_inodes - EXT4_RESERVED_INODES },
		{ 0x18, 4, 2 }, /* blocks of 1024 << 2 */
		{ 0x1c, 4, 2 },
		{ 0x20, 4, EXT4_GROUP_BLOCKS },
		{ 0x24, 4, EXT4_GROUP_BLOCKS },
		{ 0x28, 4, EXT4_GROUP_INODES },
		{ 0x36, 2, 0xffff }, /* never checked for having been mounted often */
		{ 0x38, 2, 0xef53 },
		{ 0x3a, 2, 1 }, /* clean */
		{ 0x3c, 2, 1 }, /* goes on after an error */
		{ 0x4c, 4, 1 }, /* revision with inode sizes */
		{ 0x54, 4, EXT4_RESERVED_INODES + 1 },
		{ 0x58, 2, EXT4_INODE_SIZE },
		{ 0x5c, 4, 0x200 | 0x8 }, /* sparse_super2, ext_attr */
		{ 0x60, 4, 0x40 | 0x2 },  /* extents, filetype */
		/* extra_isize, dir_nlink, uninit_bg, huge_file, large_file */
		{ 0x64, 4, 0x40 | 0x20 | 0x10 | 0x8 | 0x2 },
		{ 0x15c, 2, 32 },
		{ 0x15e, 2, 32 },
	};
	uint8_t super[EXT4_SUPER_SIZE] = { 0 };

	ext4_put(super, fields, ARRAY_SIZE(fields));
	memcpy(super + EXT4_UUID_AT, s->uuid, sizeof(s->uuid));
	return ext4_write(fd, super, sizeof(super), EXT4_SUPER_AT);
}

int ext4_file_make(int fd, uint64_t size, struct error *err)
{
	struct ext4_shape shape;
	int r;

	if (size < EXT4_FILE_MIN || size > EXT4_FILE_MAX)
		return error_refuse(err, ERROR_INVALID, "16 MiB to 1 TiB, not %llu bytes",
				    (unsigned long long)size);
	if (fallocate(fd, 0, 0, (off_t)size) < 0)
		return error_set(err, -errno, "allocate %llu bytes", (unsigned long long)size);
	r = ext4_shape_init(&shape, size);
	if (r == 0)
		r = ext4_write_super(fd, &shape);
	if (r == 0)
		r = ext4_write_descriptors(fd, &shape);
	if (r == 0)
		r = ext4_write_bitmaps(fd, &shape);
	if (r == 0)
		r = ext4_write_root(fd, &shape);
	return r < 0 ? error_set(err, r, "write an ext4 file system") : 0;
}

/* ---- the mount ---- */

/* Whether it is a loop device can be seen only once it is open: /dev is the host's. */
static int ext4_open_loop(int n, char *path, size_t size)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	(void)str_printf(path, size, "/dev/loop%d", n);
	fd = sysio_openat(AT_FDCWD, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISBLK(st.st_mode) || major(st.st_rdev) != LOOP_MAJOR_NUMBER)
		return -ENODEV;
	return TAKE_FD(fd);
}

/* AUTOCLEAR: the device lets go of the file when nobody has it open or mounted any more. */
static int ext4_attach_loop(int fd, char *path, size_t size, struct error *err)
{
	_cleanup_fd_ int control_fd =
		sysio_openat(AT_FDCWD, "/dev/loop-control", O_RDWR | O_CLOEXEC, 0);
	struct loop_config config = { .fd = (uint32_t)fd,
				      .block_size = EXT4_BLOCK,
				      .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	int r = 0;

	if (control_fd < 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "this host has no loop devices (/dev/loop-control: %s)",
				    strerror(errno));
	for (int i = 0; i < LOOP_TRIES; i++) {
		int n = ioctl(control_fd, LOOP_CTL_GET_FREE);
		_cleanup_fd_ int loop_fd = -1;

		if (n < 0)
			return error_set(err, -errno, "find a free loop device");
		loop_fd = ext4_open_loop(n, path, size);
		r = loop_fd < 0 ? loop_fd : 0;
		if (r == 0 && ioctl(loop_fd, LOOP_CONFIGURE, &config) == 0)
			return TAKE_FD(loop_fd);
		if (r == 0)
			r = -errno;
		if (r != -EBUSY)
			break;
	}
	return error_set(err, r, "attach the file to %s", path);
}

/* Two mounts of one file would destroy it. The kernel grants a lease for writing only where no
 * other open file has this inode, and a loop device has its file open. */
static int ext4_check_alone(int fd, struct error *err)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return errno == EAGAIN ? error_refuse(err, ERROR_PRECONDITION,
						      "its file is in use (try again)")
				       : error_set(err, -errno, "look who has its file open");
	return fcntl(fd, F_SETLEASE, F_UNLCK) < 0
		       ? error_set(err, -errno, "give the lease of its file back")
		       : 0;
}

int ext4_file_mount(int fd, struct error *err)
{
	char path[32];
	_cleanup_fd_ int loop_fd = -1;
	int r = ext4_check_alone(fd, err);

	if (r < 0)
		return r;
	loop_fd = ext4_attach_loop(fd, path, sizeof(path), err);
	if (loop_fd < 0)
		return loop_fd;
	return mount_new_from("ext4", path, "noinit_itable", NULL, MOUNT_ATTR_NODEV, err);
}
