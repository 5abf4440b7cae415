/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/storage/mirror_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "isolate/mount/scratch_dir.h"

/*
 * Who swaps a directory makes the new one in full, swaps the link, and then removes the old one. So
 * what was read of the directory that the link named is all of it where the link names it still
 * when that is over; else it is read anew. Where there is no such link, a change while it is read
 * is found by the watches.
 */

#define MIRROR_LINK "..data"
#define MIRROR_ROOT "root"
#define MIRROR_TRIES 8
#define MIRROR_EVENTS                                                                              \
	(IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_ATTRIB |        \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

struct mirror_reading {
	int root_fd; /* to be listed */
	int inotify_fd;
	bool has_link;
	char link[NAME_MAX + 1]; /* what it names */
	struct mirror_watches *watches;
};

void mirror_watches_done(struct mirror_watches *w)
{
	free(w->wds);
	*w = (struct mirror_watches){ .wds = NULL };
}

/* ---- watching ---- */

static int mirror_watch(struct mirror_reading *m, const char *path)
{
	_cleanup_fd_ int fd = rootfd_open(m->root_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct mirror_watches *w = m->watches;
	char name[64];
	int wd, *wds;

	/* It went away meanwhile, as one that stays would have. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	wds = reallocarray(w->wds, w->n + 1, sizeof(*wds));
	if (!wds)
		return -ENOMEM;
	w->wds = wds;
	(void)str_printf(name, sizeof(name), "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(m->inotify_fd, name, MIRROR_EVENTS);
	if (wd < 0)
		return errno == ENOENT ? 0 : -errno;
	for (size_t i = 0; i < w->n; i++)
		if (w->wds[i] == wd)
			return 0;
	w->wds[w->n++] = wd;
	return 0;
}

static int mirror_on_directory(void *userdata, const char *below)
{
	struct mirror_reading *m = userdata;
	char path[TREE_PATH_MAX + sizeof(m->link)];

	if (!m->has_link && !*below)
		return 0;
	(void)str_printf(path, sizeof(path), "%s%s%s", m->has_link ? m->link : "",
			 m->has_link && *below ? "/" : "", below);
	return mirror_watch(m, path);
}

/* ---- what it is ---- */

/* 1: it names a directory beside it. 0: there is none. */
static int mirror_read_link(int root_fd, char ret[NAME_MAX + 1], struct error *err)
{
	ssize_t n = readlinkat(root_fd, MIRROR_LINK, ret, NAME_MAX);

	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0)
		return errno == EINVAL ? error_refuse(err, ERROR_PRECONDITION,
						      "its " MIRROR_LINK " is no link")
				       : error_set(err, -errno, "read its " MIRROR_LINK);
	ret[n] = '\0';
	if (n == NAME_MAX || strchr(ret, '/') || !str_has_prefix(ret, "..") || str_eq(ret, ".."))
		return error_refuse(err, ERROR_PRECONDITION,
				    "its " MIRROR_LINK " names no \"..NAME\" beside it");
	return 1;
}

/* What stands beside the link leads through it. */
static int mirror_check_name(const struct mirror_reading *m, const char *name, struct error *err)
{
	char target[sizeof(MIRROR_LINK "/")];
	ssize_t n;

	if (str_has_prefix(name, ".."))
		return m->has_link ? 0
				   : error_refuse(err, ERROR_PRECONDITION,
						  "%.80s in it begins with \"..\"", name);
	if (!m->has_link)
		return 0;
	n = readlinkat(m->root_fd, name, target, sizeof(target) - 1);
	if (n < 0 && errno == ENOENT)
		return 0;
	target[MAX(n, 0)] = '\0';
	return str_eq(target, MIRROR_LINK "/")
		       ? 0
		       : error_refuse(err, ERROR_PRECONDITION,
				      "%.80s in it does not lead through " MIRROR_LINK, name);
}

static int mirror_check(struct mirror_reading *m, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	struct statfs fs;
	struct stat st;
	int r;

	if (fstat(m->root_fd, &st) < 0 || fstatfs(m->root_fd, &fs) < 0)
		return error_set(err, -errno, "look at it");
	if (st.st_nlink == 0)
		return error_refuse(err, ERROR_NOT_FOUND, "it was removed");
	r = mirror_read_link(m->root_fd, m->link, err);
	if (r < 0)
		return r;
	m->has_link = r > 0;
	if (!m->has_link && fs.f_type != TMPFS_MAGIC)
		return error_refuse(err, ERROR_PRECONDITION,
				    "it is not in memory, and has no link " MIRROR_LINK);
	r = fd_list_dir(m->root_fd, &names);
	if (r < 0)
		return error_set(err, r, "list it");
	for (size_t i = 0; names && names[i] && r == 0; i++)
		r = mirror_check_name(m, names[i], err);
	return r;
}

/* ---- reading ---- */

static bool mirror_has_moved(const struct mirror_reading *m)
{
	char link[NAME_MAX + 1];

	return m->has_link &&
	       (mirror_read_link(m->root_fd, link, NULL) <= 0 || !str_eq(link, m->link));
}

/* 0: the link was swapped meanwhile. */
static int mirror_read_once(struct mirror_reading *m, struct tree_list *ret, struct error *err)
{
	static const struct tree_list_limits limits = { .n_max = VOLUME_FILES_MAX + 1,
							.bytes_max = VOLUME_BYTES_MAX };
	char path[sizeof(m->link) + 1];
	int r;

	r = mirror_watch(m, ".");
	if (r < 0)
		return error_set(err, r, "watch it");
	r = mirror_check(m, err);
	if (r < 0)
		return r;
	(void)str_printf(path, sizeof(path), "%s/", m->has_link ? m->link : ".");
	r = tree_list_read(ret, m->root_fd, path, &limits, mirror_on_directory, m, err);
	if (mirror_has_moved(m)) {
		tree_list_done(ret);
		return 0;
	}
	return r < 0 ? r : 1;
}

/* ---- one file ---- */

/* Of what is there: one that is cut meanwhile is shorter. */
static int mirror_fill_file(struct tree_item *item, int fd, uint64_t size)
{
	ssize_t n = 1;

	item->data = malloc(size + 1);
	if (!item->data)
		return -ENOMEM;
	while (n > 0 && item->entry.size < size) {
		n = read(fd, item->data + item->entry.size, size - item->entry.size);
		if (n > 0)
			item->entry.size += (uint64_t)n;
	}
	return n < 0 ? -errno : 0;
}

static int mirror_read_file(int file_fd, struct tree_list *ret, struct error *err)
{
	static const struct tree_entry dir = { .type = TREE_DIRECTORY, .mode = 0755 };
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	fd = rootfd_open_again(file_fd, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return error_set(err, fd, "open it");
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at it");
	if ((uint64_t)st.st_size > VOLUME_BYTES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "it is more than %llu bytes",
				    (unsigned long long)VOLUME_BYTES_MAX);
	ret->items = calloc(2, sizeof(*ret->items));
	if (!ret->items)
		return error_set(err, -ENOMEM, "read it");
	ret->n = 2;
	ret->items[0].entry = dir;
	ret->items[0].entry.path = strdup(MIRROR_ROOT);
	ret->items[1].entry = (struct tree_entry){
		.type = TREE_FILE,
		.path = strdup(MIRROR_ROOT "/" SCRATCH_DIR_FILE),
		.mode = st.st_mode & 07777,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.mtime = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec,
	};
	r = ret->items[0].entry.path && ret->items[1].entry.path ? 0 : -ENOMEM;
	if (r == 0)
		r = mirror_fill_file(&ret->items[1], fd, (uint64_t)st.st_size);
	ret->bytes = ret->items[1].entry.size;
	if (r < 0)
		tree_list_done(ret);
	return r < 0 ? error_set(err, r, "read it") : 0;
}

static bool mirror_is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int mirror_read(int dir_fd, unsigned flags, int inotify_fd, struct tree_list *ret_files,
		struct mirror_watches *ret_watches, struct error *err)
{
	struct mirror_reading m = { .inotify_fd = inotify_fd, .watches = ret_watches };
	_cleanup_fd_ int root_fd = rootfd_open(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);

	*ret_files = (struct tree_list)TREE_LIST_INIT;
	*ret_watches = (struct mirror_watches){ .wds = NULL };
	if (root_fd == -ENOTDIR && (flags & MIRROR_ONE_FILE) && mirror_is_file(dir_fd))
		return mirror_read_file(dir_fd, ret_files, err);
	if (root_fd == -ENOTDIR)
		return error_refuse(err, ERROR_PRECONDITION, "it is no directory");
	if (root_fd < 0)
		return error_set(err, root_fd, "open it");
	m.root_fd = root_fd;
	for (int i = 0; i < MIRROR_TRIES; i++) {
		int r = mirror_read_once(&m, ret_files, err);

		if (r != 0)
			return r < 0 ? r : 0;
		*err = (struct error)ERROR_INIT;
	}
	return error_set(err, -EAGAIN, "it changes faster than it can be read");
}
