/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/rootfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"

#define ROOTFD_TRIES 64  /* at once */
#define ROOTFD_RESTS 100 /* and then with a millisecond before each */
#define ROOTFD_DEPTH 8   /* levels of a tree that are open at once while it is removed */
#define ROOTFD_COMPONENT 256
#define ROOTFD_LINKS_MAX 40    /* on one path, as the kernel has it */
#define ROOTFD_LEVELS_MAX 4096 /* as many as a path of the kernel can name, and more */

/* The kernel gives up on a ".." while anything on the machine is renamed or mounted, which some
 * part of it may be doing for milliseconds. */
static int rootfd_openat2(int dir_fd, const char *path, struct open_how *how)
{
	how->flags |= O_CLOEXEC;
	for (int i = 0; i < ROOTFD_TRIES + ROOTFD_RESTS; i++) {
		long fd;

		if (i >= ROOTFD_TRIES)
			(void)poll(NULL, 0, 1);
		fd = syscall(SYS_openat2, dir_fd, path, how, sizeof(*how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int rootfd_open(int root_fd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	return rootfd_openat2(root_fd, path, &how);
}

int rootfd_open_beneath(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
	};

	return rootfd_openat2(root_fd, path, &how);
}

int rootfd_point(int dir_fd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return rootfd_openat2(dir_fd, path, &how);
}

static bool rootfd_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int rootfd_is_below(int dir_fd, int above_fd)
{
	_cleanup_fd_ int at_fd = -1;
	struct stat above, st, last = { .st_ino = 0 };

	if (fstat(above_fd, &above) < 0)
		return -errno;
	for (int i = 0; i < ROOTFD_LEVELS_MAX; i++) {
		int fd;

		if (fstat(at_fd >= 0 ? at_fd : dir_fd, &st) < 0)
			return -errno;
		if (rootfd_same(&st, &above))
			return 1;
		/* The root is its own parent. */
		if (i > 0 && rootfd_same(&st, &last))
			return 0;
		last = st;
		fd = rootfd_point(at_fd >= 0 ? at_fd : dir_fd, "..");
		if (fd < 0)
			return fd;
		(void)fd_close(at_fd);
		at_fd = fd;
	}
	return -ELOOP;
}

int rootfd_open_again(int path_fd, int flags)
{
	char name[64];
	int fd, r;

	r = str_printf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	if (r < 0)
		return r;
	fd = open(name, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int rootfd_open_regular(int root_fd, const char *path)
{
	static const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	_cleanup_fd_ int probe = rootfd_open(root_fd, path, O_PATH, 0);
	_cleanup_fd_ int fd = -1;
	struct stat seen, st;

	/*
	 * Look before opening: the open of a FIFO or of a device is an act already. Then open what
	 * was looked at, and not what may stand there meanwhile; by name only where /proc is
	 * missing.
	 */
	if (probe < 0)
		return probe;
	if (fstat(probe, &seen) < 0)
		return -errno;
	if (!S_ISREG(seen.st_mode))
		return -EINVAL;
	fd = rootfd_open_again(probe, flags);
	if (fd == -ENOENT)
		fd = rootfd_open(root_fd, path, flags, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != seen.st_dev || st.st_ino != seen.st_ino)
		return -EINVAL;
	return TAKE_FD(fd);
}

int rootfd_read(int root_fd, const char *path, size_t max, struct buf *b)
{
	_cleanup_fd_ int fd = rootfd_open_regular(root_fd, path);

	if (fd < 0)
		return fd;
	return fd_read_all(fd, max, b);
}

struct rootfd_making {
	int root_fd;
	int (*make)(int dir_fd, const char *name); /* the last component */
	char path[PATH_MAX];
	bool through;     /* links that lead nowhere */
	unsigned n_links; /* of them */
};

/*
 * Puts what a link says in the place of the link, which is path[begin, end): the kernel resolves
 * the new path in the root as it did the old one, and what is missing there can be made.
 */
static int rootfd_replace_link(struct rootfd_making *m, int dir_fd, const char *name, size_t begin,
			       size_t end)
{
	char target[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (++m->n_links > ROOTFD_LINKS_MAX)
		return -ELOOP;
	if (str_printf(path, sizeof(path), "%.*s%s%s", target[0] == '/' ? 0 : (int)begin, m->path,
		       target, m->path + end) < 0)
		return -ENAMETOOLONG;
	return str_copy(m->path, sizeof(m->path), path);
}

/* Makes the component path[begin, end), the one before which is there. 0; or 1 where it was a link,
 * so that the path is another one now. */
static int rootfd_make_component(struct rootfd_making *m, size_t begin, size_t end)
{
	_cleanup_fd_ int parent_fd = -1;
	bool last = !m->path[end + strspn(m->path + end, "/")];
	char name[ROOTFD_COMPONENT];
	char before = m->path[begin];
	int r;

	if (end - begin >= sizeof(name))
		return -ENAMETOOLONG;
	memcpy(name, m->path + begin, end - begin);
	name[end - begin] = '\0';
	if (str_eq(name, "..") || str_eq(name, "."))
		return -EINVAL;
	m->path[begin] = '\0';
	parent_fd = rootfd_open(m->root_fd, begin ? m->path : "/", O_PATH | O_DIRECTORY, 0);
	m->path[begin] = before;
	if (parent_fd < 0)
		return parent_fd;
	if (last)
		r = m->make(parent_fd, name);
	else
		r = sysio_mkdirat(parent_fd, name, 0755) < 0 ? -errno : 0;
	if (r != -EEXIST)
		return r;
	if (!m->through)
		return 0;
	r = rootfd_replace_link(m, parent_fd, name, begin, end);
	/* EINVAL: no link; somebody else has just made it. */
	return r == -EINVAL ? 0 : r < 0 ? r : 1;
}

/*
 * Walks to the last component, making what is missing on the way. Each is opened in the root again
 * with its prefix, so that a link in the middle stays inside; one that leads nowhere is followed by
 * making what it names.
 */
static int rootfd_make_all(struct rootfd_making *m)
{
	for (size_t end = 0; m->path[end];) {
		_cleanup_fd_ int fd = -1;
		size_t begin = end + strspn(m->path + end, "/");
		char behind;
		int r = 0;

		end = begin + strcspn(m->path + begin, "/");
		if (end == begin)
			break;
		behind = m->path[end];
		m->path[end] = '\0';
		fd = rootfd_open(m->root_fd, m->path, O_PATH, 0);
		m->path[end] = behind;
		if (fd == -ENOENT)
			r = rootfd_make_component(m, begin, end);
		else if (fd < 0)
			r = fd;
		if (r < 0)
			return r;
		if (r > 0)
			end = 0;
	}
	return rootfd_open(m->root_fd, m->path, O_PATH, 0);
}

static int rootfd_make(int root_fd, const char *path, bool through,
		       int (*make)(int dir_fd, const char *name))
{
	struct rootfd_making m = { .root_fd = root_fd, .make = make, .through = through };
	int r = str_copy(m.path, sizeof(m.path), path);

	if (r < 0)
		return -ENAMETOOLONG;
	r = rootfd_make_all(&m);
	/* The last one is a link that leads nowhere: the caller sees what it is. */
	return r == -ENOENT && !through ? rootfd_open(root_fd, path, O_PATH | O_NOFOLLOW, 0) : r;
}

static int rootfd_make_one_dir(int dir_fd, const char *name)
{
	return sysio_mkdirat(dir_fd, name, 0755) < 0 ? -errno : 0;
}

static int rootfd_open_plain(int dir_fd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return rootfd_openat2(dir_fd, path, &how);
}

/* One component, made where it is missing. */
static int rootfd_make_plain(int dir_fd, const char *name)
{
	int fd = rootfd_open_plain(dir_fd, name);

	if (fd != -ENOENT)
		return fd;
	if (sysio_mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return rootfd_open_plain(dir_fd, name);
}

int rootfd_make_dir_plain(int root_fd, const char *path)
{
	_cleanup_fd_ int at_fd = rootfd_open_plain(root_fd, path);
	char name[ROOTFD_COMPONENT];

	if (at_fd != -ENOENT)
		return at_fd >= 0 ? TAKE_FD(at_fd) : at_fd;
	for (;;) {
		size_t n;
		int fd;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 0)
			return at_fd >= 0 ? TAKE_FD(at_fd) : -ENOENT;
		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		if (str_eq(name, ".."))
			return -EINVAL;
		fd = rootfd_make_plain(at_fd >= 0 ? at_fd : root_fd, name);
		if (fd < 0)
			return fd;
		(void)fd_close(at_fd);
		at_fd = fd;
		path += n;
	}
}

static int rootfd_make_one_file(int dir_fd, const char *name)
{
	return sysio_mknodat(dir_fd, name, S_IFREG | 0644, 0) < 0 ? -errno : 0;
}

static int rootfd_put_new(int dir_fd, const char *name, mode_t mode)
{
	int fd = sysio_openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      mode);

	return fd < 0 ? -errno : fd;
}

static int rootfd_take_name(int dir_fd, const char *name)
{
	if (sysio_unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	return sysio_unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int rootfd_put(int dir_fd, const char *name, mode_t mode, const void *data, size_t len)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	if (str_empty(name) || strchr(name, '/') || str_eq(name, ".") || str_eq(name, ".."))
		return -EINVAL;
	/* O_EXCL: what is written to is new, whatever stands there meanwhile. */
	fd = rootfd_put_new(dir_fd, name, mode);
	if (fd == -EEXIST) {
		r = rootfd_take_name(dir_fd, name);
		if (r < 0)
			return r;
		fd = rootfd_put_new(dir_fd, name, mode);
	}
	if (fd < 0)
		return fd;
	r = fd_write_full(fd, data, len);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* The process may have a mask. */
	if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

static int rootfd_make_checked_dir(int root_fd, const char *path, bool through)
{
	_cleanup_fd_ int fd = rootfd_make(root_fd, path, through, rootfd_make_one_dir);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? TAKE_FD(fd) : -ENOTDIR;
}

int rootfd_make_dir(int root_fd, const char *path)
{
	return rootfd_make_checked_dir(root_fd, path, false);
}

int rootfd_make_dir_through(int root_fd, const char *path)
{
	return rootfd_make_checked_dir(root_fd, path, true);
}

static int rootfd_make_checked_file(int root_fd, const char *path, bool through)
{
	_cleanup_fd_ int fd = rootfd_make(root_fd, path, through, rootfd_make_one_file);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* A link that leads nowhere: there is no file, and none can be made. */
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	return S_ISDIR(st.st_mode) ? -EISDIR : TAKE_FD(fd);
}

int rootfd_make_file(int root_fd, const char *path)
{
	return rootfd_make_checked_file(root_fd, path, false);
}

int rootfd_make_file_through(int root_fd, const char *path)
{
	return rootfd_make_checked_file(root_fd, path, true);
}

/*
 * Removal. A tree may be deeper than a process may have descriptors or stack, so only ROOTFD_DEPTH
 * levels are walked at once; a directory at the last of them is moved up into the top directory,
 * whose entries are read again until a pass moves nothing. No step goes through "..", which
 * somebody else could make lead out of the tree.
 */
struct rootfd_removal {
	int top_fd;
	unsigned n_names; /* drawn for directories that were moved up */
	unsigned n_moved;
};

static int rootfd_move_up(struct rootfd_removal *rm, int dir_fd, const char *name)
{
	char to[32];
	int r;

	for (;;) {
		r = str_printf(to, sizeof(to), ".removed-%u", rm->n_names++);
		if (r < 0)
			return r;
		if (sysio_renameat(dir_fd, name, rm->top_fd, to) == 0)
			break;
		/* The tree has that name already (an empty directory would just be replaced). */
		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
			return -errno;
		if (rm->n_names == 0)
			return -EEXIST;
	}
	rm->n_moved++;
	return 0;
}

/* A directory of the same mount: also a bind mount of the same file system is not entered. */
static int rootfd_open_dir(int dir_fd, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};

	return rootfd_openat2(dir_fd, name, &how);
}

/* Removes what is no directory and returns 0, or opens the directory (*ret_fd is >= 0). */
static int rootfd_remove_or_open(int dir_fd, const char *name, int *ret_fd)
{
	int fd, r;

	*ret_fd = -1;
	if (sysio_unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	r = -errno;
	if (r != -EISDIR && r != -EPERM)
		return r;
	fd = rootfd_open_dir(dir_fd, name);
	if (fd == -ENOENT)
		return 0;
	/* A file that may not be removed (immutable), rather than a directory. */
	if (fd == -ENOTDIR || fd == -ELOOP)
		return r;
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static void rootfd_closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int rootfd_rmdir(int dir_fd, const char *name)
{
	return sysio_unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* Takes dir_fd over. */
static int rootfd_empty(struct rootfd_removal *rm, int dir_fd, unsigned depth)
{
	_cleanup_(rootfd_closedirp) DIR *dir = fdopendir(dir_fd);
	int r;

	if (!dir) {
		r = -errno;
		(void)fd_close(dir_fd);
		return r;
	}
	/* A copy of a descriptor goes on where the other one stopped reading. */
	rewinddir(dir);
	for (;;) {
		_cleanup_fd_ int fd = -1;
		const struct dirent *e;

		errno = 0;
		e = readdir(dir);
		if (!e)
			return -errno;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		r = rootfd_remove_or_open(dir_fd, e->d_name, &fd);
		if (r == 0 && fd < 0)
			continue;
		if (r == 0 && depth == ROOTFD_DEPTH) {
			r = rootfd_move_up(rm, dir_fd, e->d_name);
		} else if (r == 0) {
			r = rootfd_empty(rm, TAKE_FD(fd), depth + 1);
			if (r == 0)
				r = rootfd_rmdir(dir_fd, e->d_name);
		}
		if (r < 0)
			return r;
	}
}

int rootfd_remove_tree(int dir_fd, const char *name)
{
	struct rootfd_removal rm = { .top_fd = -1 };
	_cleanup_fd_ int fd = -1;
	const char *last = name_last(name);
	int r;

	if (!*last || str_eq(last, ".") || str_eq(last, ".."))
		return -EINVAL;
	r = rootfd_remove_or_open(dir_fd, name, &fd);
	if (r < 0 || fd < 0)
		return r;
	rm.top_fd = fd;
	do {
		int copy = fd_copy(fd);

		if (copy < 0)
			return copy;
		rm.n_moved = 0;
		r = rootfd_empty(&rm, copy, 1);
		if (r < 0)
			return r;
	} while (rm.n_moved);
	return rootfd_rmdir(dir_fd, name);
}
