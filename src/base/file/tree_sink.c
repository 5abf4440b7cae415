/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/file/tree.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "base/time/clock.h"

/*
 * An entry's directory is found from the top, name by name, each opened without following a link;
 * the last one that was found is kept, since entries come in order. A file or link is made under a
 * name of its own beside its place, and then renamed.
 */

#define TREE_SINK_LINKS_MAX 40 /* at the end of the destination, as the kernel has it */

#define TREE_TEMPORARY_SIZE (sizeof(".nacre-") + ID_LEN)

struct tree_sink {
	int top_fd;               /* the directory that the tree is put into */
	char name[NAME_MAX + 1];  /* of the tree's root there, where it becomes the destination */
	bool into;                /* it is put into the destination, which is top_fd */
	bool there;               /* something that is no directory stands at the destination */
	bool directory;           /* the destination must be one */
	bool begun;               /* there was an entry */
	bool dress;               /* tree_sink_dress_top() */
	char word[TREE_PATH_MAX]; /* the destination, as it was given */
	bool named;               /* `root` counts */
	char root[NAME_MAX + 1];  /* the tree's own name, whatever entries say; "": its content */
	int dir_fd;               /* the directory of the entry in hand */
	char dir[TREE_PATH_MAX];  /* its path, as entries have it */
	int file_fd;              /* of the file in hand, which is called `temporary` */
	char temporary[TREE_TEMPORARY_SIZE];
	char place[NAME_MAX + 1]; /* its name in the end */
	struct tree_entry entry;  /* of that file, without its strings */
	bool owner;
	struct tree_extent *map; /* of the file in hand; NULL: it has no holes */
	size_t n_map, extent;
	uint64_t at; /* bytes of that extent that are written */
};

/* Splits a path before its last name: its parent is *ret_dir, with one '/' in front ("/" where
 * there is none). */
static int tree_sink_split(const char *path, char ret_dir[TREE_PATH_MAX],
			   char ret_name[NAME_MAX + 1])
{
	const char *slash;
	int r;

	path += strspn(path, "/");
	slash = strrchr(path, '/');
	r = str_copy(ret_name, NAME_MAX + 1, slash ? slash + 1 : path);
	if (r == 0)
		r = str_printf(ret_dir, TREE_PATH_MAX, "/%.*s", slash ? (int)(slash - path) : 0,
			       path);
	if (str_empty(ret_name) || str_eq(ret_name, ".") || str_eq(ret_name, ".."))
		return -EINVAL;
	return r < 0 ? r : 0;
}

static int tree_sink_open_parent(struct tree_sink *s, int root_fd, const char *path,
				 struct error *err)
{
	char dir[TREE_PATH_MAX];
	int fd;

