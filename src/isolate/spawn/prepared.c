/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/prepared.h"

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

#define PREPARED_NO_SUID_DEV_EXEC (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static const struct {
	enum isolate_ns kind;
	int flag;
	const char *name;
} prepared_spaces[] = {
	{ ISOLATE_NS_NET, CLONE_NEWNET, "thread-self/ns/net" },
	{ ISOLATE_NS_IPC, CLONE_NEWIPC, "thread-self/ns/ipc" },
	{ ISOLATE_NS_UTS, CLONE_NEWUTS, "thread-self/ns/uts" },
};

/* ---- there and back ---- */

static int prepared_open_space(int proc_fd, const char *name)
{
	int fd = sysio_openat(proc_fd, name, O_RDONLY | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* The present namespaces of this thread. */
static int prepared_open_spaces(int *ns_fd, int proc_fd, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(prepared_spaces); i++) {
		int fd = prepared_open_space(proc_fd, prepared_spaces[i].name);

		if (fd < 0)
			return error_set(err, fd, "open %s", prepared_spaces[i].name);
		ns_fd[prepared_spaces[i].kind] = fd;
	}
	return 0;
}

static void prepared_come_back(const int *ns_fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(prepared_spaces); i++)
		if (setns(ns_fd[prepared_spaces[i].kind], prepared_spaces[i].flag) < 0)
			abort();
}

/* ---- an empty mount namespace, and copies of it ---- */

/* Where this thread stands in its mount namespace. */
struct prepared_stand {
	int ns_fd, root_fd, cwd_fd;
};

#define PREPARED_STAND_NONE                                                                        \
	{                                                                                          \
		.ns_fd = -1, .root_fd = -1, .cwd_fd = -1                                           \
	}

static void prepared_stand_done(struct prepared_stand *at)
{
	at->ns_fd = fd_close(at->ns_fd);
	at->root_fd = fd_close(at->root_fd);
	at->cwd_fd = fd_close(at->cwd_fd);
}

static int prepared_stand_open(struct prepared_stand *at, int proc_fd, struct error *err)
{
	at->ns_fd = prepared_open_space(proc_fd, "thread-self/ns/mnt");
	if (at->ns_fd < 0)
		return error_set(err, at->ns_fd, "open the own mount namespace");
	at->root_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (at->root_fd < 0)
		return error_set(err, -errno, "open the root");
	at->cwd_fd = sysio_openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return at->cwd_fd < 0 ? error_set(err, -errno, "open the working directory") : 0;
}

/* A namespace that is entered puts the thread at its root, which need not be where it was. */
static void prepared_stand_again(const struct prepared_stand *at)
{
	if (setns(at->ns_fd, CLONE_NEWNS) < 0 || fchdir(at->root_fd) < 0 || chroot(".") < 0 ||
	    fchdir(at->cwd_fd) < 0)
		abort();
}

/* Where a container mounts what it makes before its root is there (steps_root.c). */
static const char *const prepared_places[] = { "proc", "dev", "sys", ISOLATE_PREPARED_EMPTY };

/* In a mount namespace of its own: takes away all that was copied into it. */
static int prepared_clear(struct error *err)
{
	static const struct mount_option options[] = {
		{ "mode", "0555" }, { "size", "4k" }, { "nr_inodes", "5" }, { NULL, NULL }
	};
	_cleanup_fd_ int fd = mount_new("tmpfs", options, PREPARED_NO_SUID_DEV_EXEC, err);
	int r;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(prepared_places); i++)
		if (sysio_mkdirat(fd, prepared_places[i], 0555) < 0)
			return error_set(err, -errno, "make the directory %s", prepared_places[i]);
	r = mount_take_all(fd, err);
	if (r == 0)
		r = mask_make_empty(fd, ISOLATE_PREPARED_EMPTY, err);
	return r < 0 ? r : mount_restrict(fd, MOUNT_ATTR_RDONLY, err);
}

/* What the mount namespaces of all prepared sets are copies of: to make one takes a file system, a
 * root that is exchanged, and a wait for all that might still use the old one. */
static int prepared_make_mold(struct isolate_prepared_maker *m, struct error *err)
{
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "make a mount namespace");
	r = prepared_clear(err);
	if (r < 0)
		return r;
	m->mold_fd = prepared_open_space(m->proc_fd, "thread-self/ns/mnt");
	return m->mold_fd < 0 ? error_set(err, m->mold_fd, "open the mount namespace") : 0;
}

static int prepared_copy_mold(const struct isolate_prepared_maker *m, struct error *err)
{
	if (setns(m->mold_fd, CLONE_NEWNS) < 0)
		return error_set(err, -errno, "enter the empty mount namespace");
	if (unshare(CLONE_NEWNS) < 0)
		return error_set(err, -errno, "copy the empty mount namespace");
	return 0;
}

/* ---- what is in that of a prepared set ---- */

static int prepared_place(const char *name, struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? error_set(err, -errno, "open %s of the prepared set", name) : fd;
}

/* shm_fd, tty: as for place_dev(). */
static int prepared_make_dev(int shm_fd, unsigned tty, struct error *err)
{
	_cleanup_fd_ int target = prepared_place("/dev", err);

	return target < 0 ? target
			  : place_dev(target,
				      &(struct place_dev_plan){
					      .pts_fd = -1, .shm_fd = shm_fd, .tty = tty },
				      err);
}

