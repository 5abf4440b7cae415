/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/keeper_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "isolate/mount/mount.h"

/* Where the linker, the libraries and a sanitizer's symbolizer live: links into usr where the host
 * has merged them, directories where it has not. A keeper's keeper finds what its parent found. */
static const char *const keeper_root_names[] = { "usr", "lib", "lib32", "lib64" };

static int keeper_root_bind(int from_fd, int root_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = mount_copy(from_fd, name, err);
	int r;

	if (fd < 0)
		return fd;
	r = mount_restrict(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (r < 0)
		return r;
	if (sysio_mkdirat(root_fd, name, 0755) < 0)
		return error_set(err, -errno, "make /%s", name);
	return mount_attach(fd, root_fd, name, err);
}

static int keeper_root_link(int from_fd, int root_fd, const char *name, struct error *err)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_fd, name, target, sizeof(target));

	if (n < 0 || n == sizeof(target))
		return error_set(err, n < 0 ? -errno : -ENAMETOOLONG, "read the link /%s", name);
	target[n] = '\0';
	if (sysio_symlinkat(target, root_fd, name) < 0)
		return error_set(err, -errno, "make the link /%s", name);
	return 0;
}

/*
 * The folder in which a build with the option `coverage` counts, at its own name, and writable; in
 * any other build KEEPER_ROOT_COUNTERS is empty. A spawner that does not see it itself has none to
 * give.
 */
static int keeper_root_counters(int from_fd, int root_fd, struct error *err)
{
	static const char path[] = KEEPER_ROOT_COUNTERS;
	_cleanup_fd_ int fd = -EBADF;
	struct stat st;
	int r;

	if (!*path || fstatat(from_fd, path, &st, 0) < 0)
		return 0;
	fd = mount_copy(from_fd, path, err);
	if (fd < 0)
		return fd;
	r = mount_restrict(fd, MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	for (size_t i = 1; r >= 0 && i < sizeof(path); i++) {
		char part[sizeof(path)] = "";

		if (path[i] && path[i] != '/')
			continue;
		memcpy(part, path, i);
		if (sysio_mkdirat(root_fd, part, 0755) < 0 && errno != EEXIST)
			r = error_set(err, -errno, "make /%s", part);
	}
	return r < 0 ? r : mount_attach(fd, root_fd, path, err);
}

/*
 * Should: let a dynamic program be executed in the root. Must not: be a part of the product, whose
 * keepers have nothing of the host's tree in sight.
 */
int keeper_root_fill(int root_fd, struct error *err)
{
	_cleanup_fd_ int from_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	struct stat st;
	int r = 0;

	if (from_fd < 0)
		return error_set(err, -errno, "open the spawner's root");
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(keeper_root_names); i++) {
		const char *name = keeper_root_names[i];

		if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = errno == ENOENT ? 0 : error_set(err, -errno, "look at /%s", name);
		else if (S_ISLNK(st.st_mode))
			r = keeper_root_link(from_fd, root_fd, name, err);
		else
			r = keeper_root_bind(from_fd, root_fd, name, err);
	}
	return r < 0 ? r : keeper_root_counters(from_fd, root_fd, err);
}
