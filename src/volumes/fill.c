/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/fill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/tree/copy_up.h"

#define FILL_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- its directories ---- */

static int fill_open_dir(int dir_fd, const char *name)
{
	int fd = sysio_openat(dir_fd, name, FILL_DIRECTORY, 0);

	return fd < 0 ? -errno : fd;
}

static int fill_make_data(int dir_fd, const char *id)
{
	_cleanup_fd_ int fd = fill_open_dir(dir_fd, id);
	_cleanup_fd_ int data_fd = -1;

	if (fd < 0)
		return fd;
	if (sysio_mkdirat(fd, FILL_DATA, 0755) < 0)
		return -errno;
	data_fd = fill_open_dir(fd, FILL_DATA);
	if (data_fd < 0)
		return data_fd;
	/* Whatever the mask of this process. */
	return fchmod(data_fd, 0755) < 0 ? -errno : 0;
}

int fill_make(int dir_fd, const char *id, struct error *err)
{
	int r;

	if (sysio_mkdirat(dir_fd, id, 0700) < 0)
		return error_set(err, -errno, "make the directory of a volume");
	r = fill_make_data(dir_fd, id);
	if (r == 0)
		return 0;
	(void)rootfd_remove_tree(dir_fd, id);
	return error_set(err, r, "make the directory of a volume");
}

int fill_open(int dir_fd, const char *id, struct error *err)
{
	_cleanup_fd_ int volume_fd = fill_open_dir(dir_fd, id);
	int fd = volume_fd;

	if (volume_fd >= 0)
		fd = rootfd_point(volume_fd, FILL_DATA);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return error_refuse(err, ERROR_PRECONDITION,
				    "its directory is gone from the node: remove the volume");
	return fd < 0 ? error_set(err, fd, "open its directory") : fd;
}

int fill_open_below(int data_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open(data_fd, path, O_PATH | O_CLOEXEC, 0);
	struct stat st;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no %.200s in the volume", path);
	if (fd < 0)
		return error_set(err, fd, "open %.200s in the volume", path);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at %.200s in the volume", path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%.200s in the volume is neither a directory nor a regular "
				    "file",
				    path);
	return TAKE_FD(fd);
}

/* ---- filling ---- */

/* Reads one entry; the place is left behind it. 0 at the end. */
static long fill_next(int fd, void *block, size_t size)
{
	long n = syscall(SYS_getdents64, fd, block, size);
	const struct dirent64 *entry = block;

	if (n <= 0)
		return n < 0 ? -errno : 0;
	return lseek(fd, entry->d_off, SEEK_SET) < 0 ? -errno : 1;
}

static bool fill_is_dot(const char *name)
{
	return str_eq(name, ".") || str_eq(name, "..");
}

static int fill_is_empty(int volume_fd)
{
	_cleanup_fd_ int fd = fill_open_dir(volume_fd, FILL_DATA);
	_Alignas(struct dirent64) char block[1024];
	const struct dirent64 *entry = (const struct dirent64 *)(const void *)block;
	long n = fd;

	if (fd < 0)
		return fd;
	do
		n = fill_next(fd, block, sizeof(block));
	while (n > 0 && fill_is_dot(entry->d_name));
	return n < 0 ? (int)n : n == 0;
}

/* The new directory is on the disk before it takes the place of the empty one: what a volume has is
 * there after a power cut. */
static int fill_settle(int volume_fd, int new_fd, struct error *err)
{
	int r = FAILPOINT("volume.fill");

	if (r == 0 && syncfs(new_fd) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, r, "write what was copied to the disk");
	if (sysio_renameat(new_fd, FILL_DATA, volume_fd, FILL_DATA) < 0 && errno != ENOTEMPTY &&
	    errno != EEXIST)
		return error_set(err, -errno, "put what was copied into its place");
	FAILPOINT_AFTER("volume.fill");
	return 0;
}

