/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/spawn_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/idmap.h"
#include "isolate/mount/mount.h"
#include "isolate/tree/dev.h"

/*
 * What a tree binds is copied here and not in the child: a mount can be copied only in the
 * namespace that it is in, and mapped only with the privilege over its file system. A copy of a
 * shared mount is its peer until it is told otherwise, so each gets its propagation at once.
 */

static unsigned long spawn_tree_type(unsigned long propagation)
{
	unsigned long type = propagation & ~(unsigned long)MS_REC;

	/* What is unbindable cannot be copied, and the child may have to: it makes it so. */
	return type == 0 || type == MS_UNBINDABLE ? MS_PRIVATE : type;
}

/* The kernel wants the kinds of atime cleared that one of them is set over. */
static uint64_t spawn_tree_clear(uint64_t set, uint64_t clear)
{
	return set & MOUNT_ATTR__ATIME ? clear | MOUNT_ATTR__ATIME : clear;
}

static int spawn_tree_attrs(int fd, const struct isolate_mount *m, bool many, struct error *err)
{
	bool all = many && (!m->propagation || m->propagation & MS_REC);
	struct mount_attr below = { .attr_set = m->attr_set_below,
				    .attr_clr = m->attr_clear_below };
	struct mount_attr own = { .attr_set = m->attr_set, .attr_clr = m->attr_clear };
	int r;

	if (!many) {
		own.attr_set |= below.attr_set;
		own.attr_clr |= below.attr_clr;
		below = (struct mount_attr){ .attr_set = 0 };
	}
	*(all ? &below.propagation : &own.propagation) = spawn_tree_type(m->propagation);
	below.attr_clr = spawn_tree_clear(below.attr_set, below.attr_clr);
	own.attr_clr = spawn_tree_clear(own.attr_set, own.attr_clr);
	r = mount_change(fd, &below, true, err);
	return r < 0 ? r : mount_change(fd, &own, false, err);
}

static int spawn_tree_bind(const struct isolate_mount *m, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	bool many = m->recursive || m->detached;
	int r;

	if (m->detached)
		fd = fd_copy(m->source_fd);
	else if (m->recursive)
		fd = mount_copy_tree(m->source_fd, "", err);
	else
		fd = mount_copy(m->source_fd, "", err);
	if (fd < 0)
		return m->detached ? error_set(err, fd, "copy a descriptor") : fd;
	r = m->idmap_fd >= 0 ? isolate_idmap_apply(fd, m->idmap_fd, m->idmap_below, err) : 0;
	if (r == 0)
		r = spawn_tree_attrs(fd, m, many, err);
	return r < 0 ? r : TAKE_FD(fd);
}

/* The devpts that the spawner has opened a terminal in takes the place of the first of the list. */
static int spawn_tree_pts(const struct isolate_plan *p, const struct isolate_mount *m,
			  struct error *err)
{
	_cleanup_fd_ int fd = fd_copy(p->pts_fd);
	int r;

	if (fd < 0)
		return error_set(err, fd, "copy a descriptor");
	r = spawn_tree_attrs(fd, m, false, err);
	return r < 0 ? r : TAKE_FD(fd);
}

static int spawn_tree_mounts(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	bool has_pts = p->pts_fd < 0 || p->root != ISOLATE_ROOT_TREE;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct isolate_mount *m = &p->mounts[i];
		int fd;

		if (m->source_fd >= 0) {
			fd = spawn_tree_bind(m, err);
		} else if (!has_pts && str_eq(m->fs, "devpts")) {
			has_pts = true;
			s->pts_index = i;
			fd = spawn_tree_pts(p, m, err);
		} else {
			continue;
		}
		if (fd < 0)
			return error_wrap(err, fd, "mounts: %s", m->target);
		s->mount_fds[i] = fd;
	}
	return 0;
}

/* Whether the descriptor is the node that the plan names. */
static bool spawn_tree_is_device(int fd, const struct isolate_device *d)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (d->type == 'p')
		return S_ISFIFO(st.st_mode);
	return (d->type == 'b' ? S_ISBLK(st.st_mode) : S_ISCHR(st.st_mode)) &&
	       st.st_rdev == makedev(d->major, d->minor);
}

static int spawn_tree_devices(struct isolate_steps *s, struct error *err)
{
	static const struct isolate_mount plain = ISOLATE_MOUNT_INIT;
	const struct isolate_plan *p = s->plan;

	for (size_t i = 0; i < p->n_devices; i++) {
		const struct isolate_device *d = &p->devices[i];
		int fd, r;

		if (d->fd < 0)
			continue;
		if (!spawn_tree_is_device(d->fd, d))
			return error_refuse(err, ERROR_PRECONDITION,
					    "devices: %s is another device", d->path);
		fd = mount_copy(d->fd, "", err);
		s->device_fds[i] = fd;
		r = fd < 0 ? fd : spawn_tree_attrs(fd, &plain, false, err);
		if (r < 0)
			return error_wrap(err, r, "devices: %s", d->path);
	}
	return 0;
}

static int spawn_tree_null(struct isolate_steps *s, struct error *err)
{
	static const struct isolate_mount plain = ISOLATE_MOUNT_INIT;
	_cleanup_fd_ int fd = -1;

	if (!s->plan->masked_paths || !s->plan->masked_paths[0])
		return 0;
	fd = sysio_openat(AT_FDCWD, "/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open /dev/null");
	s->null_mount_fd = mount_copy(fd, "", err);
	if (s->null_mount_fd < 0)
		return s->null_mount_fd;
	if (!dev_is_null(s->null_mount_fd))
		return error_set(err, -ENODEV, "/dev/null");
	return spawn_tree_attrs(s->null_mount_fd, &plain, false, err);
}

int spawn_tree_prepare(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	struct mount_attr root = { .propagation = MS_PRIVATE };
	size_t n = p->n_mounts + p->n_devices;
	int r;

	if (p->root != ISOLATE_ROOT_TREE && n == 0 && !p->masked_paths && !p->readonly_paths)
		return 0;
	/* That of a container is its own affair. */
	s->pts_index = p->n_mounts;
	s->mount_ids = malloc(p->n_mounts * sizeof(uint64_t) +
			      (n + n + ISOLATE_STEPS_FDS + 1) * sizeof(int));
	if (!s->mount_ids)
		return error_set(err, -ENOMEM, "make the list of mounts");
	s->mount_fds = (int *)(s->mount_ids + p->n_mounts);
	s->device_fds = s->mount_fds + p->n_mounts;
	s->fds_room = s->mount_fds + n;
	for (size_t i = 0; i < n; i++)
		s->mount_fds[i] = -1;

	/* What is shared or unbindable cannot be pivoted to: the child makes it so afterwards. */
	if (spawn_tree_type(p->root_propagation) == MS_SLAVE)
		root.propagation = MS_SLAVE;
	r = mount_change(p->root_fd, &root, true, err);
	if (r < 0)
		return error_wrap(err, r, "root_fd");
	r = spawn_tree_mounts(s, err);
	if (r == 0)
		r = spawn_tree_devices(s, err);
	return r < 0 ? r : spawn_tree_null(s, err);
}

void spawn_tree_done(struct isolate_steps *s)
{
	(void)fd_close(s->null_mount_fd);
	for (size_t i = 0; s->mount_fds && i < s->plan->n_mounts; i++)
		(void)fd_close(s->mount_fds[i]);
	for (size_t i = 0; s->mount_fds && i < s->plan->n_devices; i++)
		(void)fd_close(s->device_fds[i]);
	free(s->mount_ids);
}
