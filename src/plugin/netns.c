/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define NETNS_UUID_SIZE 37

/* As the kernel draws one. */
static int netns_draw(char ret[NETNS_UUID_SIZE])
{
	_cleanup_fd_ int fd =
		sysio_openat(AT_FDCWD, "/proc/sys/kernel/random/uuid", O_RDONLY | O_CLOEXEC, 0);
	int r = fd < 0 ? -errno : fd_read_full(fd, ret, NETNS_UUID_SIZE - 1);

	ret[NETNS_UUID_SIZE - 1] = '\0';
	return r < 0 ? r : 0;
}

static int netns_mount(int ns_fd, const char *path)
{
	_cleanup_fd_ int fd = sysio_openat(
		AT_FDCWD, path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	char from[48];
	int r = 0;

	if (fd < 0)
		return -errno;
	(void)str_printf(from, sizeof(from), "/proc/self/fd/%d", ns_fd);
	if (sysio_mount(from, path, NULL, MS_BIND, NULL) < 0) {
		r = -errno;
		(void)sysio_unlinkat(AT_FDCWD, path, 0);
	}
	return r;
}

int netns_bind(const char *dir, int ns_fd, char ret[NETNS_PATH_MAX], struct error *err)
{
	char uuid[NETNS_UUID_SIZE];
	int r = netns_draw(uuid);

	if (r == 0 && sysio_mkdirat(AT_FDCWD, dir, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = str_printf(ret, NETNS_PATH_MAX, "%s/cni-%s", dir, uuid);
	if (r >= 0)
		r = netns_mount(ns_fd, ret);
	return r < 0 ? error_set(err, r, "name the network namespace of a pod in %s", dir) : 0;
}

bool netns_is_there(const char *path)
{
	struct statfs fs;

	return *path && statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

void netns_unbind(const char *path)
{
	if (!*path)
		return;
	if (netns_is_there(path))
		(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	(void)sysio_unlinkat(AT_FDCWD, path, 0);
}
