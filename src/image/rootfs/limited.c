/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rootfs/limited.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "image/content/measure.h"
#include "image/content/model.h"
#include "image/content/room.h"
#include "isolate/disk/ext4_file.h"
#include "isolate/disk/quota.h"
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

static int limited_make_own(struct image_store *s, int dir_fd, uint64_t limit, struct error *err)
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

int limited_make(struct image_store *s, int dir_fd, const char *id, const struct image_limit *limit,
		 bool *ret_own, struct error *err)
{
	int r;

	*ret_own = !limit->by_project || !quota_is_enforced(dir_fd);
	if (*ret_own)
		return limited_make_own(s, dir_fd, limit->bytes, err);
	r = quota_give(dir_fd, id, limit->bytes, err);
	if (r == 0)
		r = fd_copy(dir_fd);
	return r < 0 && !err->code ? error_set(err, r, "open its directory") : r;
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

/* ---- projects ---- */

static int limited_open_dir(int containers_fd, const char *id)
{
	int fd =
		sysio_openat(containers_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* All but the directory, by which its project is found: what is left of it still counts. */
static int limited_empty(int dir_fd)
{
	_cleanup_strv_ char **names = NULL;
	int r = fd_list_dir(dir_fd, &names);

	for (size_t i = 0; r >= 0 && names && names[i]; i++)
		r = rootfd_remove_tree(dir_fd, names[i]);
	return r < 0 ? r : 0;
}

int limited_remove(int containers_fd, const char *id)
{
	_cleanup_fd_ int dir_fd = limited_open_dir(containers_fd, id);

	if (dir_fd >= 0 && quota_project(dir_fd)) {
		int r = limited_empty(dir_fd);

		if (r == 0)
			r = quota_free(dir_fd);
		if (r < 0)
			return r;
	}
	return rootfd_remove_tree(containers_fd, id);
}

int limited_measure(struct measure *m, int containers_fd, const char *id, uint64_t *ret_limit)
{
	_cleanup_fd_ int dir_fd = limited_open_dir(containers_fd, id), file_fd = -1;
	struct quota_use use;
	struct stat st;

	*ret_limit = 0;
	if (dir_fd < 0)
		return dir_fd;
	if (quota_look(dir_fd, &use) == 0) {
		m->bytes += use.used;
		*ret_limit = use.limit;
		return 0;
	}
	file_fd = sysio_openat(dir_fd, LIMITED_FILE, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (file_fd >= 0 && fstat(file_fd, &st) == 0)
		*ret_limit = (uint64_t)st.st_size;
	return measure_tree(m, containers_fd, id);
}

static const char *limited_fault(int dir_fd)
{
	struct quota_use use;

	if (!quota_project(dir_fd))
		return NULL;
	if (!quota_is_enforced(dir_fd))
		return "its limit is the quota of a project, and the file system does not enforce "
		       "those now";
	if (quota_look(dir_fd, &use) < 0 || !use.limit)
		return "its limit is the quota of a project, and that has none";
	return NULL;
}

void limited_inventory(int containers_fd, struct inventory *t)
{
	_cleanup_strv_ char **names = NULL;

	if (fd_list_dir(containers_fd, &names) < 0)
		return;
	for (size_t i = 0; names && names[i]; i++) {
		_cleanup_fd_ int dir_fd = limited_open_dir(containers_fd, names[i]);
		const char *fault = dir_fd < 0 ? NULL : limited_fault(dir_fd);

		if (fault)
			inventory_fault(t, "rootfs", names[i], names[i], fault);
	}
}