	if (tree_sink_split(path, dir, s->name) < 0)
		return error_field(err, ERROR_NOT_FOUND, "path", "there is no directory %.200s",
				   path);
	fd = rootfd_open(root_fd, dir, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return error_field(err, ERROR_NOT_FOUND, "path", "there is no directory %.200s",
				   dir);
	if (fd < 0)
		return error_set(err, fd, "path: open %.200s", dir);
	s->top_fd = fd;
	return 0;
}

/* What the link at the end of the path leads to takes the place of the path: what it names may be
 * missing yet. */
static int tree_sink_read_link(int link_fd, char path[TREE_PATH_MAX], struct error *err)
{
	char target[TREE_PATH_MAX], whole[TREE_PATH_MAX];
	const char *slash = strrchr(path, '/');
	ssize_t n = readlinkat(link_fd, "", target, sizeof(target) - 1);
	int r;

	if (n < 0)
		return error_set(err, -errno, "path: read the link %.200s", path);
	target[n] = '\0';
	r = str_printf(whole, sizeof(whole), "%.*s/%s",
		       target[0] == '/' || !slash ? 0 : (int)(slash - path), path, target);
	if (r < 0)
		return error_field(err, ERROR_INVALID, "path", "what %.200s leads to is too long",
				   path);
	return str_copy(path, TREE_PATH_MAX, whole);
}

/* What stands at the path, which is no directory. 1: it was a link, and the path is another one. */
static int tree_sink_look(struct tree_sink *s, int root_fd, char path[TREE_PATH_MAX],
			  struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open(root_fd, path, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return error_set(err, fd, "path: open %.200s", path);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "path: look at %.200s", path);
	if (S_ISLNK(st.st_mode)) {
		int r = tree_sink_read_link(fd, path, err);

		return r < 0 ? r : 1;
	}
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		return error_field(err, ERROR_PRECONDITION, "path", "%.200s is a device", path);
	/* A directory that was made this very moment is refused with the first entry. */
	s->there = true;
	return 0;
}

/* Takes '/' and "/." away from the end; whether there were any. */
static bool tree_sink_cut(char *path)
{
	size_t len = strlen(path), whole = len;

	/* Of "/." the dot goes first. */
	while (len > 1 && (path[len - 1] == '/' || (path[len - 1] == '.' && path[len - 2] == '/')))
		len--;
	path[len] = '\0';
	return len < whole;
}

static int tree_sink_find(struct tree_sink *s, int root_fd, const char *word, struct error *err)
{
	char path[TREE_PATH_MAX];
	int fd = rootfd_open(root_fd, word, O_RDONLY | O_DIRECTORY, 0), r = 1;

	if (fd >= 0) {
		s->into = true;
		s->top_fd = fd;
		return 0;
	}
	if (fd != -ENOENT && fd != -ENOTDIR)
		return error_set(err, fd, "path: open %.200s", word);
	if (str_copy(path, sizeof(path), word) < 0)
		return error_field(err, ERROR_INVALID, "path", "longer than %d bytes",
				   TREE_PATH_MAX - 1);
	for (int i = 0; r > 0; i++) {
		if (i > TREE_SINK_LINKS_MAX)
			return error_set(err, -ELOOP, "path: follow the link %.200s", word);
		s->directory |= tree_sink_cut(path);
		r = tree_sink_look(s, root_fd, path, err);
	}
	if (r < 0)
		return r;
	if (s->there && s->directory)
		return error_field(err, ERROR_PRECONDITION, "path", "%.200s is not a directory",
				   path);
	return tree_sink_open_parent(s, root_fd, path, err);
}

int tree_sink_open(struct tree_sink **ret, int root_fd, const char *path, struct error *err)
{
	_cleanup_(tree_sink_freep) struct tree_sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "write a tree");
	s->top_fd = s->dir_fd = s->file_fd = -1;
	(void)str_copy(s->word, sizeof(s->word), path);
	r = tree_sink_find(s, root_fd, path, err);
	if (r < 0)
		return r;
	if (tree_is_kernels(s->top_fd))
		return error_field(err, ERROR_PRECONDITION, "path",
				   "%.200s is on a file system of the kernel", path);
	*ret = TAKE_PTR(s);
	return 0;
}

int tree_sink_check_directory(const struct tree_sink *s, struct error *err)
{
	if (s->into)
		return 0;
	if (s->there)
		return error_field(err, ERROR_PRECONDITION, "path", "%.200s is not a directory",
				   s->word);
	return error_field(err, ERROR_NOT_FOUND, "path", "there is no directory %.200s", s->word);
}

int tree_sink_set_root(struct tree_sink *s, const char *name)
{
	s->named = true;
	return str_copy(s->root, sizeof(s->root), str_eq(name, ".") ? "" : name);
}