static int fill_new(int volume_fd, int root_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int new_fd = -1, data_fd = -1, links_fd = -1;
	int r;

	if (sysio_mkdirat(volume_fd, FILL_NEW, 0700) < 0)
		return error_set(err, -errno, "make a directory to copy to");
	new_fd = fill_open_dir(volume_fd, FILL_NEW);
	if (new_fd < 0)
		return error_set(err, new_fd, "open a directory to copy to");
	if (sysio_mkdirat(new_fd, FILL_DATA, 0700) < 0 || sysio_mkdirat(new_fd, "links", 0700) < 0)
		return error_set(err, -errno, "make a directory to copy to");
	data_fd = fill_open_dir(new_fd, FILL_DATA);
	links_fd = fill_open_dir(new_fd, "links");
	if (data_fd < 0 || links_fd < 0)
		return error_set(err, data_fd < 0 ? data_fd : links_fd,
				 "open a directory to copy to");
	r = copy_up_to_disk(root_fd, path, data_fd, links_fd, err);
	return r > 0 ? fill_settle(volume_fd, new_fd, err) : r;
}

int fill_copy(int dir_fd, const char *id, int root_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int volume_fd = fill_open_dir(dir_fd, id);
	int r = volume_fd < 0 ? volume_fd : fill_is_empty(volume_fd);

	if (r == -ENOENT)
		return 0; /* fill_open() tells it */
	if (r < 0)
		return error_set(err, r, "look into its directory");
	if (r == 0)
		return 0;
	/* Of a daemon that was killed meanwhile. */
	r = rootfd_remove_tree(volume_fd, FILL_NEW);
	if (r < 0)
		return error_set(err, r, "remove what an earlier copy left");
	r = fill_new(volume_fd, root_fd, path, err);
	(void)rootfd_remove_tree(volume_fd, FILL_NEW);
	return r;
}

/* ---- owners ---- */

#define FILL_DEPTH_MAX 64

struct fill_walk {
	int fds[FILL_DEPTH_MAX];
	size_t depth;
	dev_t dev;
	uid_t uid;
	gid_t gid;
};

static void fill_walk_done(struct fill_walk *w)
{
	while (w->depth > 0)
		(void)fd_close(w->fds[--w->depth]);
}

static int fill_walk_push(struct fill_walk *w, int dir_fd, const char *name)
{
	int fd;

	if (w->depth == FILL_DEPTH_MAX)
		return -ELOOP;
	fd = fill_open_dir(dir_fd, name);
	if (fd >= 0)
		w->fds[w->depth++] = fd;
	return fd < 0 ? fd : 0;
}

static int fill_walk_one(struct fill_walk *w, int dir_fd, const char *name)
{
	struct stat st;
	int r = 0;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_dev != w->dev)
		return 0;
	if ((st.st_uid != w->uid || st.st_gid != w->gid) &&
	    fchownat(dir_fd, name, w->uid, w->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = fill_walk_push(w, dir_fd, name);
	/* Somebody who has it too has removed it, or put another thing there. */
	return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

static int fill_walk(struct fill_walk *w)
{
	_Alignas(struct dirent64) char block[1024];
	const struct dirent64 *entry = (const struct dirent64 *)(const void *)block;
	int r = 0;

	while (w->depth > 0 && r == 0) {
		int fd = w->fds[w->depth - 1];
		long n = fill_next(fd, block, sizeof(block));

		if (n < 0)
			return (int)n;
		if (n == 0)
			(void)fd_close(w->fds[--w->depth]);
		else if (!fill_is_dot(entry->d_name))
			r = fill_walk_one(w, fd, entry->d_name);
	}
	return r;
}

int fill_chown(int fd, uid_t uid, gid_t gid, struct error *err)
{
	_cleanup_(fill_walk_done) struct fill_walk w = { .uid = uid, .gid = gid };
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at what is to have another owner");
	w.dev = st.st_dev;
	if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
		r = -errno;
	if (r == 0 && S_ISDIR(st.st_mode))
		r = fill_walk_push(&w, fd, ".");
	if (r == 0)
		r = fill_walk(&w);
	return r < 0 ? error_set(err, r, "give it to %u:%u", uid, gid) : 0;
}
