/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rootfs/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "wire/message/implied.h"

#define REPAIR_OPAQUE "user.overlay.opaque"
#define REPAIR_NAMES_MAX (64 << 10) /* what the kernel has of names and of a value, at most */

/* One of the process would be two threads'. */
struct repair {
	int layer_fd, lower_fd;
	char names[REPAIR_NAMES_MAX];
	char value[REPAIR_NAMES_MAX];
};

enum repair_need repair_look(int layer_fd)
{
	_cleanup_fd_ int fd =
		sysio_openat(layer_fd, IMPLIED_FILE, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return REPAIR_NOTHING;
	/* The root's path is its end alone. */
	return st.st_size == 1 ? REPAIR_ROOT : REPAIR_MORE;
}

/* No label of the security modules, which the node's own policy gives, and nothing that says what a
 * layer does to those below it. */
static bool repair_takes(const char *name)
{
	return (str_has_prefix(name, "user.") && !str_has_prefix(name, "user.overlay.")) ||
	       str_eq(name, "security.capability") || str_has_prefix(name, "system.posix_acl_");
}

static int repair_attributes(struct repair *m, int from_fd, int to_fd)
{
	ssize_t len = flistxattr(from_fd, m->names, sizeof(m->names));

	if (len < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *name = m->names; name < m->names + len; name += strlen(name) + 1) {
		ssize_t n;

		if (!repair_takes(name))
			continue;
		n = fgetxattr(from_fd, name, m->value, sizeof(m->value));
		if (n < 0 || fsetxattr(to_fd, name, m->value, (size_t)n, 0) < 0)
			return -errno;
	}
	return 0;
}

static int repair_copy(struct repair *m, int from_fd, int to_fd)
{
	struct timespec times[2];
	struct stat st;
	int r;

	if (fstat(from_fd, &st) < 0)
		return -errno;
	/* chown() clears set-id bits, an access list sets the mode: in this order both end right.
	 */
	if (fchown(to_fd, st.st_uid, st.st_gid) < 0)
		return -errno;
	r = repair_attributes(m, from_fd, to_fd);
	if (r < 0)
		return r;
	if (fchmod(to_fd, st.st_mode & 07777) < 0)
		return -errno;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	return futimens(to_fd, times) < 0 ? -errno : 0;
}

/* -ENOENT where there is none. What a link on the path leads to is in the same tree. */
static int repair_open(int root_fd, const char *path, int flags)
{
	int fd = rootfd_open(root_fd, *path ? path : "/", O_RDONLY | O_DIRECTORY | flags, 0);

	return fd == -ELOOP || fd == -ENOTDIR ? -ENOENT : fd;
}

/* One that lies on nothing is as mkdir(2) would have made it there: with the group of a directory
 * that hands its own on. The one above it has come before it. */
static int repair_group(struct repair *m, const char *path, int to_fd)
{
	char above[IMPLIED_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	_cleanup_fd_ int fd = -1;
	struct stat st;

	(void)str_copy(above, sizeof(above), path);
	above[slash ? slash - path : 0] = '\0';
	fd = repair_open(m->layer_fd, above, O_NOFOLLOW);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!(st.st_mode & S_ISGID))
		return 0;
	return fchown(to_fd, 0, st.st_gid) < 0 || fchmod(to_fd, 02755) < 0 ? -errno : 0;
}

/* Whether a directory above it hides what lies below. */
static bool repair_is_hidden(const struct repair *m, const char *path)
{
	char above[IMPLIED_PATH_MAX + 1];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_fd_ int fd = -1;

		(void)str_printf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		fd = repair_open(m->layer_fd, above, O_NOFOLLOW);
		if (fd >= 0 && fgetxattr(fd, REPAIR_OPAQUE, NULL, 0) > 0)
			return true;
	}
	return false;
}

static int repair_one(struct repair *m, const char *path)
{
	_cleanup_fd_ int to_fd = repair_open(m->layer_fd, path, O_NOFOLLOW);
	_cleanup_fd_ int from_fd = -1;
	int r = 0;

	if (to_fd < 0)
		return to_fd == -ENOENT ? 0 : to_fd;
	/* The archive has said something of it later; what the root is was known at the end. */
	if (*path && fremovexattr(to_fd, IMPLIED_MARK) < 0)
		return errno == ENODATA ? 0 : -errno;
	/* A link to a directory is hidden by this one, which looks as that then: as containerd and
	 * Docker have it. */
	from_fd = m->lower_fd >= 0 && !repair_is_hidden(m, path) ? repair_open(m->lower_fd, path, 0)
								 : -ENOENT;
	if (from_fd >= 0)
		r = repair_copy(m, from_fd, to_fd);
	else if (from_fd != -ENOENT)
		r = from_fd;
	else if (*path)
		r = repair_group(m, path, to_fd);
	return r;
}

struct repair_list {
	FILE *file;
	char *line;
	size_t size;
};

static void repair_list_done(struct repair_list *l)
{
	if (l->file)
		(void)fclose(l->file);
	free(l->line);
}

static int repair_each(struct repair *m, int list_fd, struct error *err)
{
	_cleanup_(repair_list_done) struct repair_list l = { .file = fdopen(list_fd, "r") };

	if (!l.file) {
		(void)fd_close(list_fd);
		return error_set(err, -errno, "read the list of its implied directories");
	}
	for (;;) {
		ssize_t n = getdelim(&l.line, &l.size, '\0', l.file);
		int r;

		if (n < 0)
			break;
		if (n > IMPLIED_PATH_MAX + 1)
			return error_set(err, -EPROTO, "the list of its implied directories");
		r = repair_one(m, l.line);
		if (r < 0)
			return error_set(err, r,
					 "directory \"%.200s\": attributes of what lies below",
					 l.line);
	}
	return ferror(l.file) ? error_set(err, -EIO, "read the list of its implied directories")
			      : 0;
}

int repair_run(int layer_fd, int lower_fd, struct error *err)
{
	struct repair *m = calloc(1, sizeof(*m));
	int list_fd, r;

	if (!m)
		return error_set(err, -ENOMEM, "read the list of its implied directories");
	m->layer_fd = layer_fd;
	m->lower_fd = lower_fd;
	list_fd = sysio_openat(layer_fd, IMPLIED_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	r = list_fd < 0 ? error_set(err, -errno, "open the list of its implied directories")
			: repair_each(m, list_fd, err);
	free(m);
	if (r < 0)
		return r;
	return sysio_unlinkat(layer_fd, IMPLIED_FILE, 0) < 0
		       ? error_set(err, -errno, "remove the list of its implied directories")
		       : 0;
}
