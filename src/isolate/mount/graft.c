/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/graft.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/process/thread.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"

/*
 * A mount can only be put into the namespace that the caller is in, and a thread that shares its
 * working directory with others cannot enter one. So the thread that does it is made for that, and
 * never comes back: there is no way in which another one could find itself in the wrong place.
 */

struct graft {
	int ns_fd;
	const char *place, *name;
	int mount_fd; /* -1: take away */
	struct error *err;
	int r;
};

/* A name in the directory, to mount upon. The mount of the directory may be read-only; a copy of it
 * that nobody sees is not. */
static int graft_make(int place_fd, const char *name, bool is_dir, struct error *err)
{
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd = mount_copy(place_fd, "", err);
	int r;

	if (fd < 0)
		return fd;
	r = mount_change(fd, &writable, false, err);
	if (r < 0)
		return r;
	r = is_dir ? sysio_mkdirat(fd, name, 0755) : sysio_mknodat(fd, name, S_IFREG | 0600, 0);
	/* Of a mount that was never put there. */
	return r < 0 && errno != EEXIST ? error_set(err, -errno, "make %s", name) : 0;
}

static void graft_unmake(int place_fd, const char *name)
{
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd = mount_copy(place_fd, "", NULL);

	if (fd < 0 || mount_change(fd, &writable, false, NULL) < 0)
		return;
	if (sysio_unlinkat(fd, name, AT_REMOVEDIR) < 0)
		(void)sysio_unlinkat(fd, name, 0);
}

/* Whether something is mounted there: 1 or 0; -ENOENT. */
static int graft_is_mounted(int place_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(place_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = mount_is_same(fd, place_fd, err);
	return r < 0 ? r : !r;
}

static int graft_add(struct graft *g, int place_fd)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = graft_is_mounted(place_fd, g->name, g->err);

	if (r > 0) {
		(void)error_refuse(g->err, ERROR_EXISTS, "there is a mount \"%.60s\" already",
				   g->name);
		return -EEXIST;
	}
	if (fstat(g->mount_fd, &st) < 0)
		return error_set(g->err, -errno, "look at a mount");
	r = graft_make(place_fd, g->name, S_ISDIR(st.st_mode), g->err);
	if (r < 0)
		return r;
	fd = sysio_openat(place_fd, g->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(g->err, -errno, "open %.60s", g->name);
	r = mount_attach(g->mount_fd, fd, "", g->err);
	if (r < 0)
		graft_unmake(place_fd, g->name);
	return r;
}

/* Without writers below it nobody becomes one. */
static void graft_close_for_writing(int place_fd, const char *name)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd = sysio_openat(place_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd >= 0)
		(void)mount_change(fd, &attr, true, NULL);
}

static int graft_remove(struct graft *g, int place_fd)
{
	bool held = false;
	int r = graft_is_mounted(place_fd, g->name, g->err);

	if (r == 0 || r == -ENOENT) {
		(void)error_refuse(g->err, ERROR_NOT_FOUND, "there is no mount \"%.60s\"", g->name);
		return -ENOENT;
	}
	if (r < 0)
		return error_wrap(g->err, r, "look at %.60s", g->name);
	if (fchdir(place_fd) < 0)
		return error_set(g->err, -errno, "enter the directory");
	r = umount2(g->name, UMOUNT_NOFOLLOW);
	if (r < 0 && errno == EBUSY) {
		held = true;
		graft_close_for_writing(place_fd, g->name);
		r = umount2(g->name, UMOUNT_NOFOLLOW | MNT_DETACH);
	}
	if (r < 0)
		return error_set(g->err, -errno, "unmount %.60s", g->name);
	graft_unmake(place_fd, g->name);
	return held;
}

static int graft_work(struct graft *g)
{
	_cleanup_fd_ int root_fd = -1, place_fd = -1;

	if (unshare(CLONE_FS) < 0)
		return error_set(g->err, -errno, "have a working directory for itself");
	if (setns(g->ns_fd, CLONE_NEWNS) < 0)
		return error_set(g->err, -errno, "enter a mount namespace");
	root_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root_fd < 0)
		return error_set(g->err, -errno, "open the root of a mount namespace");
	place_fd = rootfd_open(root_fd, g->place, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (place_fd < 0)
		return error_set(g->err, place_fd, "open %.60s in a mount namespace", g->place);
	return g->mount_fd >= 0 ? graft_add(g, place_fd) : graft_remove(g, place_fd);
}

static void *graft_thread(void *data)
{
	struct graft *g = data;

	g->r = graft_work(g);
	return NULL;
}

static int graft_run(struct graft *g)
{
	pthread_t thread;
	int r;

	if (str_empty(g->name) || strchr(g->name, '/') || str_eq(g->name, ".") ||
	    str_eq(g->name, ".."))
		return error_refuse(g->err, ERROR_INVALID, "\"%.60s\" is no name", g->name ?: "");
	r = thread_start(&thread, graft_thread, g);
	if (r < 0)
		return error_set(g->err, r, "make a thread");
	(void)pthread_join(thread, NULL);
	return g->r;
}

int isolate_graft(int ns_fd, const char *place, const char *name, int mount_fd, struct error *err)
{
	_cleanup_fd_ int fd = mount_fd;
	struct graft g = {
		.ns_fd = ns_fd, .place = place, .name = name, .mount_fd = fd, .err = err
	};

	return graft_run(&g);
}

int isolate_prune(int ns_fd, const char *place, const char *name, struct error *err)
{
	struct graft g = {
		.ns_fd = ns_fd, .place = place, .name = name, .mount_fd = -1, .err = err
	};

	return graft_run(&g);
}
