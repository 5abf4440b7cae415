/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/disks.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "vm/disk/qcow2.h"
#include "vm/driver/firmware.h"
#include "vm/driver/jail.h"

/*
 * "disks/NAME" is a directory with "data", the qcow2, "base", a text of what lies below, and "vars"
 * where UEFI was asked for once. It is made under another name, ".ID", and renamed when it is
 * whole; what begins with a dot is of nobody else.
 */

#define DISKS_DIR "disks"
#define DISK_DATA "data"
#define DISK_BASE "base"
#define DISK_VARS "vars"
#define DISK_TEXT_MAX (DISK_PATH_MAX + 128)
#define DISK_SECTOR 512U
#define DISK_FILE_URL "file://"

static const char *const disk_formats[] = { [VM_DISK_RAW] = "raw", [VM_DISK_QCOW2] = "qcow2" };

/* ---- what is brought ---- */

static int disk_path(const char *source, const char **ret, struct error *err)
{
	const char *path = source;

	if (str_has_prefix(path, DISK_FILE_URL))
		path += strlen(DISK_FILE_URL);
	else if (strstr(path, "://"))
		return error_refuse(
			err, ERROR_UNSUPPORTED,
			"nothing is fetched over a network for a machine so far: name a "
			"file of the node, by its path or as file:///PATH");
	if (path[0] != '/')
		return error_refuse(err, ERROR_INVALID, "\"%.200s\" is not an absolute path",
				    source);
	if (strlen(path) > DISK_PATH_MAX)
		return error_refuse(err, ERROR_INVALID, "a path of more than %d bytes",
				    DISK_PATH_MAX);
	*ret = path;
	return 0;
}

int disk_open_file(const char *path, struct error *err)
{
	_cleanup_fd_ int host_fd = jail_open_host(err);
	int fd;

	if (host_fd < 0)
		return host_fd;
	if (path[0] != '/')
		return error_refuse(err, ERROR_INVALID, "\"%.200s\" is not an absolute path", path);
	fd = rootfd_open_regular(host_fd, path);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no %.300s", path);
	if (fd == -EINVAL)
		return error_refuse(err, ERROR_PRECONDITION, "%.300s is no regular file", path);
	return fd < 0 ? error_set(err, fd, "open %.300s", path) : fd;
}

static int disk_choose_format(const char *word, const uint8_t *head, size_t len,
			      enum vm_disk_format *ret, struct error *err)
{
	if (str_empty(word)) {
		*ret = qcow2_is(head, len) ? VM_DISK_QCOW2 : VM_DISK_RAW;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(disk_formats); i++)
		if (str_eq(word, disk_formats[i])) {
			*ret = (enum vm_disk_format)i;
			return 0;
		}
	return error_refuse(err, ERROR_INVALID, "the format \"%.80s\" is neither raw nor qcow2",
			    word);
}

static int disk_measure(struct disk_base *b, const uint8_t *head, size_t len, struct error *err)
{
	struct stat st;
	struct qcow2 q;
	int r;

	if (fstat(b->fd, &st) < 0)
		return error_set(err, -errno, "look at a disk");
	b->bytes = (uint64_t)st.st_size;
	if (b->format == VM_DISK_QCOW2) {
		r = qcow2_look(&q, head, len, b->bytes, err);
		if (r < 0)
			return r;
		b->bytes = q.bytes;
	}
	if (!b->bytes)
		return error_refuse(err, ERROR_INVALID, "a disk that is empty");
	b->bytes = (b->bytes + DISK_SECTOR - 1) / DISK_SECTOR * DISK_SECTOR;
	return 0;
}

