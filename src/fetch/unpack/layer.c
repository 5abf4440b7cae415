/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An entry is made in three steps: its place is found (place.h), what stands there and may not stay
 * is removed, and the new thing is made by the directory's descriptor and a single component, so
 * that no link of the archive is ever followed in the last step. A file is created with O_EXCL:
 * nothing that is there already is written to. The descriptor of the directory is kept for the
 * entries behind: what an entry makes cannot change what a path means that could be resolved
 * before, what it removes can, and then the path is resolved anew.
 *
 * The layer is unpacked alone, not upon the layers below it, and its whiteouts are made when all
 * its entries are (whiteout.h).
 */

#include "fetch/unpack/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/unpack/attr.h"
#include "fetch/unpack/whiteout.h"

#define WHITEOUT_AUFS ".wh..wh."
#define LAYER_ID_MAX 0xfffffffeLL
/* Bytes that the disk is set to work on at once, and at a file's end, where the calls cost more
 * than they bring for less. */
#define LAYER_PUSH (8 << 20)
#define LAYER_PUSH_LAST (128 << 10)

struct layer_item {
	struct archive *archive;
	struct archive_entry *entry;
	char path[PLACE_PATH_MAX + 1];
	struct place place; /* its descriptor is the layer's */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec times[2];
};

static int layer_fail(const struct layer_item *i, int r, const char *what, struct error *err)
{
	return place_fail(err, r, what, i->path);
}

/* ---- the directory of an entry ---- */

static void layer_set_dir(struct layer *l, int dir_fd, const char *path)
{
	(void)fd_close(l->dir_fd);
	l->dir_fd = dir_fd;
	l->dir_known = str_copy(l->dir_path, sizeof(l->dir_path), path) == 0;
}

/* Whether the directory of path, which ends before its last component, is the one that was used
 * last. */
static bool layer_is_in_dir(const struct layer *l, const char *path, size_t len)
{
	return l->dir_known && strncmp(l->dir_path, path, len) == 0 && !l->dir_path[len];
}

static int layer_find(struct layer *l, struct layer_item *i, struct error *err)
{
	const char *slash = strrchr(i->path, '/');
	size_t len = slash ? (size_t)(slash - i->path) : 0;
	int r;

	if (*i->path && layer_is_in_dir(l, i->path, len)) {
		i->place.dir_fd = l->dir_fd;
		r = str_copy(i->place.name, sizeof(i->place.name), slash ? slash + 1 : i->path);
		return r < 0 ? layer_fail(i, r, "take its name", err) : 0;
	}
	r = place_find(l->root_fd, i->path, false, &i->place, err);
	if (r == -ENOENT) {
		r = implied_make(&l->implied, i->path, IMPLIED_BY_ENTRY, err);
		if (r == 0)
			r = place_find(l->root_fd, i->path, true, &i->place, err);
	}
	if (r == 0 && i->place.dir_fd >= 0) {
		char path[PLACE_PATH_MAX + 1];

		(void)str_printf(path, sizeof(path), "%.*s", (int)len, i->path);
		layer_set_dir(l, i->place.dir_fd, path);
	}
	return r;
}

/* ---- what all kinds have ---- */

/* The owner and the mode, where they are not what the kernel gave already. */
static int layer_set_owner(const struct layer_item *i, int fd, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return layer_fail(i, -errno, "look at what was made", err);
	/* chown() clears the set-id bits and capabilities, so it comes first. */
	if (st.st_uid != i->uid || st.st_gid != i->gid) {
		if (fchown(fd, i->uid, i->gid) < 0)
			return layer_fail(i, -errno, "set the owner", err);
		st.st_mode &= 0777;
	}
	if ((st.st_mode & 07777) != i->mode && fchmod(fd, i->mode) < 0)
		return layer_fail(i, -errno, "set the mode", err);
	return 0;
}

static int layer_finish_fd(struct layer *l, const struct layer_item *i, int fd, struct error *err)
{
	int r = layer_set_owner(i, fd, err);

	if (r < 0)
		return r;
	r = attr_apply(i->entry, fd, &l->n_skipped, err);
	return r < 0 ? error_wrap(err, r, "entry \"%.200s\"", i->path) : 0;
}

