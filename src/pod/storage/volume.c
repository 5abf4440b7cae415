/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/storage/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/bind.h"

static int volume_failed(int r, const char *field, const char *path, struct error *err)
{
	switch (r) {
	case -ENOENT:
	case -ENOTDIR:
		return error_field(err, ERROR_NOT_FOUND, field, "there is no %.200s on the node",
				   path);
	case -ELOOP:
		return error_field(err, ERROR_PRECONDITION, field,
				   "a part of %.200s is a symbolic link: name what it points to",
				   path);
	case -ENAMETOOLONG:
		return error_field(err, ERROR_INVALID, field,
				   "%.200s is longer than a path, or has a name that is longer "
				   "than a name, may be",
				   path);
	default:
		(void)error_set(err, r, "open %.200s", path);
		return error_wrap_field(err, r, field);
	}
}

/* The directory that `path` is in, and its last name. */
static int volume_parent(const char *path, char name[NAME_MAX + 1])
{
	size_t end = strlen(path), begin;
	char dir[PATH_MAX];

	while (end > 1 && path[end - 1] == '/')
		end--;
	begin = end;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	if (end - begin > NAME_MAX || begin >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(name, path + begin, end - begin);
	name[end - begin] = '\0';
	memcpy(dir, path, begin);
	dir[begin] = '\0';
	return rootfd_point(AT_FDCWD, dir);
}

/* Whether it is, holds or lies in a directory of ours. A file lies where its directory does. */
static int volume_is_ours(int fd, int parent_fd, bool is_dir, int own_fd)
{
	int r;

	if (own_fd < 0)
		return 0;
	r = rootfd_is_below(is_dir ? fd : parent_fd, own_fd);
	return r == 0 && is_dir ? rootfd_is_below(own_fd, fd) : r;
}

static int volume_check(const struct volume_guard *guard, const char *field, const char *path,
			int fd, int parent_fd, bool device, struct error *err)
{
	const int own[] = { guard->root_fd, guard->run_fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return volume_failed(-errno, field, path, err);
	if (device && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return 0;
	if (device && !S_ISDIR(st.st_mode))
		return error_field(err, ERROR_PRECONDITION, field,
				   "%.200s is neither a device nor a directory", path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode)
			       ? volume_failed(-ELOOP, field, path, err)
			       : error_field(err, ERROR_PRECONDITION, field,
					     "%.200s is neither a directory nor a regular file",
					     path);
	if (guard->sets_fd >= 0 && rootfd_is_below(parent_fd, guard->sets_fd) > 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		int r = volume_is_ours(fd, parent_fd, S_ISDIR(st.st_mode), own[i]);

		if (r < 0)
			return volume_failed(r, field, path, err);
		if (r > 0)
			return error_field(err, ERROR_INVALID, field,
					   "%.200s is, holds or lies in a directory of the node's "
					   "own, which is not given out",
					   path);
	}
	return 0;
}

/* What the kernel says that the open file is called. */
static int volume_path_of(int fd, char ret[PATH_MAX])
{
	char link[32];
	ssize_t n;

	(void)str_printf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX);
	if (n < 0 || n >= PATH_MAX)
		return n < 0 ? -errno : -ENAMETOOLONG;
	ret[n] = '\0';
	return 0;
}

/* The directory that an open file lies in, by the kernel's word for the file. */
static int volume_dir_of(int fd)
{
	char path[PATH_MAX], name[NAME_MAX + 1];
	int r = volume_path_of(fd, path);

	return r < 0 ? r : volume_parent(path, name);
}

int volume_check_file(const struct volume_guard *guard, const char *field, const char *path, int fd,
		      struct error *err)
{
	_cleanup_fd_ int parent_fd = volume_dir_of(fd);

	if (parent_fd < 0)
		return volume_failed(parent_fd, field, path, err);
	return volume_check(guard, field, path, fd, parent_fd, false, err);
}

/* Whether the mount that it is in passes on what is mounted there later. */
static int volume_check_peers(const struct pod_mount_spec *m, int fd, struct error *err)
{
	bool shared = false, slave = false;
	int r;

	if (m->mount.propagation == MOUNT_PRIVATE)
		return 0;
	r = isolate_bind_peers(fd, &shared, &slave, err);
	if (r < 0)
		return error_wrap_field(err, r, m->field);
	if (shared || (slave && m->mount.propagation == MOUNT_FROM_HOST))
		return 0;
	return error_field(err, ERROR_PRECONDITION, m->field,
			   "%.200s is on a mount that is not shared%s, so nothing propagates; "
			   "`mount --make-shared` changes that",
			   m->source,
			   m->mount.propagation == MOUNT_FROM_HOST ? " nor a slave" : "");
}

int volume_open(const struct volume_guard *guard, const struct pod_mount_spec *m, struct error *err)
{
	const char *field = m->field, *path = m->source;
	_cleanup_fd_ int parent_fd = -1, fd = -1;
	char name[NAME_MAX + 1];
	int r;

	if (str_empty(path) || path[0] != '/')
		return error_field(err, ERROR_INVALID, field, "\"%.80s\" is not an absolute path",
				   path ?: "");
	if (path[strspn(path, "/")] == '\0')
		return error_field(err, ERROR_INVALID, field, "/ itself is not given out");
	parent_fd = volume_parent(path, name);
	if (parent_fd < 0)
		return volume_failed(parent_fd, field, path, err);
	fd = rootfd_point(parent_fd, name);
	if (fd < 0)
		return volume_failed(fd, field, path, err);
	r = volume_check(guard, field, path, fd, parent_fd, m->mount.access != 0, err);
	if (r == 0)
		r = volume_check_peers(m, fd, err);
	if (r < 0)
		return r;
	r = isolate_bind(fd,
			 (m->read_only && !m->top_only ? ISOLATE_BIND_READ_ONLY : 0) |
				 (m->no_exec ? ISOLATE_BIND_NO_EXEC : 0) |
				 (m->devices ? ISOLATE_BIND_DEVICES : 0) |
				 (m->mount.propagation ? ISOLATE_BIND_PEERS : 0),
			 err);
	return r < 0 ? error_wrap_field(err, r, field) : r;
}

/* Links on the way are those of the node: they end in its root. */
static int volume_open_at(const char *path, int flags)
{
	_cleanup_fd_ int root_fd = rootfd_point(AT_FDCWD, "/");

	return root_fd < 0 ? root_fd : rootfd_open(root_fd, path, flags | O_PATH | O_CLOEXEC, 0);
}

int volume_open_through(const struct volume_guard *guard, const struct pod_mount_spec *m,
			struct error *err)
{
	_cleanup_fd_ int fd = -1, mount_fd = -1;
	struct pod_mount_spec real_mount = *m;
	char real[PATH_MAX];
	int r;

	if (str_empty(m->source) || m->source[0] != '/')
		return volume_open(guard, m, err);
	fd = volume_open_at(m->source, 0);
	r = fd < 0 ? fd : volume_path_of(fd, real);
	if (r < 0)
		return volume_failed(r, m->field, m->source, err);
	real_mount.source = real;
	mount_fd = volume_open(guard, &real_mount, err);
	if (mount_fd < 0)
		return mount_fd;
	r = m->read_only && m->top_only ? isolate_bind_read_only(mount_fd, err) : 0;
	return r < 0 ? error_wrap_field(err, r, m->field) : TAKE_FD(mount_fd);
}

int volume_open_log(const char *field, const char *dir, const char *name, struct error *err)
{
	_cleanup_fd_ int dir_fd = volume_open_at(dir, O_DIRECTORY);
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (dir_fd < 0)
		return volume_failed(dir_fd, field, dir, err);
	fd = rootfd_open(dir_fd, name,
			 O_RDWR | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0640);
	if (fd < 0)
		return volume_failed(fd, field, name, err);
	if (fstat(fd, &st) < 0)
		return volume_failed(-errno, field, name, err);
	if (!S_ISREG(st.st_mode))
		return error_field(err, ERROR_PRECONDITION, field, "%.200s is no regular file",
				   name);
	return TAKE_FD(fd);
}