int disk_open_base(struct disk_base *ret, const char *source, const char *format, struct error *err)
{
	struct disk_base b = DISK_BASE_NONE;
	uint8_t head[QCOW2_HEAD_MAX];
	const char *path;
	ssize_t n;
	int r;

	r = disk_path(source, &path, err);
	if (r < 0)
		return r;
	b.fd = disk_open_file(path, err);
	if (b.fd < 0)
		return b.fd;
	n = sysio_pread(b.fd, head, sizeof(head), 0);
	r = n < 0 ? error_set(err, -errno, "read %.300s", path) : 0;
	if (r == 0)
		r = disk_choose_format(format, head, (size_t)n, &b.format, err);
	if (r == 0)
		r = disk_measure(&b, head, (size_t)n, err);
	if (r < 0) {
		(void)fd_close(b.fd);
		return r;
	}
	*ret = b;
	return 0;
}

/* ---- what is given as it is ---- */

int disk_lock_drive(int fd, const char *path, bool writable, struct error *err)
{
	struct flock lock = { .l_type = writable ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return error_refuse(err, ERROR_PRECONDITION,
				    "another drive is %.300s, and one of the two is written to "
				    "(stop the other machine, or let both only read it)",
				    path);
	return error_set(err, -errno, "lock %.300s", path);
}

int disk_open_drive(const char *path, bool writable, struct error *err)
{
	_cleanup_fd_ int seen_fd = disk_open_file(path, err);
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (seen_fd < 0)
		return seen_fd;
	/* What was looked at, not what may stand there meanwhile. */
	fd = rootfd_open_again(seen_fd, (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(err, fd, "open %.300s%s", path, writable ? " for writing" : "");
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at %.300s", path);
	if (st.st_size == 0 || st.st_size % DISK_SECTOR)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%.300s has %lld bytes, which are no whole sectors of %u", path,
				    (long long)st.st_size, DISK_SECTOR);
	return TAKE_FD(fd);
}

/* ---- what is laid over it ---- */

static int disks_open(int root_fd, struct error *err)
{
	int fd;

	if (sysio_mkdirat(root_fd, DISKS_DIR, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of disks");
	fd = sysio_openat(root_fd, DISKS_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open the directory of disks") : fd;
}

int disks_prepare(int root_fd, struct error *err)
{
	_cleanup_fd_ int fd = disks_open(root_fd, err);
	_cleanup_strv_ char **names = NULL;
	int r;

	if (fd < 0)
		return fd;
	r = fd_list_dir(fd, &names);
	if (r < 0)
		return error_set(err, r, "list the disks");
	for (size_t i = 0; names && names[i]; i++)
		if (names[i][0] == '.')
			(void)rootfd_remove_tree(fd, names[i]);
	return 0;
}

static int disk_create(int dir_fd, const char *name, struct error *err)
{
	int fd = sysio_openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      0600);

	return fd < 0 ? error_set(err, -errno, "make a disk") : fd;
}

static int disk_fill(int fd, const struct disk_base *base, const char *source, uint64_t bytes,
		     struct error *err)
{
	uint8_t *head = NULL;
	uint64_t file = 0;
	size_t len = 0;
	int r;

	r = qcow2_make(&head, &len, &file, bytes ? bytes : base->bytes, source,
		       disk_formats[base->format], err);
	if (r < 0)
		return r;
	r = fd_write_full(fd, head, len);
	free(head);
	if (r == 0 && sysio_ftruncate(fd, (off_t)file) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "write a disk") : 0;
}

/* A file that has no name any more. */
static int disk_make_nameless(int root_fd, struct error *err)
{
	_cleanup_fd_ int dir_fd = disks_open(root_fd, err);
	char name[ID_SIZE + 1] = ".";
	int fd, r;

	if (dir_fd < 0)
		return dir_fd;
	r = id_new(name + 1);
	if (r < 0)
		return error_set(err, r, "draw a name");
	fd = disk_create(dir_fd, name, err);
	if (fd >= 0)
		(void)sysio_unlinkat(dir_fd, name, 0);
	return fd;
}

int disk_make_throw_away(int root_fd, const struct disk_base *base, uint64_t bytes,
			 struct error *err)
{
	_cleanup_fd_ int fd = disk_make_nameless(root_fd, err);
	int r;

	if (fd < 0)
		return fd;
	r = disk_fill(fd, base, "", bytes, err);
	return r < 0 ? r : TAKE_FD(fd);
}

/* What its base is, in words: the same words, the same base. */
static int disk_describe(char ret[DISK_TEXT_MAX], const char *path, const struct disk_base *base,
			 struct error *err)
{
	struct stat st;

	if (fstat(base->fd, &st) < 0)
		return error_set(err, -errno, "look at %.300s", path);
	return str_printf(ret, DISK_TEXT_MAX, "%s %lld %lld.%09ld\n%s\n",
			  disk_formats[base->format], (long long)st.st_size,
			  (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, path);
}

static int disk_write_base(int dir_fd, const char *text, struct error *err)
{
	_cleanup_fd_ int fd = disk_create(dir_fd, DISK_BASE, err);
	int r;

	if (fd < 0)
		return fd;
	r = fd_write_full(fd, text, strlen(text));
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "write a disk") : 0;
}

static int disk_make_in(int dir_fd, const char *path, const char *text,
			const struct disk_base *base, uint64_t bytes, struct error *err)
{
	_cleanup_fd_ int fd = disk_create(dir_fd, DISK_DATA, err);
	int r;

	if (fd < 0)
		return fd;
	r = disk_fill(fd, base, path, bytes, err);
	if (r == 0 && sysio_fsync(fd) < 0)
		r = error_set(err, -errno, "write a disk");
	return r < 0 ? r : disk_write_base(dir_fd, text, err);
}

static int disk_make_kept(int disks_fd, const char *name, const char *path, const char *text,
			  const struct disk_base *base, uint64_t bytes, struct error *err)
{
	_cleanup_fd_ int dir_fd = -1;
	char draft[ID_SIZE + 1] = ".";
	int r;

	r = id_new(draft + 1);
	if (r < 0)
		return error_set(err, r, "draw a name");
	if (sysio_mkdirat(disks_fd, draft, 0700) < 0)
		return error_set(err, -errno, "make the disk %s", name);
	dir_fd = sysio_openat(disks_fd, draft, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	r = dir_fd < 0 ? error_set(err, -errno, "make the disk %s", name)
		       : disk_make_in(dir_fd, path, text, base, bytes, err);
	if (r == 0 && sysio_renameat(disks_fd, draft, disks_fd, name) < 0)
		r = error_set(err, -errno, "make the disk %s", name);
	if (r < 0)
		(void)rootfd_remove_tree(disks_fd, draft);
	return r;
}

/* Its directory; -ENOENT without a word where there is none. */
static int disk_open_dir(int disks_fd, const char *name, struct error *err)
{
	int fd = sysio_openat(disks_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	return fd < 0 ? error_set(err, -errno, "open the disk %s", name) : fd;
}

/* Its data, which nobody else has from here on: a lock of what was opened (fcntl_locking(2)), so
 * that who only looks need not take it for a moment, and no machine is refused for that. */
static int disk_lock(int dir_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, DISK_DATA, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fd < 0)
		return error_set(err, -errno, "open the disk %s", name);
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return TAKE_FD(fd);
	if (errno == EAGAIN || errno == EACCES)
		return error_refuse(err, ERROR_PRECONDITION, "another machine has the disk %s",
				    name);
	return error_set(err, -errno, "lock the disk %s", name);
}

static int disk_check_kept(int dir_fd, int fd, const char *name, const char *text, uint64_t bytes,
			   struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	uint8_t head[QCOW2_HEAD_MAX];
	int r;

	r = fd_read_file(dir_fd, DISK_BASE, DISK_TEXT_MAX, &b);
	if (r < 0)
		return error_set(err, r, "read what the disk %s lies over", name);
	if (b.len != strlen(text) || memcmp(buf_data(&b), text, b.len) != 0)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"the disk %s lies over another image, or over what this one was "
			"before it was changed",
			name);
	if (!bytes)
		return 0;
	/* Its guest may have written the head: only the size is read. */
	if (sysio_pread(fd, head, sizeof(head), 0) < 32)
		return error_refuse(err, ERROR_PRECONDITION, "the disk %s is cut off", name);
	for (size_t i = 0; i < 8; i++)
		if (head[24 + i] != (uint8_t)(bytes >> (56 - 8 * i)))
			return error_refuse(err, ERROR_INVALID,
					    "the disk %s is there, and of another size", name);
	return 0;
}

int disk_open_kept(int root_fd, const char *name, const char *source, const struct disk_base *base,
		   uint64_t bytes, struct error *err)
{
	_cleanup_fd_ int disks_fd = disks_open(root_fd, err);
	_cleanup_fd_ int dir_fd = -1, fd = -1;
	struct error made = ERROR_INIT;
	char text[DISK_TEXT_MAX];
	const char *path;
	int r;

	if (disks_fd < 0)
		return disks_fd;
	r = disk_path(source, &path, err);
	if (r == 0)
		r = disk_describe(text, path, base, err);
	if (r < 0)
		return r;
	dir_fd = disk_open_dir(disks_fd, name, err);
	if (dir_fd == -ENOENT) {
		r = disk_make_kept(disks_fd, name, path, text, base, bytes, &made);
		/* Somebody was quicker: then that one is looked at. */
		if (r < 0 && r != -ENOTEMPTY && r != -EEXIST)
			return error_copy(err, &made);
		dir_fd = disk_open_dir(disks_fd, name, err);
	}
	if (dir_fd < 0)
		return dir_fd;
	fd = disk_lock(dir_fd, name, err);
	if (fd < 0)
		return fd;
	r = disk_check_kept(dir_fd, fd, name, text, bytes, err);
	return r < 0 ? r : TAKE_FD(fd);
}

/* ---- what UEFI remembers ---- */

static int disk_copy_vars(int fd, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int from_fd = firmware_open_vars(err);
	int r;

	if (from_fd < 0)
		return from_fd;
	r = fd_read_all(from_fd, FIRMWARE_VARS_MAX, &b);
	if (r == 0)
		r = fd_write_full(fd, buf_data(&b), b.len);
	return r < 0 ? error_set(err, r, "copy what UEFI remembers") : 0;
}

int disk_open_vars(int root_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int disks_fd = -1, dir_fd = -1, fd = -1;
	int r;

	if (str_empty(name)) {
		fd = disk_make_nameless(root_fd, err);
	} else {
		disks_fd = disks_open(root_fd, err);
		if (disks_fd < 0)
			return disks_fd;
		dir_fd = disk_open_dir(disks_fd, name, err);
		if (dir_fd < 0)
			return dir_fd;
		fd = sysio_openat(dir_fd, DISK_VARS, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
		if (fd >= 0)
			return TAKE_FD(fd);
		fd = disk_create(dir_fd, DISK_VARS, err);
	}
	if (fd < 0)
		return fd;
	r = disk_copy_vars(fd, err);
	if (r < 0 && dir_fd >= 0)
		(void)sysio_unlinkat(dir_fd, DISK_VARS, 0);
	return r < 0 ? r : TAKE_FD(fd);
}

int disk_make_read_only(int root_fd, const void *data, size_t len, struct error *err)
{
	_cleanup_fd_ int disks_fd = disks_open(root_fd, err), fd = -1;
	char name[ID_SIZE + 1] = ".";
	int r, read_fd = -1;

	if (disks_fd < 0)
		return disks_fd;
	r = id_new(name + 1);
	if (r < 0)
		return error_set(err, r, "draw a name");
	fd = disk_create(disks_fd, name, err);
	if (fd < 0)
		return fd;
	r = fd_write_full(fd, data, len);
	if (r == 0) {
		read_fd = sysio_openat(disks_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
		r = read_fd < 0 ? -errno : read_fd;
	}
	(void)sysio_unlinkat(disks_fd, name, 0);
	return r < 0 ? error_set(err, r, "write a disk") : r;
}

/* ---- those that are kept ---- */

static void disk_read_base(int dir_fd, struct disk_kept *d)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char *line;

	if (fd_read_file(dir_fd, DISK_BASE, DISK_TEXT_MAX, &b) < 0)
		return;
	text = buf_take_str(&b);
	line = text ? strchr(text, '\n') : NULL;
	if (!line)
		return;
	line++;
	line[strcspn(line, "\n")] = '\0';
	(void)str_copy(d->base, sizeof(d->base), line);
}

static bool disk_look(int disks_fd, const char *name, struct disk_kept *d)
{
	_cleanup_fd_ int dir_fd = disk_open_dir(disks_fd, name, NULL);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	_cleanup_fd_ int fd = -1;
	uint8_t head[32];
	struct stat st;

	*d = (struct disk_kept){ .name = "" };
	if (dir_fd < 0 || str_copy(d->name, sizeof(d->name), name) < 0)
		return false;
	fd = sysio_openat(dir_fd, DISK_DATA, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	disk_read_base(dir_fd, d);
	d->used = (uint64_t)st.st_blocks * DISK_SECTOR;
	if (sysio_pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head))
		for (size_t i = 24; i < sizeof(head); i++)
			d->bytes = d->bytes << 8 | head[i];
	d->busy = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	return true;
}

static int disk_order(const void *a, const void *b)
{
	const struct disk_kept *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int disks_list(int root_fd, struct disk_kept **ret, size_t *ret_n, struct error *err)
{
	_cleanup_fd_ int disks_fd = disks_open(root_fd, err);
	_cleanup_strv_ char **names = NULL;
	struct disk_kept *all;
	size_t n = 0;
	int r;

	if (disks_fd < 0)
		return disks_fd;
	r = fd_list_dir(disks_fd, &names);
	if (r < 0)
		return error_set(err, r, "list the disks");
	all = calloc(strv_len(names) + 1, sizeof(*all));
	if (!all)
		return error_set(err, -ENOMEM, "list the disks");
	for (size_t i = 0; names && names[i] && n < DISKS_MAX; i++)
		if (name_is_label(names[i]) && disk_look(disks_fd, names[i], &all[n]))
			n++;
	qsort(all, n, sizeof(*all), disk_order);
	*ret = all;
	*ret_n = n;
	return 0;
}

int disks_strangers(int root_fd, char ***ret, struct error *err)
{
	_cleanup_fd_ int disks_fd = disks_open(root_fd, err);
	_cleanup_strv_ char **names = NULL;
	struct disk_kept disk;
	size_t n = 0;
	int r;

	if (disks_fd < 0)
		return disks_fd;
	r = fd_list_dir(disks_fd, &names);
	if (r < 0)
		return error_set(err, r, "list the disks");
	for (size_t i = 0; names && names[i]; i++) {
		char *name = TAKE_PTR(names[i]);

		if (name_is_label(name) && disk_look(disks_fd, name, &disk))
			free(name);
		else
			names[n++] = name;
	}
	*ret = TAKE_PTR(names);
	return 0;
}

int disk_remove(int root_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int disks_fd = disks_open(root_fd, err);
	_cleanup_fd_ int dir_fd = -1, fd = -1;
	int r;

	if (disks_fd < 0)
		return disks_fd;
	dir_fd = disk_open_dir(disks_fd, name, err);
	if (dir_fd == -ENOENT)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no disk %s", name);
	if (dir_fd < 0)
		return dir_fd;
	fd = disk_lock(dir_fd, name, err);
	if (fd < 0)
		return fd;
	r = rootfd_remove_tree(disks_fd, name);
	return r < 0 ? error_set(err, r, "remove the disk %s", name) : 0;
}
