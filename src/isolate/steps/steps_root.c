/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "isolate/mount/mount.h"
#include "isolate/plan/rest.h"
#include "isolate/spawn/give.h"
#include "isolate/spawn/prepared.h"
#include "isolate/spawn/pty.h"
#include "isolate/steps/steps_point.h"
#include "isolate/tree/dev.h"
#include "isolate/tree/keeper_root.h"
#include "isolate/tree/mask.h"
#include "isolate/tree/places.h"
#include "isolate/tree/tree.h"
#include "isolate/tree/tree_view.h"

/*
 * How a root is made. The tree that the clone has copied is made private; the new root is mounted
 * on "/", where it covers the old one; everything is mounted below it by descriptor; pivot_root()
 * exchanges the two, and the old one is detached. A tree can lie on the directory that it is a copy
 * of instead (root_place): others reach it there by the name that they know. Where the namespace is
 * that of a prepared set, there is nothing to be covered or detached, and /dev and /sys are there
 * already; with /proc they are made ready before the root is taken, and moved into it: whoever
 * makes the root has that time.
 *
 * An image is hostile. It gets a say in three names only, /proc, /dev and /sys: each is opened in
 * the root without following a link and must be a directory (it is made where it is missing). All
 * other targets lie in file systems that this process has made a moment ago, and are reached from
 * their own descriptors. What the lists of the plan put into it comes last, as in a tree
 * (isolate/tree/tree_target.h).
 */

#define ROOT_NO_SUID_DEV_EXEC (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
/* The same for mount_below(). */
#define ROOT_MS_NO_SUID_DEV_EXEC ((unsigned long)(MS_NOSUID | MS_NODEV | MS_NOEXEC))

static const char root_shm_options[] = "mode=1777,size=64m";

/* A directory of the image, for mounting upon. */
static int root_target(int root_fd, const char *name, struct error *err)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
	int fd = rootfd_open(root_fd, name, flags, 0);

	if (fd == -ENOENT) {
		if (sysio_mkdirat(root_fd, name, 0755) < 0)
			return error_set(err, -errno, "make /%s", name);
		fd = rootfd_open(root_fd, name, flags, 0);
	}
	if (fd == -ENOTDIR || fd == -ELOOP)
		return error_refuse(err, ERROR_PRECONDITION, "/%s of the image is not a directory",
				    name);
	return fd < 0 ? error_set(err, fd, "open /%s", name) : fd;
}

/* Each of the parts goes on a directory of place_fd; the mount. */
static int root_proc(int place_fd, struct error *err)
{
	_cleanup_fd_ int target = root_target(place_fd, "proc", err);
	int fd;

	if (target < 0)
		return target;
	fd = place_new(target, "proc", ROOT_NO_SUID_DEV_EXEC, err);
	return fd < 0 ? error_wrap(err, fd, "/proc") : fd;
}

/* Puts a mount on a directory. */
static int root_put(int mount_fd, int place_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int target = root_target(place_fd, name, err);
	int r;

	if (target < 0)
		return target;
	r = mount_attach(mount_fd, target, "", err);
	return r < 0 ? error_wrap(err, r, "/%s", name) : 0;
}

