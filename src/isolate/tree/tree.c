/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/tree/copy_up.h"
#include "isolate/tree/dev.h"
#include "isolate/tree/tree_order.h"
#include "isolate/tree/tree_target.h"

/*
 * Mounts first, in the order of the list; then devices and links in what is mounted by now; then
 * what is made read-only, and what is hidden, which lies on top of all. A tmpfs that shall be
 * read-only becomes so in the end, since other things may have to be made in it.
 */

/* The file systems that SELinux labels by itself take no label. That of an ipc namespace is older
 * than any mount of it: its label cannot be an option. */
static bool tree_takes_context(const char *fs)
{
	return !str_eq(fs, "proc") && !str_eq(fs, "sysfs") && !str_eq(fs, "mqueue") &&
	       !str_has_prefix(fs, "cgroup");
}

/* The label of the root of a file system, where the policy has labels for files of its kind. */
static int tree_label(int mount_fd, const char *label, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open(mount_fd, "/", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return error_set(err, fd, "open the file system");
	if (fsetxattr(fd, "security.selinux", label, strlen(label) + 1, 0) < 0 &&
	    errno != EOPNOTSUPP)
		return error_set(err, -errno, "selinux_mount: %s", label);
	return 0;
}

static bool tree_is_late(const struct isolate_mount *m)
{
	return m->source_fd < 0 && str_eq(m->fs, "tmpfs") &&
	       (m->attr_set | m->attr_set_below) & MOUNT_ATTR_RDONLY;
}

static int tree_new(const struct isolate_steps *s, const struct isolate_mount *m, struct error *err)
{
	const char *fs = str_eq(m->fs, "cgroup") ? "cgroup2" : m->fs;
	const char *context = tree_takes_context(fs) ? s->plan->selinux_mount : NULL;
	struct mount_attr attr = { .propagation = m->propagation & (MS_SHARED | MS_SLAVE) };
	uint64_t attrs = m->attr_set | m->attr_set_below;
	_cleanup_fd_ int fd = -1;
	int r;

	if (tree_is_late(m))
		attrs &= ~(uint64_t)MOUNT_ATTR_RDONLY;
	fd = mount_new_from(fs, m->source, m->options, context, (unsigned)attrs, err);
	if (fd < 0)
		return fd;
	r = mount_change(fd, &attr, false, err);
	if (r == 0 && s->plan->selinux_mount && str_eq(fs, "mqueue"))
		r = tree_label(fd, s->plan->selinux_mount, err);
	if (r == 0 && m->copy_up)
		r = copy_up(s->root_fd, m->target, fd, err);
	return r < 0 ? r : TAKE_FD(fd);
}

/* The mount of one entry, which may have been made by the spawner. */
static int tree_mount(struct isolate_steps *s, size_t i, struct tree_order *order,
		      bool *made_anything, struct error *err)
{
	bool has_terminal = s->plan->pts_fd >= 0 && i == s->pts_index;
	/* Whose first mounts are younger than any copy: there is no order to be told. */
	bool is_container = s->plan->root == ISOLATE_ROOT_CONTAINER;
	int fd = s->mount_fds[i];

	/* The terminal that is open in its devpts is named by that very mount. */
	if (fd >= 0 && (!*made_anything || has_terminal || is_container))
		return fd;
	if (fd < 0) {
		*made_anything = true;
		return tree_new(s, &s->plan->mounts[i], err);
	}
	fd = tree_order_renew(order, s->mount_fds[i], err);
	if (fd >= 0)
		(void)fd_close(s->mount_fds[i]);
	return fd;
}

/* What nobody may copy must be so only when nothing is to be copied any more. */
static int tree_unbindable(int fd, const struct isolate_mount *m, struct error *err)
{
	struct mount_attr attr = { .propagation = m->propagation & MS_UNBINDABLE };

	return mount_change(fd, &attr, m->propagation & MS_REC, err);
}

static int tree_mounts_make(struct isolate_steps *s, struct tree_view *v, struct tree_order *order,
			    struct error *err)
{
	bool made_anything = false;

	for (size_t i = 0; i < s->plan->n_mounts; i++) {
		const struct isolate_mount *m = &s->plan->mounts[i];
		bool is_system = tree_is_system(m);
		int r = tree_mount(s, i, order, &made_anything, err);

		if (r < 0)
			return error_wrap(err, r, "%s", m->target);
		s->mount_fds[i] = r;
		r = tree_attach(v, r, m->target, is_system, err);
		if (r < 0)
			return r;
		r = tree_unbindable(s->mount_fds[i], m, err);
		if (r == 0)
			r = mount_id(s->mount_fds[i], &s->mount_ids[i], err);
		if (r < 0)
			return error_wrap(err, r, "%s", m->target);
		v->n_attached = i + 1;
		if (!tree_is_late(m) && !is_system)
			s->mount_fds[i] = fd_close(s->mount_fds[i]);
	}
	return 0;
}

static int tree_mounts(struct isolate_steps *s, struct tree_view *v, struct error *err)
{
	_cleanup_(tree_order_done) struct tree_order order = TREE_ORDER_INIT;
	int r = tree_mounts_make(s, v, &order, err);

	return r < 0 ? r : tree_order_end(&order, err);
}

static int tree_late(struct isolate_steps *s, struct error *err)
{
	for (size_t i = 0; i < s->plan->n_mounts; i++) {
		int r = 0;

		if (tree_is_late(&s->plan->mounts[i]))
			r = mount_restrict(s->mount_fds[i], MOUNT_ATTR_RDONLY, err);
		if (r < 0)
			return error_wrap(err, r, "%s", s->plan->mounts[i].target);
		s->mount_fds[i] = fd_close(s->mount_fds[i]);
	}
	return 0;
}

static mode_t tree_device_type(const struct isolate_device *d)
{
	if (d->type == 'p')
		return S_IFIFO;
	return d->type == 'b' ? S_IFBLK : S_IFCHR;
}

static int tree_node(int dir_fd, const char *name, const struct isolate_device *d,
		     struct error *err)
{
	mode_t type = tree_device_type(d);
	dev_t number = type == S_IFIFO ? 0 : makedev(d->major, d->minor);
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (sysio_mknodat(dir_fd, name, type | d->mode, number) < 0 && errno != EEXIST)
		return error_set(err, -errno, "%s: make it", d->path);
	fd = sysio_openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, -errno, "%s: look at it", d->path);
	if ((st.st_mode & S_IFMT) != type || (type != S_IFIFO && st.st_rdev != number))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: the root has something else there", d->path);
	if ((st.st_uid != d->uid || st.st_gid != d->gid) &&
	    fchownat(fd, "", d->uid, d->gid, AT_EMPTY_PATH) < 0)
		return error_set(err, -errno, "%s: change its owner", d->path);
	return 0;
}