static int layer_finish_name(const struct layer_item *i, struct error *err)
{
	const struct place *p = &i->place;
	struct stat st;

	if (fstatat(p->dir_fd, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return layer_fail(i, -errno, "look at what was made", err);
	if ((st.st_uid != i->uid || st.st_gid != i->gid) &&
	    fchownat(p->dir_fd, p->name, i->uid, i->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return layer_fail(i, -errno, "set the owner", err);
	if (utimensat(p->dir_fd, p->name, i->times, AT_SYMLINK_NOFOLLOW) < 0)
		return layer_fail(i, -errno, "set the time", err);
	return 0;
}

/* ---- what stands there already ---- */

/* Removes what the new entry replaces; a directory stays for a directory. */
static int layer_clear(struct layer *l, const struct layer_item *i, bool for_dir, struct error *err)
{
	struct stat st;
	int r;

	if (i->place.dir_fd < 0)
		return for_dir ? 0 : layer_fail(i, -EISDIR, "take the place of the root", err);
	if (fstatat(i->place.dir_fd, i->place.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : layer_fail(i, -errno, "look at what is there", err);
	if (for_dir && S_ISDIR(st.st_mode))
		return 0;
	l->dir_known = false;
	r = rootfd_remove_tree(i->place.dir_fd, i->place.name);
	return r < 0 ? layer_fail(i, r, "replace what is there", err) : 0;
}

/* ---- the kinds ---- */

/*
 * Sets the disk to work on what is written already, where it is `least` bytes: all of a layer is
 * synced behind its last entry, and the disk would idle until then. Whether it could is told by
 * that sync.
 */
static void layer_push(int fd, int64_t *pushed, int64_t pos, int64_t least)
{
	if (pos - *pushed < least)
		return;
	(void)sync_file_range(fd, *pushed, pos - *pushed, SYNC_FILE_RANGE_WRITE);
	*pushed = pos;
}

static int layer_add_data(struct layer *l, const struct layer_item *i, int fd, struct error *err)
{
	int64_t size = archive_entry_size(i->entry), pos = 0, pushed = 0;

	if (size < 0 || (uint64_t)size > l->max_bytes)
		return error_refuse(err, ERROR_EXHAUSTED, "entry \"%.200s\": the file is too long",
				    i->path);
	for (;;) {
		const void *data;
		size_t len;
		int64_t at;
		int r;

		r = archive_read_data_block(i->archive, &data, &len, &at);
		if (r == ARCHIVE_EOF)
			break;
		if (r != ARCHIVE_OK)
			return error_refuse(err, ERROR_INVALID, "entry \"%.200s\": %.200s", i->path,
					    archive_error_string(i->archive));
		l->n_bytes += len;
		if (at < 0 || (uint64_t)at + len > l->max_bytes || l->n_bytes > l->max_bytes)
			return error_refuse(err, ERROR_EXHAUSTED,
					    "entry \"%.200s\": the layer is too big", i->path);
		/* Maps of the forms that tarscan.h does not know. */
		if (at < pos)
			return error_refuse(err, ERROR_INVALID,
					    "entry \"%.200s\": the pieces of a sparse file overlap "
					    "or are not sorted",
					    i->path);
		/* What lies between two blocks of a sparse file stays a hole. */
		if (at != pos && lseek(fd, at, SEEK_SET) < 0)
			return layer_fail(i, -errno, "write", err);
		r = fd_write_full(fd, data, len);
		if (r < 0)
			return layer_fail(i, r, "write", err);
		pos = at + (int64_t)len;
		layer_push(fd, &pushed, pos, LAYER_PUSH);
	}
	layer_push(fd, &pushed, pos, LAYER_PUSH_LAST);
	if (pos != size && sysio_ftruncate(fd, size) < 0)
		return layer_fail(i, -errno, "write", err);
	return 0;
}

static int layer_create(const struct layer_item *i)
{
	return sysio_openat(i->place.dir_fd, i->place.name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, i->mode & 0777);
}

/* Nothing is there in most cases, so that is tried first. */
static int layer_open_file(struct layer *l, const struct layer_item *i, struct error *err)
{
	int fd = -1, r;

	errno = EEXIST;
	if (i->place.dir_fd >= 0)
		fd = layer_create(i);
	if (fd < 0 && errno == EEXIST) {
		r = layer_clear(l, i, false, err);
		if (r < 0)
			return r;
		fd = layer_create(i);
	}
	return fd < 0 ? layer_fail(i, -errno, "make the file", err) : fd;
}

static int layer_add_file(struct layer *l, const struct layer_item *i, struct error *err)
{
	_cleanup_fd_ int fd = layer_open_file(l, i, err);
	int r;

	if (fd < 0)
		return fd;
	r = layer_add_data(l, i, fd, err);
	if (r == 0)
		r = layer_finish_fd(l, i, fd, err);
	if (r < 0)
		return r;
	if (futimens(fd, i->times) < 0)
		return layer_fail(i, -errno, "set the time", err);
	return 0;
}

static int layer_open_dir(struct layer *l, const struct layer_item *i, struct error *err)
{
	int fd, r;

	if (i->place.dir_fd < 0) {
		l->implied.root_given = true;
		return rootfd_open(l->root_fd, "/", O_RDONLY | O_DIRECTORY, 0);
	}
	if (sysio_mkdirat(i->place.dir_fd, i->place.name, i->mode & 0777) < 0) {
		if (errno != EEXIST)
			return layer_fail(i, -errno, "make the directory", err);
		r = layer_clear(l, i, true, err);
		if (r < 0)
			return r;
		if (sysio_mkdirat(i->place.dir_fd, i->place.name, i->mode & 0777) < 0 &&
		    errno != EEXIST)
			return layer_fail(i, -errno, "make the directory", err);
	}
	fd = sysio_openat(i->place.dir_fd, i->place.name,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd < 0 ? layer_fail(i, -errno, "open the directory", err) : fd;
}

/* What it gets when all is in it. */
static int layer_note_dir(struct layer *l, const struct layer_item *i, struct error *err)
{
	struct attr_acl acl;
	size_t len = attr_default_acl(i->entry, &acl, &l->n_skipped);

	return later_add(&l->later, i->path, &i->times[1], &acl, len, err);
}

static int layer_add_dir(struct layer *l, const struct layer_item *i, struct error *err)
{
	_cleanup_fd_ int fd = layer_open_dir(l, i, err);
	int r;

	if (fd < 0)
		return fd;
	r = implied_given(&l->implied, fd);
	if (r < 0)
		return layer_fail(i, r, "unmark the directory", err);
	r = layer_finish_fd(l, i, fd, err);
	if (r == 0)
		r = layer_note_dir(l, i, err);
	/* Its own entries are next, as a rule. */
	if (r == 0)
		layer_set_dir(l, TAKE_FD(fd), i->path);
	return r;
}

static int layer_add_symlink(const struct layer_item *i, struct error *err)
{
	const char *target = archive_entry_symlink(i->entry);

	if (str_empty(target) || strlen(target) > PLACE_PATH_MAX)
		return error_refuse(
			err, ERROR_INVALID,
			"entry \"%.200s\": a symbolic link needs a target of 1 to %d bytes",
			i->path, PLACE_PATH_MAX);
	if (sysio_symlinkat(target, i->place.dir_fd, i->place.name) < 0)
		return layer_fail(i, -errno, "make the symbolic link", err);
	return layer_finish_name(i, err);
}

static int layer_add_fifo(const struct layer_item *i, struct error *err)
{
	int r;

	if (sysio_mknodat(i->place.dir_fd, i->place.name, S_IFIFO | 0600, 0) < 0)
		return layer_fail(i, -errno, "make the FIFO", err);
	r = layer_finish_name(i, err);
	if (r < 0)
		return r;
	if (fchmodat(i->place.dir_fd, i->place.name, i->mode, 0) < 0)
		return layer_fail(i, -errno, "set the mode", err);
	return 0;
}

/* ---- hard links ---- */

static bool layer_same(const struct place *a, const struct place *b, struct stat *ret_a)
{
	struct stat st;

	if (fstatat(a->dir_fd, a->name, ret_a, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(b->dir_fd, b->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return st.st_dev == ret_a->st_dev && st.st_ino == ret_a->st_ino;
}

/* The link gets the target's owner and mode: what the entry says of them is the target's, or a
 * trick. */
static int layer_add_hardlink(struct layer *l, const struct layer_item *i, struct error *err)
{
	_cleanup_(place_done) struct place target = PLACE_INIT;
	char path[PLACE_PATH_MAX + 1];
	struct stat st = { .st_mode = 0 };
	int r;

	r = place_normalise(path, archive_entry_hardlink(i->entry), err);
	if (r == 0)
		r = place_find(l->root_fd, path, false, &target, err);
	if (r == -ENOENT)
		return layer_fail(i, r, "find the target of the hard link", err);
	if (r < 0)
		return error_wrap(err, r, "entry \"%.200s\": the target of the hard link", i->path);
	if (target.dir_fd < 0 || i->place.dir_fd < 0)
		return layer_fail(i, -EISDIR, "make a hard link", err);
	if (layer_same(&target, &i->place, &st))
		return 0;
	if (st.st_mode == 0)
		return layer_fail(i, -ENOENT, "find the target of the hard link", err);
	if (S_ISDIR(st.st_mode))
		return layer_fail(i, -EPERM, "make a hard link to this kind of file", err);
	r = layer_clear(l, i, false, err);
	if (r < 0)
		return r;
	/* Without AT_SYMLINK_FOLLOW a link to a symbolic link is a second name of the link itself.
	 */
	if (linkat(target.dir_fd, target.name, i->place.dir_fd, i->place.name, 0) < 0)
		return layer_fail(i, -errno, "make the hard link", err);
	return 0;
}

/* ---- whiteouts ---- */

/* Whether a component of the path begins with the prefix. */
static bool layer_has_component(const char *path, const char *prefix)
{
	for (;;) {
		const char *slash;

		if (str_has_prefix(path, prefix))
			return true;
		slash = strchr(path, '/');
		if (!slash)
			return false;
		path = slash + 1;
	}
}

static bool layer_is_whiteout_name(const char *name)
{
	const char *target = name + strlen(WHITEOUT_PREFIX);

	return str_eq(name, WHITEOUT_OPAQUE) ||
	       (*target && !str_eq(target, ".") && !str_eq(target, "..") &&
		!str_has_prefix(target, WHITEOUT_PREFIX));
}

/* 1: the entry was a whiteout, or bookkeeping of aufs, and is dealt with. */
static int layer_add_whiteout(struct layer *l, const struct layer_item *i, struct error *err)
{
	const char *name = strrchr(i->path, '/');
	int r;

	name = name ? name + 1 : i->path;
	if (!layer_has_component(i->path, WHITEOUT_PREFIX))
		return 0;
	if (layer_has_component(i->path, WHITEOUT_AUFS) && !str_eq(name, WHITEOUT_OPAQUE)) {
		l->n_skipped++;
		return 1;
	}
	if (!str_has_prefix(name, WHITEOUT_PREFIX))
		return error_refuse(err, ERROR_INVALID,
				    "entry \"%.200s\": a whiteout cannot be a directory", i->path);
	if (!layer_is_whiteout_name(name))
		return error_refuse(err, ERROR_INVALID, "entry \"%.200s\": a whiteout of no name",
				    i->path);
	r = whiteout_note(&l->whiteouts, i->path, err);
	return r < 0 ? r : 1;
}

/* ---- one entry ---- */

static int layer_read_item(struct layer_item *i, struct error *err)
{
	long mtime_nsec = archive_entry_mtime_nsec(i->entry);
	int64_t uid = archive_entry_uid(i->entry), gid = archive_entry_gid(i->entry);
	int r;

	r = place_normalise(i->path, archive_entry_pathname(i->entry), err);
	if (r < 0)
		return r;
	if (uid < 0 || uid > LAYER_ID_MAX || gid < 0 || gid > LAYER_ID_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "entry \"%.200s\": the owner is out of range", i->path);
	i->uid = (uid_t)uid;
	i->gid = (gid_t)gid;
	i->mode = archive_entry_perm(i->entry) & 07777;
	i->times[1].tv_sec = archive_entry_mtime(i->entry);
	i->times[1].tv_nsec = mtime_nsec >= 0 && mtime_nsec < 1000000000 ? mtime_nsec : 0;
	i->times[0] = i->times[1];
	return 0;
}

static int layer_add_kind(struct layer *l, const struct layer_item *i, mode_t type,
			  struct error *err)
{
	int r;

	if (type == AE_IFDIR)
		return layer_add_dir(l, i, err);
	if (type == AE_IFREG)
		return layer_add_file(l, i, err);
	r = layer_clear(l, i, false, err);
	if (r < 0)
		return r;
	return (type == AE_IFLNK ? layer_add_symlink : layer_add_fifo)(i, err);
}

int layer_add(struct layer *l, struct archive *a, struct archive_entry *entry, struct error *err)
{
	struct layer_item i = { .archive = a, .entry = entry, .place = PLACE_INIT };
	mode_t type = archive_entry_filetype(entry);
	int r;

	if (++l->n_entries > l->max_entries)
		return error_refuse(err, ERROR_EXHAUSTED, "the layer has more than %llu entries",
				    (unsigned long long)l->max_entries);
	r = layer_read_item(&i, err);
	if (r < 0)
		return r;
	r = layer_add_whiteout(l, &i, err);
	if (r != 0)
		return MIN(r, 0);
	if (!archive_entry_hardlink(entry) && type != AE_IFREG && type != AE_IFDIR &&
	    type != AE_IFLNK && type != AE_IFIFO) {
		l->n_skipped++;
		return 0;
	}
	r = layer_find(l, &i, err);
	if (r < 0)
		return r;
	if (archive_entry_hardlink(entry))
		return layer_add_hardlink(l, &i, err);
	return layer_add_kind(l, &i, type, err);
}

int layer_finish(struct layer *l, struct error *err)
{
	int r = whiteout_make_all(&l->whiteouts, &l->implied, err);

	if (r == 0)
		r = later_run(&l->later, err);
	return r == 0 ? implied_finish(&l->implied, err) : r;
}

void layer_done(struct layer *l)
{
	l->dir_fd = fd_close(l->dir_fd);
	later_done(&l->later);
	notes_done(&l->whiteouts);
	implied_done(&l->implied);
}