static int root_dev(struct isolate_steps *s, int place_fd, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	const struct place_dev_plan plan = { .pts_fd = p->pts_fd,
					     .shm_fd = s->shm_fd,
					     .tty = isolate_ids_outside(&p->ids, p->ids.gid,
									PTY_GROUP) };
	_cleanup_fd_ int target = -1;

	if (p->prepared_ns_fd >= 0 && !isolate_plan_has_dev(p))
		return root_target(place_fd, "dev", err);
	if (p->prepared_ns_fd >= 0 && umount2("/dev", MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
		return error_set(err, -errno, "take the /dev of a prepared set away");
	target = root_target(place_fd, "dev", err);
	return target < 0 ? target : place_dev(target, &plan, err);
}

/* /sys with the process's own cgroups in it; the mount. */
static int root_sys(struct isolate_steps *s, int place_fd, struct error *err)
{
	_cleanup_fd_ int target = -1;
	_cleanup_fd_ int fd = -1;
	int r;

	target = root_target(place_fd, "sys", err);
	if (target < 0)
		return target;
	fd = s->plan->prepared_ns_fd >= 0 ? TAKE_FD(target)
					  : place_sys(target, s->plan->writable_sys, err);
	if (fd < 0)
		return fd;
	/* In the spawner's cgroup namespace the mount would show its groups, so there is none. */
	r = s->plan->ns[ISOLATE_NS_CGROUP] == ISOLATE_KEEP
		    ? 0
		    : place_cgroups(fd, s->plan->writable_sys || s->plan->writable_groups, err);
	if (r == 0 && s->plan->writable_groups && s->plan->ns[ISOLATE_NS_CGROUP] != ISOLATE_KEEP)
		r = place_check_groups(fd, err);
	return r < 0 ? r : TAKE_FD(fd);
}

/* What is below the root of a container, in the order in which it is made. */
static const char *const root_part_names[] = {
	[TREE_PROC] = "proc", [TREE_DEV] = "dev", [TREE_SYS] = "sys"
};
_Static_assert(ARRAY_SIZE(root_part_names) == TREE_PART_COUNT, "each part has its name");

/* Makes the parts below place_fd, masked. */
static int root_make_parts(struct isolate_steps *s, int *part_fds, int place_fd, struct error *err)
{
	bool has_prepared = s->plan->prepared_ns_fd >= 0;
	_cleanup_fd_ int null_fd = -1;
	_cleanup_fd_ int empty_fd = -1;

	part_fds[TREE_PROC] = root_proc(place_fd, err);
	if (part_fds[TREE_PROC] < 0)
		return part_fds[TREE_PROC];
	part_fds[TREE_DEV] = root_dev(s, place_fd, err);
	if (part_fds[TREE_DEV] < 0)
		return part_fds[TREE_DEV];
	part_fds[TREE_SYS] = root_sys(s, place_fd, err);
	if (part_fds[TREE_SYS] < 0)
		return part_fds[TREE_SYS];
	if (s->plan->own_masks)
		return 0;
	null_fd = dev_open_null(part_fds[TREE_DEV], err);
	if (null_fd < 0)
		return null_fd;
	if (has_prepared) {
		empty_fd = sysio_openat(place_fd, ISOLATE_PREPARED_EMPTY,
					O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (empty_fd < 0)
			return error_set(err, -errno,
					 "open the empty directory of the prepared set");
	}
	return mask_apply(part_fds[TREE_PROC], has_prepared ? -1 : part_fds[TREE_SYS], null_fd,
			  empty_fd, err);
}

static int root_receive(struct isolate_steps *s)
{
	struct give give = { .n_fds = 0 };
	char byte;
	int r = give_receive(s->give_fd, &give, &byte, sizeof(byte));

	if (r < 0 || give.n_fds != 1)
		return r < 0 ? r : -EBADMSG;
	s->root_fd = give.fds[0];
	return 0;
}

/* The root and the rest of the plan. */
static int root_receive_rest(struct isolate_steps *s)
{
	/* This process has its memory for itself, and lives for one plan. */
	static struct isolate_plan plan;
	struct isolate_rest rest;
	int r = rest_receive(s->give_fd, &rest);

	if (r < 0)
		return r;
	plan = *s->plan;
	plan.argv = rest.argv;
	plan.env = rest.env;
	plan.cwd = rest.cwd;
	plan.uid = rest.uid;
	plan.gid = rest.gid;
	memcpy(plan.groups, rest.groups, sizeof(plan.groups));
	plan.n_groups = rest.n_groups;
	plan.root_read_only = rest.root_read_only;
	s->plan = &plan;
	s->root_fd = rest.root_fd;
	for (size_t i = 0; i < ARRAY_SIZE(s->stdio); i++)
		if (rest.stdio[i] >= 0)
			s->stdio[i] = rest.stdio[i];
	return 0;
}

/* Puts the root on "/", where it came late. */
static int root_attach(struct isolate_steps *s, struct error *err)
{
	int r = 0;

	if (s->plan->rest_later)
		r = root_receive_rest(s);
	else if (s->plan->root_later)
		r = root_receive(s);
	if (r < 0)
		return error_set(err, r, "wait for the root");
	s->give_fd = fd_close(s->give_fd);
	return mount_attach(s->root_fd, AT_FDCWD, "/", err);
}

static int root_make_here(struct isolate_steps *s, int *part_fds, struct error *err)
{
	int r = root_attach(s, err);

	return r < 0 ? r : root_make_parts(s, part_fds, s->root_fd, err);
}

/* In the namespace of a prepared set the parts have places of their own, so they are made before
 * the root, which may still be on its way, and moved into it. */
static int root_make_early(struct isolate_steps *s, int *part_fds, struct error *err)
{
	_cleanup_fd_ int place_fd =
		sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	int r;

	if (place_fd < 0)
		return error_set(err, -errno, "open the root of the prepared set");
	r = root_make_parts(s, part_fds, place_fd, err);
	if (r == 0)
		r = root_attach(s, err);
	for (size_t i = 0; r == 0 && i < TREE_PART_COUNT; i++)
		r = root_put(part_fds[i], s->root_fd, root_part_names[i], err);
	return r;
}

static int root_container(struct isolate_steps *s, struct error *err)
{
	int part_fds[TREE_PART_COUNT] = { -1, -1, -1 };
	int r;

	if (s->plan->prepared_ns_fd >= 0)
		r = root_make_early(s, part_fds, err);
	else
		r = root_make_here(s, part_fds, err);
	if (r >= 0 && s->mount_fds)
		r = tree_make(s, part_fds, err);
	for (size_t i = 0; i < TREE_PART_COUNT; i++)
		(void)fd_close(part_fds[i]);
	return r;
}

static const struct {
	const char *name;
	mode_t mode;
} root_keeper_dirs[] = { { "proc", 0755 }, { "dev", 0755 }, { "run", 0700 } };

static int root_keeper(struct isolate_steps *s, struct error *err)
{
	static const struct mount_option options[] = {
		{ "mode", "0755" }, { "size", "16m" }, { "nr_inodes", "4096" }, { NULL, NULL }
	};
	int r = 0;

	/* Not "nodev": the devices are nodes of this tmpfs. */
	s->root_fd = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	if (s->root_fd < 0)
		return s->root_fd;
	for (size_t i = 0; i < ARRAY_SIZE(root_keeper_dirs); i++)
		if (sysio_mkdirat(s->root_fd, root_keeper_dirs[i].name, root_keeper_dirs[i].mode) <
		    0)
			return error_set(err, -errno, "make /%s", root_keeper_dirs[i].name);
	r = mount_attach(s->root_fd, AT_FDCWD, "/", err);
	if (r >= 0)
		r = mount_below(s->root_fd, "proc", "proc", ROOT_MS_NO_SUID_DEV_EXEC, NULL, err);
	if (r >= 0) {
		_cleanup_fd_ int dev_fd = root_target(s->root_fd, "dev", err);

		r = dev_fd < 0 ? dev_fd : dev_fill(dev_fd, err);
	}
	if (r >= 0)
		r = mount_below(s->root_fd, "dev/shm", "tmpfs", ROOT_MS_NO_SUID_DEV_EXEC,
				root_shm_options, err);
	return r < 0 ? r : keeper_root_fill(s->root_fd, err);
}

/*
 * Should: find the directory of the root in this process's mount namespace, where the owner of the
 * plan will mount below it by name. Must not: take another one, which has got the name since the
 * spawner opened the root.
 */
int isolate_step_place_root(struct isolate_steps *s, struct error *err)
{
	const char *path = s->plan->root_place;
	struct stat place, root;

	if (!path)
		return 0;
	s->place_fd = sysio_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (s->place_fd < 0 || fstat(s->place_fd, &place) < 0 || fstat(s->root_fd, &root) < 0)
		return error_set(err, -errno, "open %s", path);
	if (place.st_dev != root.st_dev || place.st_ino != root.st_ino)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: is another directory than the one that was opened", path);
	return 0;
}

static int root_tree(struct isolate_steps *s, struct error *err)
{
	int r;

	if (s->place_fd >= 0)
		r = mount_attach(s->root_fd, s->place_fd, "", err);
	else
		r = mount_attach(s->root_fd, AT_FDCWD, "/", err);
	s->place_fd = fd_close(s->place_fd);
	if (r == 0)
		r = tree_make(s, NULL, err);
	if (r < 0)
		return r;
	(void)umask(0022);
	return isolate_steps_mounted(s, err);
}

/* The old root stays in the namespace, below the new one; so at least its view of the kernel goes.
 */
static int root_chroot(int root_fd, struct error *err)
{
	static const char *const names[] = { "/proc", "/sys" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (umount2(names[i], MNT_DETACH | UMOUNT_NOFOLLOW) == 0 || errno == ENOENT)
			continue;
		/* Locked together with its parent, in a user namespace; or no mount at all. */
		if (errno != EINVAL && errno != EPERM)
			return error_set(err, -errno, "take %s away", names[i]);
		if (sysio_mount("none", names[i], "tmpfs", MS_RDONLY | ROOT_MS_NO_SUID_DEV_EXEC,
				"size=0,nr_inodes=1") < 0)
			return error_set(err, -errno, "cover %s", names[i]);
	}
	if (fchdir(root_fd) < 0)
		return error_set(err, -errno, "enter the new root");
	if (chroot(".") < 0)
		return error_set(err, -errno, "chroot");
	return chdir("/") < 0 ? error_set(err, -errno, "enter the new root") : 0;
}

/* What cannot be pivoted to was private until now. */
static int root_propagate(const struct isolate_steps *s, struct error *err)
{
	unsigned long flags = s->plan->root_propagation;
	struct mount_attr attr = { .propagation = flags & (MS_SHARED | MS_UNBINDABLE) };

	return mount_change(s->root_fd, &attr, flags & MS_REC, err);
}

/* The root of this process. Should: leave no way to what was "/" before, but for descriptors. */
static int root_change(int root_fd, struct error *err)
{
	if (fchdir(root_fd) < 0)
		return error_set(err, -errno, "enter the root");
	if (chroot(".") < 0)
		return error_set(err, -errno, "chroot");
	return 0;
}

/*
 * Into the namespace that the process shall be in, with a copy of the tree that is attached
 * nowhere: it lives as long as a process has its root there, and nobody else comes across it. What
 * was made goes with the namespace that is left.
 */
static int root_leave(struct isolate_steps *s, struct error *err)
{
	int fd = mount_copy_tree(s->root_fd, "", err);

	if (fd < 0)
		return fd;
	(void)fd_close(s->root_fd);
	s->root_fd = fd;
	if (setns(s->mount_ns_fd, CLONE_NEWNS) < 0)
		return error_set(err, -errno, "enter the mount namespace");
	return root_change(fd, err);
}

static int root_enter(struct isolate_steps *s, struct error *err)
{
	/* Below the new root is nothing but the empty file system of a prepared set, which no name
	 * leads to: where ".." or a namespace begins again, the kernel goes to what is on top. */
	if (s->plan->prepared_ns_fd >= 0)
		return root_change(s->root_fd, err);
	if (s->mount_ns_fd >= 0)
		return root_leave(s, err);
	return s->plan->no_pivot ? root_chroot(s->root_fd, err) : mount_pivot(s->root_fd, err);
}

static int (*const root_kinds[])(struct isolate_steps *s, struct error *err) = {
	[ISOLATE_ROOT_CONTAINER] = root_container,
	[ISOLATE_ROOT_KEEPER] = root_keeper,
	[ISOLATE_ROOT_TREE] = root_tree,
};

/* The copy of a namespace that was joined. Should: let nothing that is mounted here be seen in that
 * one. */
static int root_new_proc(struct error *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "copy the mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return error_set(err, -errno, "make the mounts followers");
	if (mount("proc", "/proc", "proc", ROOT_MS_NO_SUID_DEV_EXEC, NULL) < 0)
		return error_set(err, -errno, "mount /proc");
	return 0;
}

/*
 * Should: leave the process in a tree that holds the plan's root and what this house mounts there,
 * and nothing of the spawner's tree. Must not: send a mount to any other namespace (all is made
 * private first); reach a target through a name that an image controls, other than the three of the
 * theory above.
 */
int isolate_step_root(struct isolate_steps *s, struct error *err)
{
	int r;

	if (s->plan->root == ISOLATE_ROOT_OTHER)
		return root_change(s->root_fd, err);
	if (s->plan->new_proc)
		return root_new_proc(err);
	if (s->plan->ns[ISOLATE_NS_MOUNT] != ISOLATE_NEW && s->mount_ns_fd < 0)
		return 0;
	/* That of a prepared set is. */
	if (s->plan->prepared_ns_fd < 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, -errno, "make the mounts private");
	if (s->plan->root == ISOLATE_ROOT_KEEP)
		return 0;

	(void)umask(0);
	r = root_kinds[s->plan->root](s, err);
	if (r == 0)
		r = root_enter(s, err);
	return r < 0 ? r : root_propagate(s, err);
}

/*
 * Should: make the mount of the root read-only, and it alone: /dev, /dev/shm and /proc stay as they
 * are, as everyone expects who sets readOnlyRootFilesystem.
 * Must not: come before the working directory was made.
 */
int isolate_step_read_only(struct isolate_steps *s, struct error *err)
{
	if (!s->plan->root_read_only)
		return 0;
	return mount_restrict(s->root_fd, MOUNT_ATTR_RDONLY, err);
}
