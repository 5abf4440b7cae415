/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define MOUNT_OPTIONS_MAX 4095 /* of the kernel: a page */

int mount_new(const char *fs, const struct mount_option *options, unsigned attrs, struct error *err)
{
	_cleanup_fd_ int fd = sysio_fsopen(fs, FSOPEN_CLOEXEC);
	int mount_fd;

	if (fd < 0)
		return error_set(err, -errno, "open the file system %s", fs);
	for (; options && options->key; options++)
		if (sysio_fsconfig(fd, options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
				   options->key, options->value, 0) < 0)
			return error_set(err, -errno, "option %s of %s", options->key, fs);
	if (sysio_fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make the file system %s", fs);
	mount_fd = sysio_fsmount(fd, FSMOUNT_CLOEXEC, attrs);
	return mount_fd < 0 ? error_set(err, -errno, "mount %s", fs) : mount_fd;
}

static int mount_option(int fs_fd, const char *key, const char *value, struct error *err)
{
	if (sysio_fsconfig(fs_fd, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, value, 0) <
	    0)
		return error_set(err, -errno, "option %s", key);
	return 0;
}

/* Each of a list with commas. */
static int mount_options(int fs_fd, const char *options, struct error *err)
{
	char text[MOUNT_OPTIONS_MAX + 1];
	char *at = text;
	int r;

	r = str_copy(text, sizeof(text), options);
	if (r < 0)
		return error_set(err, r, "options");
	while (*at) {
		char *end = at + strcspn(at, ",");
		bool more = *end == ',';
		char *value;

		*end = '\0';
		value = strchr(at, '=');
		if (value)
			*value++ = '\0';
		r = *at ? mount_option(fs_fd, at, value, err) : 0;
		if (r < 0)
			return r;
		at = end + more;
	}
	return 0;
}

int mount_new_from(const char *fs, const char *source, const char *options, const char *context,
		   unsigned attrs, struct error *err)
{
	_cleanup_fd_ int fd = sysio_fsopen(fs, FSOPEN_CLOEXEC);
	int mount_fd;
	int r;

	if (fd < 0 && errno == ENODEV)
		return error_refuse(err, ERROR_PRECONDITION, "the kernel has no file system %s",
				    fs);
	if (fd < 0)
		return error_set(err, -errno, "open the file system %s", fs);
	r = source ? mount_option(fd, "source", source, err) : 0;
	if (r == 0 && options)
		r = mount_options(fd, options, err);
	if (r == 0 && context)
		r = mount_option(fd, "context", context, err);
	if (r < 0)
		return error_wrap(err, r, "%s", fs);
	if (sysio_fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make the file system %s", fs);
	mount_fd = sysio_fsmount(fd, FSMOUNT_CLOEXEC, attrs);
	return mount_fd < 0 ? error_set(err, -errno, "mount %s", fs) : mount_fd;
}

int mount_copy_tree(int dir_fd, const char *name, struct error *err)
{
	int fd = sysio_open_tree(dir_fd, name,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
					 AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH));

	return fd < 0 ? error_set(err, -errno, "copy the mounts of %s", *name ? name : "a file")
		      : fd;
}

int mount_change(int mount_fd, const struct mount_attr *attr, bool below, struct error *err)
{
	struct mount_attr all = *attr;

	if (!all.attr_set && !all.attr_clr && !all.propagation)
		return 0;
	if (sysio_mount_setattr(mount_fd, "", AT_EMPTY_PATH | (below ? AT_RECURSIVE : 0), &all) < 0)
		return error_set(err, -errno, "change the attributes of a mount");
	return 0;
}

int mount_id(int fd, uint64_t *ret, struct error *err)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return error_set(err, -errno, "look at a mount");
	*ret = st.stx_mnt_id;
	return 0;
}

int mount_is_same(int a_fd, int b_fd, struct error *err)
{
	uint64_t a = 0, b = 0;
	int r = mount_id(a_fd, &a, err);

	if (r == 0)
		r = mount_id(b_fd, &b, err);
	return r < 0 ? r : a == b;
}

int mount_copy(int dir_fd, const char *name, struct error *err)
{
	int fd = sysio_open_tree(dir_fd, name,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
					 (*name ? 0 : AT_EMPTY_PATH));

	return fd < 0 ? error_set(err, -errno, "copy the mount of %s", *name ? name : "a file")
		      : fd;
}

int mount_restrict(int mount_fd, unsigned attrs, struct error *err)
{
	struct mount_attr attr = { .attr_set = attrs };

	if (sysio_mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr) < 0)
		return error_set(err, -errno, "restrict a mount");
	return 0;
}

int mount_attach(int mount_fd, int dir_fd, const char *name, struct error *err)
{
	if (sysio_move_mount(mount_fd, "", dir_fd, name,
			     MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH)) < 0)
		return error_set(err, -errno, "mount on %s", *name ? name : "the root");
	return 0;
}

int mount_pivot(int root_fd, struct error *err)
{
	/* With both names being the new root, the old one comes to lie on top of it, and "." is
	 * then the way to take it off again (pivot_root(2)). */
	if (fchdir(root_fd) < 0)
		return error_set(err, -errno, "enter the new root");
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return error_set(err, -errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return error_set(err, -errno, "detach the old root");
	return 0;
}

int mount_leave(int mount_fd, struct error *err)
{
	if (fchdir(mount_fd) < 0)
		return error_set(err, -errno, "enter a mount");
	return umount2(".", MNT_DETACH) < 0 ? error_set(err, -errno, "take a mount away") : 0;
}

int mount_take_all(int mount_fd, struct error *err)
{
	int r;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, -errno, "make the mounts private");
	r = mount_attach(mount_fd, AT_FDCWD, "/", err);
	return r < 0 ? r : mount_pivot(mount_fd, err);
}

int mount_below(int dir_fd, const char *name, const char *fs, unsigned long flags,
		const char *options, struct error *err)
{
	if (fchdir(dir_fd) < 0)
		return error_set(err, -errno, "enter the directory of %s", name);
	if (sysio_mount("none", name, fs, flags, options) < 0)
		return error_set(err, -errno, "mount %s on %s", fs, name);
	return 0;
}
