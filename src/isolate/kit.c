/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/str.h"
#include "base/sysio.h"
#include "isolate/dev.h"
#include "isolate/loopback.h"
#include "isolate/mask.h"
#include "isolate/mount.h"
#include "isolate/places.h"

/*
 * A file system belongs to the namespaces of whoever mounts it, so this thread goes there. Its way
 * back is open before it leaves, and it cannot go on anywhere else: what it would clone then would
 * share what is meant to be somebody's own.
 *
 * Before Linux 6.15 only what is attached can be copied and mounted upon. So all is built below a
 * small file system of its own, copied from there as detached trees, and taken down in one piece.
 */

#define KIT_PLACE ".kit" /* no label, so no cell has that name */
#define KIT_NO_SUID_DEV_EXEC (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static const struct {
	enum isolate_ns kind;
	int flag;
	const char *name;
} kit_spaces[] = {
	{ ISOLATE_NS_NET, CLONE_NEWNET, "thread-self/ns/net" },
	{ ISOLATE_NS_IPC, CLONE_NEWIPC, "thread-self/ns/ipc" },
	{ ISOLATE_NS_UTS, CLONE_NEWUTS, "thread-self/ns/uts" },
};

/* ---- there and back ---- */

static int kit_open_space(int proc_fd, const char *name)
{
	int fd = sysio_openat(proc_fd, name, O_RDONLY | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* The present namespaces of this thread. */
static int kit_open_spaces(int *ns_fd, int proc_fd, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(kit_spaces); i++) {
		int fd = kit_open_space(proc_fd, kit_spaces[i].name);

		if (fd < 0)
			return error_set(err, fd, "open %s", kit_spaces[i].name);
		ns_fd[kit_spaces[i].kind] = fd;
	}
	return 0;
}

static void kit_come_back(const int *ns_fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(kit_spaces); i++)
		if (setns(ns_fd[kit_spaces[i].kind], kit_spaces[i].flag) < 0)
			abort();
}

/* ---- what is made there ---- */

