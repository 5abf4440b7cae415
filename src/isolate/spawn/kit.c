/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"
#include "isolate/spawn/pty.h"
#include "isolate/steps/loopback.h"
#include "isolate/tree/dev.h"
#include "isolate/tree/mask.h"
#include "isolate/tree/places.h"

/*
 * A file system belongs to the namespaces of whoever mounts it, so this thread goes there. Its way
 * back is open before it leaves, and it cannot go on anywhere else: what it would clone then would
 * share what is meant to be somebody's own.
 */

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

/* ---- an empty mount namespace, and copies of it ---- */

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

/* What the mount namespaces of all kits are copies of: to make one takes a file system, a root that
 * is exchanged, and a wait for all that might still use the old one. */
static int kit_make_mold(struct isolate_kit_maker *m, struct error *err)
{
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "make a mount namespace");
	r = kit_clear(err);
	if (r < 0)
		return r;
	m->mold_fd = kit_open_space(m->proc_fd, "thread-self/ns/mnt");
	return m->mold_fd < 0 ? error_set(err, m->mold_fd, "open the mount namespace") : 0;
}

static int kit_copy_mold(const struct isolate_kit_maker *m, struct error *err)
{
	if (setns(m->mold_fd, CLONE_NEWNS) < 0)
		return error_set(err, -errno, "enter the empty mount namespace");
	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "copy the empty mount namespace");
	return 0;
}

/* ---- what is in that of a kit ---- */

static int kit_place(const char *name, struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? error_set(err, -errno, "open %s of the kit", name) : fd;
}

/* shm_fd, tty: as for place_dev(). */
static int kit_make_dev(int shm_fd, unsigned tty, struct error *err)
{
	_cleanup_fd_ int target = kit_place("/dev", err);

	return target < 0 ? target
			  : place_dev(target,
				      &(struct place_dev_plan){
					      .pts_fd = -1, .shm_fd = shm_fd, .tty = tty },
				      err);
}

static int kit_make_sys(int dev_fd, struct error *err)
{
	_cleanup_fd_ int target = kit_place("/sys", err);
	_cleanup_fd_ int null_fd = -1, empty_fd = -1, fd = -1;

	if (target < 0)
		return target;
	fd = place_sys(target, false, err);
	if (fd < 0)
		return fd;
	null_fd = dev_open_null(dev_fd, err);
	if (null_fd < 0)
		return null_fd;
	empty_fd = kit_place("/" ISOLATE_KIT_EMPTY, err);
	return empty_fd < 0 ? empty_fd : mask_apply(-1, fd, null_fd, empty_fd, err);
}

static int kit_furnish(struct isolate_kit *kit, const struct isolate_kit_maker *m, int shm_fd,
		       struct error *err)
{
	_cleanup_fd_ int dev_fd =
		kit_make_dev(shm_fd, isolate_ids_outside(&m->ids, m->ids.gid, PTY_GROUP), err);

	if (dev_fd < 0)
		return dev_fd;
	if (shm_fd < 0) {
		kit->shm_fd = mount_copy(dev_fd, "shm", err);
		if (kit->shm_fd < 0)
			return kit->shm_fd;
	}
	hurry_stand(m->hurry);
	return kit_make_sys(dev_fd, err);
}

/* This thread stands in it. */
static int kit_fill(struct isolate_kit *kit, const struct isolate_kit_maker *m, int shm_fd,
		    struct error *err)
{
	mode_t mask;
	int r = isolate_ids_enter(&m->ids, err);

	if (r < 0)
		return r;
	mask = umask(0);
	r = kit_furnish(kit, m, shm_fd, err);
	(void)umask(mask);
	isolate_ids_leave(&m->ids);
	if (r < 0)
		return r;
	kit->kit_ns_fd = kit_open_space(m->proc_fd, "thread-self/ns/mnt");
	return kit->kit_ns_fd < 0 ? error_set(err, kit->kit_ns_fd, "open the mount namespace") : 0;
}

static int kit_make_mount_ns(struct isolate_kit *kit, struct isolate_kit_maker *m,
			     struct error *err)
{
	_cleanup_(kit_stand_done) struct kit_stand at = KIT_STAND_NONE;
	_cleanup_fd_ int shm_fd = -1;
	int r;

	r = kit_stand_open(&at, m->proc_fd, err);
	if (r < 0)
		return r;
	if (m->shm_fd >= 0) {
		shm_fd = mount_copy(m->shm_fd, "", err);
		if (shm_fd < 0)
			return shm_fd;
	}
	if (m->mold_fd < 0)
		r = kit_make_mold(m, err);
	if (r == 0)
		r = kit_copy_mold(m, err);
	hurry_stand(m->hurry);
	if (r == 0)
		r = kit_fill(kit, m, shm_fd, err);
	kit_stand_again(&at);
	return r;
}

/* ---- all of it ---- */

static int kit_make_apart(struct isolate_kit *kit, struct isolate_kit_maker *m, struct error *err)
{
	int r = kit_open_spaces(kit->ns_fd, m->proc_fd, err);

	hurry_stand(m->hurry);
	if (r == 0)
		r = loopback_up(err);
	hurry_stand(m->hurry);
	return r < 0 ? r : kit_make_mount_ns(kit, m, err);
}

static void kit_give(struct isolate_kit *ret, struct isolate_kit *kit)
{
	*ret = *kit;
	*kit = (struct isolate_kit)ISOLATE_KIT_NONE;
}

static int kit_make_new(struct isolate_kit *kit, struct isolate_kit_maker *m, struct error *err)
{
	_cleanup_(isolate_kit_done) struct isolate_kit own = ISOLATE_KIT_NONE;
	int r;

	r = kit_open_spaces(own.ns_fd, m->proc_fd, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_FS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return error_set(err, -errno, "make namespaces");
	r = kit_make_apart(kit, m, err);
	kit_come_back(own.ns_fd);
	return r;
}

static int kit_make_shared(struct isolate_kit *kit, struct isolate_kit_maker *m, struct error *err)
{
	if (unshare(CLONE_FS) < 0)
		return error_set(err, -errno, "have a working directory for itself");
	return kit_make_mount_ns(kit, m, err);
}

int isolate_kit_make(struct isolate_kit *ret, struct isolate_kit_maker *m, struct error *err)
{
	_cleanup_(isolate_kit_done) struct isolate_kit kit = ISOLATE_KIT_NONE;
	int r = (m->shm_fd < 0 ? kit_make_new : kit_make_shared)(&kit, m, err);

	if (r < 0)
		return r;
	kit_give(ret, &kit);
	return 0;
}

void isolate_kit_maker_done(struct isolate_kit_maker *m)
{
	m->mold_fd = fd_close(m->mold_fd);
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
	kit->kit_ns_fd = fd_close(kit->kit_ns_fd);
}