struct tree_sink *tree_sink_free(struct tree_sink *s)
{
	if (!s)
		return NULL;
	if (s->file_fd >= 0)
		(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
	(void)fd_close(s->file_fd);
	(void)fd_close(s->dir_fd);
	(void)fd_close(s->top_fd);
	free(s->map);
	free(s);
	return NULL;
}

void tree_sink_dress_top(struct tree_sink *s)
{
	s->dress = true;
}

int tree_check_path(const char *field, const char *path, struct error *err)
{
	size_t len = strlen(path), depth = 0;

	if (len == 0 || len >= TREE_PATH_MAX)
		return error_field(err, ERROR_INVALID, field, "1 to %d bytes, not %zu",
				   TREE_PATH_MAX - 1, len);
	if (str_eq(path, "."))
		return 0;
	for (const char *at = path + (path[0] == '.' && path[1] == '/' ? 2 : 0);; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || n > NAME_MAX || (n == 1 && at[0] == '.') ||
		    (n == 2 && at[0] == '.' && at[1] == '.'))
			return error_field(err, ERROR_INVALID, field,
					   "\"%.200s\" is no relative path of plain names", path);
		if (++depth > TREE_DEPTH_MAX + 1)
			return error_field(err, ERROR_INVALID, field, "deeper than %d directories",
					   TREE_DEPTH_MAX);
		at += n;
		if (!*at)
			return 0;
	}
}

/* Where an entry is put, below top_fd: its path with the new name of the tree's root. "": it is
 * top_fd itself. */
static int tree_sink_place(const struct tree_sink *s, const char *field, const char *path,
			   char ret[TREE_PATH_MAX], struct error *err)
{
	size_t first = strcspn(path, "/");
	bool content = first == 1 && path[0] == '.';
	int r = tree_check_path(field, path, err);

	if (r < 0)
		return r;
	if (s->into && !s->named && !content)
		r = str_copy(ret, TREE_PATH_MAX, path);
	else if (s->into && !*s->root)
		r = str_copy(ret, TREE_PATH_MAX, path + first + (path[first] == '/'));
	else
		r = str_printf(ret, TREE_PATH_MAX, "%s%s", s->into ? s->root : s->name,
			       path + first);
	return r < 0 ? error_field(err, ERROR_INVALID, field, "too long") : 0;
}

/* Cuts the last name off a place; the directory before it, "" for the top. */
static const char *tree_sink_part(char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');

	*ret_name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	return slash ? path : "";
}

