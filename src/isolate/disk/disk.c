/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/disk/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/disk/disk_bus.h"
#include "isolate/disk/disk_loop.h"
#include "isolate/mount/bind.h"
#include "isolate/mount/mount.h"

/*
 * The overlay takes its layers by path, and from mounts of this process's namespace alone (since
 * 5.14). So the tmpfs is mounted for a moment on a directory of our own, with the disk on one of
 * its directories; the overlay makes itself copies of both mounts, which nobody else reaches.
 */

#define DISK_SERIAL_SIZE 64
#define DISK_PATH_SIZE 64

/* ---- devices ---- */

static int disk_open_place(const char *path, int *ret, struct error *err)
{
	*ret = sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return *ret < 0 ? error_set(err, -errno, "open %s", path) : 0;
}

int disk_places_open(struct disk_places *ret, struct error *err)
{
	struct disk_places places = DISK_PLACES_NONE;
	int r = disk_open_place("/sys/block", &places.sys_fd, err);

	if (r == 0)
		r = disk_open_place("/dev", &places.dev_fd, err);
	if (r < 0) {
		disk_places_close(&places);
		return error_wrap(err, r, "look for the disks of this machine");
	}
	/* A machine without such a bus has no disks that wait for somebody to look at them. */
	(void)disk_open_place("/sys/bus/virtio", &places.bus_fd, NULL);
	*ret = places;
	return 0;
}

void disk_places_close(struct disk_places *places)
{
	places->sys_fd = fd_close(places->sys_fd);
	places->dev_fd = fd_close(places->dev_fd);
	places->bus_fd = fd_close(places->bus_fd);
}