static int prepared_make_sys(int dev_fd, struct error *err)
{
	_cleanup_fd_ int target = prepared_place("/sys", err);
	_cleanup_fd_ int null_fd = -1, empty_fd = -1, fd = -1;

	if (target < 0)
		return target;
	fd = place_sys(target, false, err);
	if (fd < 0)
		return fd;
	null_fd = dev_open_null(dev_fd, err);
	if (null_fd < 0)
		return null_fd;
	empty_fd = prepared_place("/" ISOLATE_PREPARED_EMPTY, err);
	return empty_fd < 0 ? empty_fd : mask_apply(-1, fd, null_fd, empty_fd, err);
}

static int prepared_furnish(struct isolate_prepared *prepared,
			    const struct isolate_prepared_maker *m, int shm_fd, struct error *err)
{
	_cleanup_fd_ int dev_fd =
		prepared_make_dev(shm_fd, isolate_ids_outside(&m->ids, m->ids.gid, PTY_GROUP), err);

	if (dev_fd < 0)
		return dev_fd;
	if (shm_fd < 0) {
		prepared->shm_fd = mount_copy(dev_fd, "shm", err);
		if (prepared->shm_fd < 0)
			return prepared->shm_fd;
	}
	hurry_stand(m->hurry);
	return prepared_make_sys(dev_fd, err);
}

/* This thread stands in it. */
static int prepared_fill(struct isolate_prepared *prepared, const struct isolate_prepared_maker *m,
			 int shm_fd, struct error *err)
{
	mode_t mask;
	int r = isolate_ids_enter(&m->ids, err);

	if (r < 0)
		return r;
	mask = umask(0);
	r = prepared_furnish(prepared, m, shm_fd, err);
	(void)umask(mask);
	isolate_ids_leave(&m->ids);
	if (r < 0)
		return r;
	prepared->prepared_ns_fd = prepared_open_space(m->proc_fd, "thread-self/ns/mnt");
	return prepared->prepared_ns_fd < 0
		       ? error_set(err, prepared->prepared_ns_fd, "open the mount namespace")
		       : 0;
}

static int prepared_make_mount_ns(struct isolate_prepared *prepared,
				  struct isolate_prepared_maker *m, struct error *err)
{
	_cleanup_(prepared_stand_done) struct prepared_stand at = PREPARED_STAND_NONE;
	_cleanup_fd_ int shm_fd = -1;
	int r;

	r = prepared_stand_open(&at, m->proc_fd, err);
	if (r < 0)
		return r;
	if (m->shm_fd >= 0) {
		shm_fd = mount_copy(m->shm_fd, "", err);
		if (shm_fd < 0)
			return shm_fd;
	}
	if (m->mold_fd < 0)
		r = prepared_make_mold(m, err);
	if (r == 0)
		r = prepared_copy_mold(m, err);
	hurry_stand(m->hurry);
	if (r == 0)
		r = prepared_fill(prepared, m, shm_fd, err);
	prepared_stand_again(&at);
	return r;
}

/* ---- all of it ---- */

static int prepared_make_apart(struct isolate_prepared *prepared, struct isolate_prepared_maker *m,
			       struct error *err)
{
	int r = prepared_open_spaces(prepared->ns_fd, m->proc_fd, err);

	hurry_stand(m->hurry);
	if (r == 0)
		r = loopback_up(err);
	hurry_stand(m->hurry);
	return r < 0 ? r : prepared_make_mount_ns(prepared, m, err);
}

static void prepared_give(struct isolate_prepared *ret, struct isolate_prepared *prepared)
{
	*ret = *prepared;
	*prepared = (struct isolate_prepared)ISOLATE_PREPARED_NONE;
}

static int prepared_make_new(struct isolate_prepared *prepared, struct isolate_prepared_maker *m,
			     struct error *err)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared own = ISOLATE_PREPARED_NONE;
	int r;

	r = prepared_open_spaces(own.ns_fd, m->proc_fd, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_FS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return error_set(err, -errno, "make namespaces");
	r = prepared_make_apart(prepared, m, err);
	prepared_come_back(own.ns_fd);
	return r;
}

static int prepared_make_shared(struct isolate_prepared *prepared, struct isolate_prepared_maker *m,
				struct error *err)
{
	if (unshare(CLONE_FS) < 0)
		return error_set(err, -errno, "have a working directory for itself");
	return prepared_make_mount_ns(prepared, m, err);
}

int isolate_prepared_make(struct isolate_prepared *ret, struct isolate_prepared_maker *m,
			  struct error *err)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	int r = (m->shm_fd < 0 ? prepared_make_new : prepared_make_shared)(&prepared, m, err);

	if (r < 0)
		return r;
	prepared_give(ret, &prepared);
	return 0;
}

void isolate_prepared_maker_done(struct isolate_prepared_maker *m)
{
	m->mold_fd = fd_close(m->mold_fd);
}

int isolate_prepared_set_hostname(const struct isolate_prepared *prepared, int proc_fd,
				  const char *name, struct error *err)
{
	_cleanup_fd_ int own_fd = prepared_open_space(proc_fd, "thread-self/ns/uts");
	int r = 0;

	if (own_fd < 0)
		return error_set(err, own_fd, "open the own uts namespace");
	if (setns(prepared->ns_fd[ISOLATE_NS_UTS], CLONE_NEWUTS) < 0)
		return error_set(err, -errno, "enter the uts namespace");
	if (sethostname(name, strlen(name)) < 0)
		r = error_set(err, -errno, "sethostname");
	if (setns(own_fd, CLONE_NEWUTS) < 0)
		abort();
	return r;
}

void isolate_prepared_done(struct isolate_prepared *prepared)
{
	for (size_t i = 0; i < ARRAY_SIZE(prepared->ns_fd); i++)
		prepared->ns_fd[i] = fd_close(prepared->ns_fd[i]);
	prepared->shm_fd = fd_close(prepared->shm_fd);
	prepared->prepared_ns_fd = fd_close(prepared->prepared_ns_fd);
}