static int tree_device(struct isolate_steps *s, const struct tree_view *v, size_t i,
		       struct error *err)
{
	const struct isolate_device *d = &s->plan->devices[i];
	const char *name = strrchr(d->path, '/') + 1;
	_cleanup_fd_ int dir_fd = -1;
	char dir[PATH_MAX];
	size_t len = (size_t)(name - d->path);

	if (s->device_fds[i] >= 0)
		return tree_attach(v, s->device_fds[i], d->path, false, err);
	if (len >= sizeof(dir))
		return error_set(err, -ENAMETOOLONG, "%s", d->path);
	memcpy(dir, d->path, len);
	dir[len] = '\0';
	dir_fd = tree_dir(v, dir, err);
	return dir_fd < 0 ? dir_fd : tree_node(dir_fd, name, d, err);
}

/* What belongs into a /dev that the list has made anew: made in that very mount. */
static int tree_dev(struct isolate_steps *s, const struct tree_view *v, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	_cleanup_fd_ int console_fd = -1;
	struct tree_base dev;
	int r;

	tree_view_base(v, "/dev", &dev);
	if (!dev.is_new || !str_eq(dev.rest, ".") || p->root != ISOLATE_ROOT_TREE)
		return 0;
	r = dev_link(dev.fd, err);
	if (r < 0 || p->pts_fd < 0)
		return r;
	/* From the place that it has now: what is detached cannot be copied. */
	console_fd = mount_copy(s->mount_fds[s->pts_index], "0", err);
	return console_fd < 0 ? error_wrap(err, console_fd, "/dev/console")
			      : tree_attach(v, console_fd, "/dev/console", false, err);
}