static void disk_close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Whether the device says that it is this one. */
static bool disk_is(int sys_fd, const char *device, const char *serial)
{
	_cleanup_fd_ int dir_fd = -1, fd = -1;
	char text[DISK_SERIAL_SIZE];
	ssize_t n;

	/* What stands in /sys/block are links into the tree of devices. */
	dir_fd = sysio_openat(sys_fd, device, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir_fd >= 0)
		fd = sysio_openat(dir_fd, "serial", O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	n = fd >= 0 ? sysio_read(fd, text, sizeof(text) - 1) : -1;
	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return str_eq(text, serial);
}

static int disk_find_up(const struct disk_places *places, const char *serial,
			char ret[DISK_NAME_MAX + 1])
{
	_cleanup_(disk_close_dir) DIR *dir = NULL;
	_cleanup_fd_ int fd =
		sysio_openat(places->sys_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1;
	for (int n = 0; n < DISK_DEVICES_MAX; n++) {
		const struct dirent *e = readdir(dir);

		if (!e)
			break;
		if (e->d_name[0] != '.' && strlen(e->d_name) <= DISK_NAME_MAX &&
		    (disk_is(places->sys_fd, e->d_name, serial) ||
		     disk_loop_is(places->sys_fd, e->d_name, serial)))
			return str_copy(ret, DISK_NAME_MAX + 1, e->d_name);
	}
	return -ENODEV;
}

int disk_find(const struct disk_places *places, const char *serial, char ret[DISK_NAME_MAX + 1])
{
	int r = disk_find_up(places, serial, ret);

	for (int n = 0; r == -ENODEV && n < DISK_DEVICES_MAX && places->bus_fd >= 0 &&
			disk_bring_up(places->bus_fd) == 0;
	     n++)
		r = disk_find_up(places, serial, ret);
	return r;
}

int disk_is_free(const struct disk_places *places, const char *device)
{
	/* Of a block device, without O_CREAT: nobody else may hold it. */
	_cleanup_fd_ int fd =
		sysio_openat(places->dev_fd, device, O_RDONLY | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd >= 0)
		return 1;
	return errno == EBUSY ? 0 : -errno;
}

/* ---- the layers ---- */

static int disk_mount_lower(int dev_fd, const char *device, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char source[DISK_PATH_SIZE];
	struct stat st;
	int r;

	fd = sysio_openat(dev_fd, device, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open the disk %s", device);
	if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode))
		return error_refuse(err, ERROR_FAULT, "%s is no block device", device);
	/* Of a disk that was in this slot before, where a machine in here still has the device. */
	(void)ioctl(fd, BLKFLSBUF, 0);
	(void)str_printf(source, sizeof(source), "/proc/self/fd/%d", fd);
	r = mount_new_from("erofs", source, "ro", NULL, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, err);
	if (r == -EINVAL || r == -EIO) {
		(void)error_wrap(err, r, "there is no EROFS on the disk %s", device);
		if (err)
			err->kind = ERROR_PRECONDITION;
	}
	return r;
}

/* The tmpfs, with directories for the overlay in it. The root of the overlay looks as the disk's.
 */
static int disk_mount_upper(int lower_fd, uint64_t bytes, struct error *err)
{
	static const char *const names[] = { "lower", "upper", "work" };
	struct mount_option options[] = { { "mode", "0700" }, { NULL, NULL }, { NULL, NULL } };
	_cleanup_fd_ int fd = -1, dir_fd = -1;
	struct stat st;
	char size[24];

	(void)str_printf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	if (bytes)
		options[1] = (struct mount_option){ "size", size };
	fd = mount_new("tmpfs", options, MOUNT_ATTR_NODEV, err);
	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (sysio_mkdirat(fd, names[i], 0700) < 0)
			return error_set(err, -errno, "make the directories of a layer");
	dir_fd = sysio_openat(fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (dir_fd < 0 || fstat(lower_fd, &st) < 0 || fchown(dir_fd, st.st_uid, st.st_gid) < 0 ||
	    fchmod(dir_fd, st.st_mode & 07777) < 0)
		return error_set(err, -errno, "set the mode of a root");
	return TAKE_FD(fd);
}

static int disk_mount_overlay(int upper_fd, struct error *err)
{
	char lower[DISK_PATH_SIZE], upper[DISK_PATH_SIZE], work[DISK_PATH_SIZE];
	const struct mount_option options[] = { { "source", "nacre" },
						{ "lowerdir", lower },
						{ "upperdir", upper },
						{ "workdir", work },
						{ NULL, NULL } };

	(void)str_printf(lower, sizeof(lower), "/proc/self/fd/%d/lower", upper_fd);
	(void)str_printf(upper, sizeof(upper), "/proc/self/fd/%d/upper", upper_fd);
	(void)str_printf(work, sizeof(work), "/proc/self/fd/%d/work", upper_fd);
	return mount_new("overlay", options, MOUNT_ATTR_NODEV, err);
}

static int disk_mount_layers(const struct disk_places *places, const char *device,
			     const struct disk_root *root, struct error *err)
{
	_cleanup_fd_ int lower_fd = -1, upper_fd = -1;
	char path[DISK_PATH_SIZE + NAME_MAX];
	int r;

	lower_fd = disk_mount_lower(places->dev_fd, device, err);
	if (lower_fd < 0)
		return lower_fd;
	upper_fd = disk_mount_upper(lower_fd, root->upper_bytes, err);
	if (upper_fd < 0)
		return upper_fd;
	r = mount_attach(upper_fd, places->own_fd, root->name, err);
	if (r < 0)
		return r;
	r = mount_attach(lower_fd, upper_fd, "lower", err);
	if (r == 0)
		r = disk_mount_overlay(upper_fd, err);
	(void)str_printf(path, sizeof(path), "/proc/self/fd/%d/%s", places->own_fd, root->name);
	(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	return r;
}

/* ---- files ---- */

static int disk_make_file(int root_fd, const struct disk_file *file, struct error *err)
{
	const char *slash = strrchr(file->path, '/');
	const char *name = slash ? slash + 1 : file->path;
	_cleanup_fd_ int dir_fd = -1;
	char dir[PATH_MAX];
	int r;

	r = str_printf(dir, sizeof(dir), "%.*s", (int)(name - file->path), file->path);
	if (r < 0)
		return error_set(err, r, "%.80s", file->path);
	dir_fd = rootfd_make_dir_through(root_fd, *dir ? dir : ".");
	/* A root that has something else there means it. */
	if (dir_fd == -ENOTDIR || dir_fd == -ELOOP)
		return 0;
	if (dir_fd < 0)
		return error_set(err, dir_fd, "make the directory of %.80s", file->path);
	r = rootfd_put(dir_fd, name, file->mode & 07777, file->data, file->len);
	if (r == -ENOTEMPTY)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the image has a directory that is not empty at %.80s, where "
				    "the node writes a file",
				    file->path);
	return r < 0 ? error_set(err, r, "write %.80s", file->path) : 0;
}

/* ---- what is asked for ---- */

int disk_mount(const struct disk_places *places, const char *device, struct error *err)
{
	return disk_mount_lower(places->dev_fd, device, err);
}

int disk_mount_root(const struct disk_places *places, const char *device,
		    const struct disk_root *root, struct error *err)
{
	_cleanup_fd_ int fd = -1;

	if (sysio_mkdirat(places->own_fd, root->name, 0700) < 0)
		return error_set(err, -errno, "make a place for the disk %s", device);
	fd = disk_mount_layers(places, device, root, err);
	(void)sysio_unlinkat(places->own_fd, root->name, AT_REMOVEDIR);
	for (size_t i = 0; fd >= 0 && i < root->n_files; i++) {
		int r = disk_make_file(fd, &root->files[i], err);

		if (r < 0)
			return r;
	}
	return TAKE_FD(fd);
}

int disk_mount_shares(int own_fd, struct error *err)
{
	_cleanup_fd_ int fd = mount_new_from("virtiofs", DISK_SHARES_TAG, NULL, NULL,
					     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	int r;

	if (fd == -EINVAL || fd == -ENODEV) {
		(void)error_wrap(err, fd, "this machine is given no volumes");
		if (err)
			err->kind = ERROR_PRECONDITION;
	}
	if (fd < 0)
		return fd;
	if (sysio_mkdirat(own_fd, DISK_SHARES_PLACE, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make a place for volumes");
	r = mount_attach(fd, own_fd, DISK_SHARES_PLACE, err);
	return r < 0 ? r : TAKE_FD(fd);
}

int disk_open_share(int shares_fd, const char *name, bool read_only, bool no_exec,
		    struct error *err)
{
	/* A directory is a file system of its own, which this makes the kernel mount. */
	_cleanup_fd_ int fd = rootfd_open(shares_fd, name, O_PATH | O_DIRECTORY, 0);

	if (fd == -ENOTDIR)
		fd = rootfd_open(shares_fd, name, O_PATH | O_NOFOLLOW, 0);
	if (fd == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "this machine is given no volume %.80s", name);
	if (fd < 0)
		return error_set(err, fd, "open the volume %.80s", name);
	return isolate_bind(
		fd, (read_only ? ISOLATE_BIND_READ_ONLY : 0) | (no_exec ? ISOLATE_BIND_NO_EXEC : 0),
		err);
}
