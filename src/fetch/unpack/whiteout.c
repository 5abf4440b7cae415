/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two passes over the notes. The first one makes directories opaque that entries have made. The
 * second one makes devices, and directories that only whiteouts imply: those have a mark of their
 * own (IMPLIED_BY_WHITEOUT), by which a whiteout that comes for such a directory itself knows that
 * no entry needs it, and takes its place. The other way around the device is in the way of the
 * directory, and the whiteout below it has nothing to hide. So the order does not count here
 * either.
 *
 * An overlay hides the devices in listings of directories that lie on others. In one that lies on
 * nothing, whose whiteouts hide nothing, it does so where the directory says that it was copied up
 * (user.overlay.origin; empty: from where is not known). Without it such a name is listed, and
 * neither looked up nor removed.
 */

#include "fetch/unpack/whiteout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/unpack/place.h"

#define WHITEOUT_ATTR_OPAQUE "user.overlay.opaque"
#define WHITEOUT_ATTR_ORIGIN "user.overlay.origin"

int whiteout_note(struct notes *whiteouts, const char *path, struct error *err)
{
	const struct iovec part = { .iov_base = (void *)(uintptr_t)path,
				    .iov_len = strlen(path) + 1 };

	return notes_add(whiteouts, &part, 1, err);
}

/* ---- one whiteout ---- */

static int whiteout_mark(int dir_fd, const char *attr, const char *value, const char *path,
			 struct error *err)
{
	if (fsetxattr(dir_fd, attr, value, strlen(value), 0) < 0)
		return place_fail(err, -errno, "mark its directory", path);
	return 0;
}

/* A directory of the layer, for its attributes; negative errno. */
static int whiteout_open(const struct place *p, const char *name)
{
	int fd = sysio_openat(p->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Of the entry's path: what it hides, "." for all in the directory. */
static const char *whiteout_target(const struct place *p)
{
	return str_eq(p->name, WHITEOUT_OPAQUE) ? "." : p->name + strlen(WHITEOUT_PREFIX);
}

/* The first pass: only what is there. */
static int whiteout_make_opaque(void *userdata, const uint8_t *note, size_t len, struct error *err)
{
	struct implied *implied = userdata;
	const char *path = (const char *)note;
	_cleanup_(place_done) struct place p = PLACE_INIT;
	_cleanup_fd_ int fd = -1;
	const char *target;

	(void)len;
	if (place_look(implied->root_fd, path, &p) < 0)
		return 0;
	target = whiteout_target(&p);
	fd = whiteout_open(&p, target);
	if (fd < 0)
		return 0;
	/* An implied directory looks as the one below, but not as one that is removed. */
	if (!str_eq(target, ".")) {
		int r = implied_given(implied, fd);

		if (r < 0)
			return place_fail(err, r, "unmark its directory", path);
	}
	return whiteout_mark(fd, WHITEOUT_ATTR_OPAQUE, "y", path, err);
}

/* 1: something else is in the place of a directory of its path. */
static int whiteout_find(struct implied *implied, const char *path, struct place *ret,
			 struct error *err)
{
	int r = place_look(implied->root_fd, path, ret);

	if (r == -ENOTDIR)
		return 1;
	if (r == -ENOENT) {
		r = implied_make(implied, path, IMPLIED_BY_WHITEOUT, err);
		if (r < 0)
			return r;
		r = place_look(implied->root_fd, path, ret);
	}
	return r < 0 ? place_fail(err, r, "reach its directory", path) : 0;
}

/* 1: a directory that only whiteouts imply was there, and is no more. */
static int whiteout_clear(const struct place *p, const char *name)
{
	_cleanup_fd_ int fd = whiteout_open(p, name);
	int r;

	if (fd < 0 || !implied_is(fd, IMPLIED_BY_WHITEOUT))
		return 0;
	r = rootfd_remove_tree(p->dir_fd, name);
	return r < 0 ? r : 1;
}

static int whiteout_make_device(const struct place *p, const char *name, const char *path,
				struct error *err)
{
	_cleanup_fd_ int dir_fd = whiteout_open(p, ".");
	int r;

	if (dir_fd < 0)
		return place_fail(err, dir_fd, "open its directory", path);
	/* Nothing lies below. */
	if (fgetxattr(dir_fd, WHITEOUT_ATTR_OPAQUE, NULL, 0) > 0)
		return 0;
	r = sysio_mknodat(p->dir_fd, name, S_IFCHR, makedev(0, 0)) < 0 ? -errno : 0;
	if (r == -EEXIST) {
		r = whiteout_clear(p, name);
		if (r == 0)
			return 0;
		if (r > 0)
			r = sysio_mknodat(p->dir_fd, name, S_IFCHR, makedev(0, 0)) < 0 ? -errno : 0;
	}
	if (r < 0)
		return place_fail(err, r, "make the whiteout", path);
	return whiteout_mark(dir_fd, WHITEOUT_ATTR_ORIGIN, "", path, err);
}

/* The second pass. */
static int whiteout_make(void *userdata, const uint8_t *note, size_t len, struct error *err)
{
	struct implied *implied = userdata;
	const char *path = (const char *)note;
	_cleanup_(place_done) struct place p = PLACE_INIT;
	_cleanup_fd_ int fd = -1;
	const char *target;
	int r;

	(void)len;
	r = whiteout_find(implied, path, &p, err);
	if (r != 0)
		return MIN(r, 0);
	target = whiteout_target(&p);
	if (!str_eq(target, "."))
		return whiteout_make_device(&p, target, path, err);
	fd = whiteout_open(&p, ".");
	if (fd < 0)
		return place_fail(err, fd, "open its directory", path);
	return whiteout_mark(fd, WHITEOUT_ATTR_OPAQUE, "y", path, err);
}

int whiteout_make_all(struct notes *whiteouts, struct implied *implied, struct error *err)
{
	int r = notes_each(whiteouts, whiteout_make_opaque, implied, err);

	return r == 0 ? notes_each(whiteouts, whiteout_make, implied, err) : r;
}