static int tree_devices(struct isolate_steps *s, const struct tree_view *v, struct error *err)
{
	for (size_t i = 0; i < s->plan->n_devices; i++) {
		int r = tree_device(s, v, i, err);

		if (r < 0)
			return r;
	}
	return tree_dev(s, v, err);
}

/*
 * Should: put it on the file that was resolved, from the system mount where it lies in one. Must
 * not: believe that a name of the root still leads there (as tree_attach()).
 */
static int tree_cover(const struct tree_view *v, int cover_fd, int target_fd, const char *path,
		      bool is_own, struct error *err)
{
	int r = mount_attach(cover_fd, target_fd, "", err);

	return r < 0 || is_own ? r : tree_see(v, cover_fd, path, err);
}

static int tree_read_only_one(const struct tree_view *v, const char *path, struct error *err)
{
	static const struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	bool is_own = false;
	_cleanup_fd_ int target_fd = tree_open(v, path, &is_own, err);
	_cleanup_fd_ int fd = -1;
	int r;

	if (target_fd < 0)
		return target_fd == -ENOENT ? 0 : target_fd;
	fd = mount_copy_tree(target_fd, "", err);
	r = fd < 0 ? fd : mount_change(fd, &attr, true, err);
	return r < 0 ? r : tree_cover(v, fd, target_fd, path, is_own, err);
}

static int tree_read_only(struct isolate_steps *s, const struct tree_view *v, struct error *err)
{
	for (char *const *path = s->plan->readonly_paths; path && *path; path++) {
		int r = tree_read_only_one(v, *path, err);

		if (r < 0)
			return error_wrap(err, r, "make %s read-only", *path);
	}
	return 0;
}

/* A mount that hides, of a kind that the first one made: what is attached can be copied. */
static int tree_empty(int *first_fd, bool *ret_is_first, struct error *err)
{
	*ret_is_first = *first_fd < 0;
	if (*first_fd >= 0)
		return mount_copy(*first_fd, "", err);
	*first_fd = mount_new_from(
		"tmpfs", NULL, "mode=0555,size=4k,nr_inodes=2", NULL,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	return *first_fd;
}

static int tree_mask(struct isolate_steps *s, const struct tree_view *v, const char *path,
		     int *empty_fd, bool *null_is_used, struct error *err)
{
	bool is_first = false, is_own = false;
	_cleanup_fd_ int target_fd = tree_open(v, path, &is_own, err);
	_cleanup_fd_ int copy_fd = -1;
	struct stat st;
	int fd;

	/* The one excuse for a missing mask is that there is nothing to be hidden. */
	if (target_fd < 0)
		return target_fd == -ENOENT ? 0 : target_fd;
	if (fstat(target_fd, &st) < 0)
		return error_set(err, -errno, "look at it");
	if (S_ISDIR(st.st_mode)) {
		fd = tree_empty(empty_fd, &is_first, err);
	} else {
		is_first = !*null_is_used;
		*null_is_used = true;
		fd = is_first ? s->null_mount_fd : mount_copy(s->null_mount_fd, "", err);
		/* On the descriptor that is used, whatever has a name by now (A17). */
		if (fd >= 0 && !dev_is_null(fd))
			return error_set(err, -ENODEV, "what hides it is not /dev/null");
	}
	if (fd < 0)
		return fd;
	copy_fd = is_first ? -1 : fd;
	return tree_cover(v, fd, target_fd, path, is_own, err);
}

static int tree_masks(struct isolate_steps *s, const struct tree_view *v, struct error *err)
{
	_cleanup_fd_ int empty_fd = -1;
	bool null_is_used = false;

	for (char *const *path = s->plan->masked_paths; path && *path; path++) {
		int r = tree_mask(s, v, *path, &empty_fd, &null_is_used, err);

		if (r < 0)
			return error_wrap(err, r, "hide %s", *path);
	}
	return 0;
}

int tree_make(struct isolate_steps *s, const int *part_fds, struct error *err)
{
	struct tree_view v;
	int r = tree_view_open(&v, s, part_fds, err);

	if (r == 0)
		r = tree_mounts(s, &v, err);
	if (r == 0)
		r = tree_devices(s, &v, err);
	if (r == 0)
		r = tree_read_only(s, &v, err);
	if (r == 0)
		r = tree_masks(s, &v, err);
	return r < 0 ? r : tree_late(s, err);
}