/* Opens the directory `dir` (relative; "" for the top) name by name. */
static int tree_sink_walk(int top_fd, const char *dir)
{
	_cleanup_fd_ int fd = fd_copy(top_fd);

	for (const char *at = dir; fd >= 0 && *at;) {
		size_t n = strcspn(at, "/");
		char name[NAME_MAX + 1];
		int next;

		memcpy(name, at, n);
		name[n] = '\0';
		next = rootfd_open(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		(void)fd_close(fd);
		fd = next;
		at += n + (at[n] == '/');
	}
	return TAKE_FD(fd);
}

/* And keeps it. */
static int tree_sink_enter(struct tree_sink *s, const char *dir, struct error *err)
{
	int fd;

	if (s->dir_fd >= 0 && str_eq(s->dir, dir))
		return 0;
	fd = tree_sink_walk(s->top_fd, dir);
	if (fd < 0)
		return error_set(err, fd, "open the directory %.300s", dir);
	(void)str_copy(s->dir, sizeof(s->dir), dir);
	(void)fd_close(s->dir_fd);
	s->dir_fd = fd;
	return 0;
}

struct tree_sink_times {
	struct timespec times[2];
};

static struct tree_sink_times tree_sink_times(const struct tree_entry *e)
{
	return (struct tree_sink_times){ {
		{ .tv_nsec = UTIME_NOW },
		{ .tv_sec = (time_t)(e->mtime / NSEC_PER_SEC),
		  .tv_nsec = (long)(e->mtime % NSEC_PER_SEC) },
	} };
}

static int tree_sink_dress(int fd, const struct tree_entry *e, bool owner)
{
	const struct tree_sink_times t = tree_sink_times(e);

	/* Whoever is given a file takes its set-user-ID bit off, so the mode comes last. */
	if (owner && fchown(fd, e->uid, e->gid) < 0)
		return -errno;
	if (fchmod(fd, e->mode & 07777) < 0)
		return -errno;
	return futimens(fd, t.times) < 0 ? -errno : 0;
}

static int tree_sink_name_temporary(struct tree_sink *s)
{
	char id[ID_SIZE];
	int r = id_new(id);

	return r < 0 ? r : str_printf(s->temporary, sizeof(s->temporary), ".nacre-%s", id);
}

static int tree_sink_directory(struct tree_sink *s, const struct tree_entry *e, bool owner,
			       struct error *err)
{
	_cleanup_fd_ int fd = -1;
	bool made = sysio_mkdirat(s->dir_fd, s->place, 0700) == 0;
	int r = made || errno == EEXIST ? 0 : -errno;

	if (r == 0) {
		fd = rootfd_open(s->dir_fd, s->place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		r = fd < 0 ? fd : 0;
	}
	if (r == -ENOTDIR || r == -ELOOP)
		return error_refuse(err, ERROR_PRECONDITION,
				    "cannot put the directory %.300s in the place of what is not a "
				    "directory",
				    e->path);
	/* One that was there keeps its own. */
	if (r == 0 && made)
		r = tree_sink_dress(fd, e, owner);
	return r < 0 ? error_set(err, r, "make the directory %.300s", e->path) : 0;
}

static int tree_sink_top(struct tree_sink *s, const struct tree_entry *e, bool owner,
			 struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (!s->dress || !s->into)
		return 0;
	fd = rootfd_open(s->top_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	r = fd < 0 ? fd : tree_sink_dress(fd, e, owner);
	return r < 0 ? error_set(err, r, "give %.200s its mode and owner", s->word) : 0;
}

/* Gives what was made under the temporary name its own. */
static int tree_sink_put(struct tree_sink *s, struct error *err)
{
	int r = sysio_renameat(s->dir_fd, s->temporary, s->dir_fd, s->place) < 0 ? -errno : 0;

	if (r < 0)
		(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
	if (r == -EISDIR || r == -ENOTEMPTY || r == -EEXIST)
		return error_refuse(err, ERROR_PRECONDITION,
				    "cannot put %.200s%s%.200s in the place of a directory", s->dir,
				    *s->dir ? "/" : "", s->place);
	return r < 0 ? error_set(err, r, "put %.200s into %.200s", s->place,
				 *s->dir ? s->dir : "its directory")
		     : 0;
}

static int tree_sink_link(struct tree_sink *s, const struct tree_entry *e, bool owner,
			  struct error *err)
{
	int r = tree_sink_name_temporary(s);

	if (str_empty(e->target) || strlen(e->target) >= TREE_PATH_MAX)
		return error_field(err, ERROR_INVALID, "entry.link_target", "1 to %d bytes",
				   TREE_PATH_MAX - 1);
	if (r >= 0 && sysio_symlinkat(e->target, s->dir_fd, s->temporary) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, r, "make the link %.300s", e->path);
	r = 0;
	if (owner && fchownat(s->dir_fd, s->temporary, e->uid, e->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r < 0) {
		(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
		return error_set(err, r, "make the link %.300s", e->path);
	}
	return tree_sink_put(s, err);
}

/* The same for what cannot be opened: by its place among the descriptors of this process. */
static int tree_sink_dress_fifo(int path_fd, const struct tree_entry *e, bool owner)
{
	const struct tree_sink_times t = tree_sink_times(e);
	char name[64];
	struct stat st;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	/* Somebody else has put another thing there. */
	if (!S_ISFIFO(st.st_mode))
		return -EEXIST;
	(void)str_printf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	if (owner && fchownat(path_fd, "", e->uid, e->gid, AT_EMPTY_PATH) < 0)
		return -errno;
	if (fchmodat(AT_FDCWD, name, e->mode & 07777, 0) < 0)
		return -errno;
	return utimensat(AT_FDCWD, name, t.times, 0) < 0 ? -errno : 0;
}

static int tree_sink_fifo(struct tree_sink *s, const struct tree_entry *e, bool owner,
			  struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r = tree_sink_name_temporary(s);

	if (r >= 0 && sysio_mknodat(s->dir_fd, s->temporary, S_IFIFO | 0600, 0) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, r, "make the FIFO %.300s", e->path);
	fd = rootfd_open(s->dir_fd, s->temporary, O_PATH | O_NOFOLLOW, 0);
	r = fd < 0 ? fd : tree_sink_dress_fifo(fd, e, owner);
	if (r < 0) {
		(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
		return error_set(err, r, "make the FIFO %.300s", e->path);
	}
	return tree_sink_put(s, err);
}

/* Another name for a file of this tree, which is found as an entry's place is: through no link, and
 * not outside of the destination. */
static int tree_sink_hard_link(struct tree_sink *s, const struct tree_entry *e, struct error *err)
{
	char path[TREE_PATH_MAX];
	const char *name, *dir;
	_cleanup_fd_ int dir_fd = -1;
	struct stat st;
	int r = tree_sink_place(s, "entry.link_target", e->target ?: "", path, err);

	if (r < 0)
		return r;
	dir = tree_sink_part(path, &name);
	if (!*name)
		return error_field(err, ERROR_INVALID, "entry.link_target", "\"%.200s\"",
				   e->target);
	dir_fd = tree_sink_walk(s->top_fd, dir);
	r = dir_fd < 0 ? dir_fd : tree_sink_name_temporary(s);
	if (r >= 0 && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r >= 0 && !S_ISREG(st.st_mode))
		return error_field(err, ERROR_INVALID, "entry.link_target", "%.200s is not a file",
				   e->target);
	if (r >= 0 && sysio_linkat(dir_fd, name, s->dir_fd, s->temporary) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, r, "make %.200s a hard link to %.200s", e->path, e->target);
	r = tree_sink_put(s, err);
	/* A rename does nothing where both are names of one file already. */
	(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
	return r;
}

/* A copy of where its data belong. */
static int tree_sink_take_map(struct tree_sink *s, const struct tree_entry *e, struct error *err)
{
	uint64_t end = 0;

	free(s->map);
	s->map = NULL;
	s->n_map = s->extent = 0;
	s->at = 0;
	if (!e->map)
		return 0;
	for (size_t i = 0; i < e->n_map; i++) {
		if (e->n_map > TREE_EXTENTS_MAX || e->size > INT64_MAX || e->map[i].at < end ||
		    e->map[i].at > e->size || e->map[i].len > e->size - e->map[i].at)
			return error_field(err, ERROR_INVALID, "entry.map",
					   "its extents are out of order, too many or past the end "
					   "of the file");
		end = e->map[i].at + e->map[i].len;
	}
	s->map = calloc(e->n_map + 1, sizeof(*s->map));
	if (!s->map)
		return error_set(err, -ENOMEM, "make the file %.300s", e->path);
	if (e->n_map > 0)
		memcpy(s->map, e->map, e->n_map * sizeof(*s->map));
	s->n_map = e->n_map;
	return 0;
}

static int tree_sink_file(struct tree_sink *s, const struct tree_entry *e, bool owner,
			  struct error *err)
{
	int r = tree_sink_take_map(s, e, err);
	int fd = -1;

	if (r < 0)
		return r;
	r = tree_sink_name_temporary(s);
	if (r >= 0)
		fd = sysio_openat(s->dir_fd, s->temporary,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, r < 0 ? r : -errno, "make the file %.300s", e->path);
	s->file_fd = fd;
	s->entry = *e;
	s->entry.path = s->entry.target = s->entry.reason = NULL;
	s->entry.map = NULL;
	s->owner = owner;
	return 0;
}

int tree_sink_finish(struct tree_sink *s, struct error *err)
{
	int r = 0;

	if (s->file_fd < 0)
		return 0;
	if (s->map && sysio_ftruncate(s->file_fd, (off_t)s->entry.size) < 0)
		r = -errno;
	if (r == 0)
		r = tree_sink_dress(s->file_fd, &s->entry, s->owner);
	s->file_fd = fd_close(s->file_fd);
	if (r == 0)
		return tree_sink_put(s, err);
	(void)sysio_unlinkat(s->dir_fd, s->temporary, 0);
	return error_set(err, r, "complete the file %.200s", s->place);
}

/* What the destination allows the root of the tree to be. */
static int tree_sink_begin(struct tree_sink *s, const struct tree_entry *e, struct error *err)
{
	bool directory = e->type == TREE_DIRECTORY;

	s->begun = true;
	if (s->into)
		return 0;
	if (directory && s->there)
		return error_field(err, ERROR_PRECONDITION, "path",
				   "cannot copy a directory to %.200s, which is not a directory",
				   s->word);
	if (!directory && s->directory)
		return error_field(err, ERROR_NOT_FOUND, "path", "there is no directory %.200s",
				   s->word);
	return 0;
}

static int tree_sink_make(struct tree_sink *s, const struct tree_entry *e, bool owner,
			  struct error *err)
{
	switch (e->type) {
	case TREE_FILE:
		return tree_sink_file(s, e, owner, err);
	case TREE_DIRECTORY:
		return tree_sink_directory(s, e, owner, err);
	case TREE_LINK:
		return tree_sink_link(s, e, owner, err);
	case TREE_HARD_LINK:
		return tree_sink_hard_link(s, e, err);
	case TREE_FIFO:
		return tree_sink_fifo(s, e, owner, err);
	case TREE_OTHER:
	default:
		return error_field(err, ERROR_INVALID, "entry.type",
				   "neither a file nor a directory, a link or a FIFO");
	}
}

int tree_sink_entry(struct tree_sink *s, const struct tree_entry *e, bool owner, struct error *err)
{
	char path[TREE_PATH_MAX];
	const char *name, *dir;
	int r;

	r = tree_sink_finish(s, err);
	if (r == 0)
		r = tree_sink_place(s, "entry.path", e->path, path, err);
	if (r == 0 && !s->begun)
		r = tree_sink_begin(s, e, err);
	if (r < 0)
		return r;
	if (!*path && e->type == TREE_DIRECTORY)
		return tree_sink_top(s, e, owner, err);
	dir = tree_sink_part(path, &name);
	r = *name ? str_copy(s->place, sizeof(s->place), name) : -EINVAL;
	if (r < 0)
		return error_field(err, ERROR_INVALID, "entry.path", "\"%.200s\"", e->path);
	r = tree_sink_enter(s, dir, err);
	return r < 0 ? r : tree_sink_make(s, e, owner, err);
}

/* The file's position is where the extent in hand goes on. */
static int tree_sink_write_mapped(struct tree_sink *s, const uint8_t *data, size_t len)
{
	while (len > 0) {
		const struct tree_extent *e = &s->map[s->extent];
		size_t n;
		int r;

		if (s->extent == s->n_map)
			return -EOVERFLOW;
		n = (size_t)MIN(e->len - s->at, (uint64_t)len);
		if (n == 0) {
			s->extent++;
			s->at = 0;
			continue;
		}
		if (s->at == 0 && lseek(s->file_fd, (off_t)e->at, SEEK_SET) < 0)
			return -errno;
		r = fd_write_full(s->file_fd, data, n);
		if (r < 0)
			return r;
		s->at += n;
		data += n;
		len -= n;
	}
	return 0;
}

int tree_sink_write(struct tree_sink *s, const void *data, size_t len, struct error *err)
{
	int r;

	if (s->file_fd < 0)
		return error_field(err, ERROR_INVALID, "data", "no file was begun");
	r = s->map ? tree_sink_write_mapped(s, data, len) : fd_write_full(s->file_fd, data, len);
	if (r == -EOVERFLOW && s->map)
		return error_field(err, ERROR_INVALID, "data",
				   "there is more than its extents have room for");
	return r < 0 ? error_set(err, r, "write %.300s", s->place) : 0;
}