/* A directory of the kit's own file system, to mount upon. */
static int kit_dir(int top_fd, const char *name, struct error *err)
{
	int fd;

	if (sysio_mkdirat(top_fd, name, 0755) < 0)
		return error_set(err, -errno, "make the directory %s", name);
	fd = sysio_openat(top_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open the directory %s", name) : fd;
}

/* The file system of /dev/shm as a detached mount for the container; a new one (shm_fd -1) once
 * more for others. */
static int kit_make_shm(struct isolate_kit *kit, int top_fd, int shm_fd, struct error *err)
{
	static const struct mount_option options[] = { { "mode", "1777" },
						       { "size", "64m" },
						       { NULL, NULL } };
	_cleanup_fd_ int target = -1;
	_cleanup_fd_ int fd = -1;
	int r;

	if (shm_fd >= 0)
		return mount_copy(shm_fd, "", err);
	target = kit_dir(top_fd, "shm", err);
	if (target < 0)
		return target;
	fd = mount_new("tmpfs", options, KIT_NO_SUID_DEV_EXEC, err);
	if (fd < 0)
		return fd;
	r = mount_attach(fd, target, "", err);
	if (r < 0)
		return r;
	kit->shm_fd = mount_copy(fd, "", err);
	return kit->shm_fd < 0 ? kit->shm_fd : mount_copy(fd, "", err);
}

static int kit_make_dev(struct isolate_kit *kit, int top_fd, int given_shm_fd, struct error *err)
{
	_cleanup_fd_ int shm_fd = kit_make_shm(kit, top_fd, given_shm_fd, err);
	_cleanup_fd_ int target = -1;
	int fd;

	if (shm_fd < 0)
		return error_wrap(err, shm_fd, "/dev/shm");
	target = kit_dir(top_fd, "dev", err);
	if (target < 0)
		return target;
	fd = place_dev(target, -1, shm_fd, err);
	if (fd < 0)
		return fd;
	kit->dev_fd = mount_copy_tree(fd, "", err);
	if (kit->dev_fd >= 0)
		return fd;
	(void)fd_close(fd);
	return kit->dev_fd;
}

static int kit_make_sys(struct isolate_kit *kit, int top_fd, int dev_fd, struct error *err)
{
	_cleanup_fd_ int target = kit_dir(top_fd, "sys", err);
	_cleanup_fd_ int null_fd = -1;
	_cleanup_fd_ int fd = -1;
	int r;

	if (target < 0)
		return target;
	fd = place_sys(target, err);
	if (fd < 0)
		return fd;
	null_fd = dev_open_null(dev_fd, err);
	if (null_fd < 0)
		return null_fd;
	r = mask_apply(-1, fd, null_fd, -1, err);
	if (r < 0)
		return r;
	kit->sys_fd = mount_copy_tree(fd, "", err);
	return kit->sys_fd < 0 ? kit->sys_fd : 0;
}

static int kit_fill(struct isolate_kit *kit, int top_fd, int shm_fd, struct error *err)
{
	_cleanup_fd_ int dev_fd = kit_make_dev(kit, top_fd, shm_fd, err);

	return dev_fd < 0 ? dev_fd : kit_make_sys(kit, top_fd, dev_fd, err);
}

static void kit_take_down(int place_fd)
{
	char path[64];

	/* umount2() knows no descriptors: the directory is named through /proc. */
	if (str_printf(path, sizeof(path), "/proc/self/fd/%d/" KIT_PLACE, place_fd) >= 0)
		(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	(void)sysio_unlinkat(place_fd, KIT_PLACE, AT_REMOVEDIR);
}

static int kit_build(struct isolate_kit *kit, int place_fd, int shm_fd, struct error *err)
{
	static const struct mount_option options[] = { { "mode", "0700" },
						       { "nr_inodes", "16" },
						       { NULL, NULL } };
	_cleanup_fd_ int top_fd = -1;
	int r;

	top_fd = mount_new("tmpfs", options, KIT_NO_SUID_DEV_EXEC, err);
	if (top_fd < 0)
		return top_fd;
	if (sysio_mkdirat(place_fd, KIT_PLACE, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory " KIT_PLACE);
	r = mount_attach(top_fd, place_fd, KIT_PLACE, err);
	if (r == 0)
		r = kit_fill(kit, top_fd, shm_fd, err);
	kit_take_down(place_fd);
	return r;
}

/* ---- an empty mount namespace ---- */

/* Where this thread stands in its mount namespace. */
struct kit_stand {
	int ns_fd, root_fd, cwd_fd;
};

#define KIT_STAND_NONE                                                                             \
	{                                                                                          \
		.ns_fd = -1, .root_fd = -1, .cwd_fd = -1                                           \
	}

static void kit_stand_done(struct kit_stand *at)
{
	at->ns_fd = fd_close(at->ns_fd);
	at->root_fd = fd_close(at->root_fd);
	at->cwd_fd = fd_close(at->cwd_fd);
}

static int kit_stand_open(struct kit_stand *at, int proc_fd, struct error *err)
{
	at->ns_fd = kit_open_space(proc_fd, "thread-self/ns/mnt");
	if (at->ns_fd < 0)
		return error_set(err, at->ns_fd, "open the own mount namespace");
	at->root_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (at->root_fd < 0)
		return error_set(err, -errno, "open the root");
	at->cwd_fd = sysio_openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return at->cwd_fd < 0 ? error_set(err, -errno, "open the working directory") : 0;
}

/* A namespace that is entered puts the thread at its root, which need not be where it was. */
static void kit_stand_again(const struct kit_stand *at)
{
	if (setns(at->ns_fd, CLONE_NEWNS) < 0 || fchdir(at->root_fd) < 0 || chroot(".") < 0 ||
	    fchdir(at->cwd_fd) < 0)
		abort();
}

/* Where a container mounts what it makes before its root is there (steps_root.c). */
static const char *const kit_places[] = { "proc", "dev", "sys", ISOLATE_KIT_EMPTY };

/* In a mount namespace of its own: takes away all that was copied into it. */
static int kit_clear(struct error *err)
{
	static const struct mount_option options[] = {
		{ "mode", "0555" }, { "size", "4k" }, { "nr_inodes", "5" }, { NULL, NULL }
	};
	_cleanup_fd_ int fd = mount_new("tmpfs", options, KIT_NO_SUID_DEV_EXEC, err);
	int r;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(kit_places); i++)
		if (sysio_mkdirat(fd, kit_places[i], 0555) < 0)
			return error_set(err, -errno, "make the directory %s", kit_places[i]);
	r = mount_take_all(fd, err);
	if (r == 0)
		r = mask_make_empty(fd, ISOLATE_KIT_EMPTY, err);
	return r < 0 ? r : mount_restrict(fd, MOUNT_ATTR_RDONLY, err);
}

static int kit_make_mount_ns(struct isolate_kit *kit, int proc_fd, struct error *err)
{
	_cleanup_(kit_stand_done) struct kit_stand at = KIT_STAND_NONE;
	int r;

	r = kit_stand_open(&at, proc_fd, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "make a mount namespace");
	r = kit_clear(err);
	if (r == 0) {
		kit->bare_ns_fd = kit_open_space(proc_fd, "thread-self/ns/mnt");
		r = kit->bare_ns_fd < 0
			    ? error_set(err, kit->bare_ns_fd, "open the mount namespace")
			    : 0;
	}
	kit_stand_again(&at);
	return r;
}

/* ---- all of it ---- */

/* In the namespaces that it is for. */
static int kit_make_there(struct isolate_kit *kit, int place_fd, int proc_fd, int shm_fd,
			  struct error *err)
{
	_cleanup_fd_ int cwd_fd = sysio_openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	mode_t mask;
	int r;

	if (cwd_fd < 0)
		return error_set(err, -errno, "open the working directory");
	mask = umask(0);
	r = kit_build(kit, place_fd, shm_fd, err);
	(void)umask(mask);
	if (fchdir(cwd_fd) < 0 && r == 0)
		r = error_set(err, -errno, "go back to the working directory");
	return r < 0 ? r : kit_make_mount_ns(kit, proc_fd, err);
}

static int kit_make_apart(struct isolate_kit *kit, int place_fd, int proc_fd, struct error *err)
{
	int r = kit_open_spaces(kit->ns_fd, proc_fd, err);

	if (r == 0)
		r = loopback_up(err);
	return r < 0 ? r : kit_make_there(kit, place_fd, proc_fd, -1, err);
}

static void kit_give(struct isolate_kit *ret, struct isolate_kit *kit)
{
	*ret = *kit;
	*kit = (struct isolate_kit)ISOLATE_KIT_NONE;
}

int isolate_kit_make(struct isolate_kit *ret, int place_fd, int proc_fd, struct error *err)
{
	_cleanup_(isolate_kit_done) struct isolate_kit kit = ISOLATE_KIT_NONE;
	_cleanup_(isolate_kit_done) struct isolate_kit own = ISOLATE_KIT_NONE;
	int r;

	r = kit_open_spaces(own.ns_fd, proc_fd, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_FS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return error_set(err, -errno, "make namespaces");
	r = kit_make_apart(&kit, place_fd, proc_fd, err);
	kit_come_back(own.ns_fd);
	if (r < 0)
		return r;
	kit_give(ret, &kit);
	return 0;
}

int isolate_kit_make_shared(struct isolate_kit *ret, int place_fd, int proc_fd, int shm_fd,
			    struct error *err)
{
	_cleanup_(isolate_kit_done) struct isolate_kit kit = ISOLATE_KIT_NONE;
	int r;

	if (unshare(CLONE_FS) < 0)
		return error_set(err, -errno, "have a working directory for itself");
	r = kit_make_there(&kit, place_fd, proc_fd, shm_fd, err);
	if (r < 0)
		return r;
	kit_give(ret, &kit);
	return 0;
}

int isolate_kit_set_hostname(const struct isolate_kit *kit, int proc_fd, const char *name,
			     struct error *err)
{
	_cleanup_fd_ int own_fd = kit_open_space(proc_fd, "thread-self/ns/uts");
	int r = 0;

	if (own_fd < 0)
		return error_set(err, own_fd, "open the own uts namespace");
	if (setns(kit->ns_fd[ISOLATE_NS_UTS], CLONE_NEWUTS) < 0)
		return error_set(err, -errno, "enter the uts namespace");
	if (sethostname(name, strlen(name)) < 0)
		r = error_set(err, -errno, "sethostname");
	if (setns(own_fd, CLONE_NEWUTS) < 0)
		abort();
	return r;
}

void isolate_kit_done(struct isolate_kit *kit)
{
	for (size_t i = 0; i < ARRAY_SIZE(kit->ns_fd); i++)
		kit->ns_fd[i] = fd_close(kit->ns_fd[i]);
	kit->shm_fd = fd_close(kit->shm_fd);
	kit->dev_fd = fd_close(kit->dev_fd);
	kit->sys_fd = fd_close(kit->sys_fd);
	kit->bare_ns_fd = fd_close(kit->bare_ns_fd);
}
