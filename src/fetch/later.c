/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/later.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "fetch/place.h"

/* A note: this, the path with its NUL, the list. */
struct later_note {
	struct timespec mtime;
	uint32_t path_len; /* with its NUL */
	uint32_t acl_len;
};

static int later_fail(int r, struct error *err)
{
	return error_set(err, r, "remember a directory");
}

/* Moves the notes from memory to the end of the file. */
static int later_spill(struct later *l, struct error *err)
{
	int r;

	if (l->n_file + l->notes.len > LATER_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "the layer has too many directories");
	if (l->file_fd < 0)
		l->file_fd = sysio_openat(l->root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (l->file_fd < 0)
		return later_fail(-errno, err);
	r = fd_write_full(l->file_fd, buf_data(&l->notes), l->notes.len);
	if (r < 0)
		return later_fail(r, err);
	l->n_file += l->notes.len;
	buf_consume(&l->notes, l->notes.len);
	return 0;
}

int later_add(struct later *l, const char *path, const struct timespec *mtime, const void *acl,
	      size_t acl_len, struct error *err)
{
	const struct later_note note = { .mtime = *mtime,
					 .path_len = (uint32_t)strlen(path) + 1,
					 .acl_len = (uint32_t)acl_len };
	int r;

	r = buf_add(&l->notes, &note, sizeof(note));
	if (r == 0)
		r = buf_add(&l->notes, path, note.path_len);
	if (r == 0 && acl_len)
		r = buf_add(&l->notes, acl, acl_len);
	if (r < 0)
		return later_fail(r, err);
	return l->notes.len < LATER_MEMORY ? 0 : later_spill(l, err);
}

static int later_apply(struct later *l, const struct later_note *note, const char *path,
		       const void *acl, struct error *err)
{
	const struct timespec times[2] = { note->mtime, note->mtime };
	_cleanup_(place_done) struct place place = PLACE_INIT;
	_cleanup_fd_ int fd = -1;

	/* It may have been replaced since by something that is no directory. */
	if (place_find(l->root_fd, path, false, &place, NULL) < 0)
		return 0;
	fd = sysio_openat(place.dir_fd < 0 ? l->root_fd : place.dir_fd,
			  place.dir_fd < 0 ? "." : place.name,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	/* A file system without such lists is no reason to refuse an image. */
	if (note->acl_len && fsetxattr(fd, "system.posix_acl_default", acl, note->acl_len, 0) < 0 &&
	    errno != EOPNOTSUPP && errno != EINVAL)
		return place_fail(err, -errno, "set the access control list", path);
	if (futimens(fd, times) < 0)
		return place_fail(err, -errno, "set the time", path);
	return 0;
}

/* Applies each whole note in memory, and takes it out. */
static int later_run_memory(struct later *l, struct error *err)
{
	for (;;) {
		const uint8_t *p = buf_data(&l->notes);
		struct later_note note;
		size_t len;
		int r;

		if (l->notes.len < sizeof(note))
			return 0;
		memcpy(&note, p, sizeof(note));
		len = sizeof(note) + note.path_len + note.acl_len;
		if (l->notes.len < len)
			return 0;
		r = later_apply(l, &note, (const char *)p + sizeof(note),
				p + sizeof(note) + note.path_len, err);
		if (r < 0)
			return r;
		buf_consume(&l->notes, len);
	}
}

static int later_load(struct later *l, uint64_t at, size_t len, struct error *err)
{
	uint8_t *to;
	ssize_t n;
	int r;

	r = buf_reserve(&l->notes, len, &to);
	if (r < 0)
		return later_fail(r, err);
	n = sysio_pread(l->file_fd, to, len, (off_t)at);
	if (n != (ssize_t)len)
		return later_fail(n < 0 ? -errno : -EIO, err);
	buf_added(&l->notes, len);
	return 0;
}

int later_run(struct later *l, struct error *err)
{
	int r;

	if (l->file_fd < 0)
		return later_run_memory(l, err);
	r = later_spill(l, err);
	for (uint64_t at = 0; r == 0 && at < l->n_file;) {
		size_t len = (size_t)MIN(l->n_file - at, (uint64_t)LATER_MEMORY);

		r = later_load(l, at, len, err);
		if (r == 0)
			r = later_run_memory(l, err);
		at += len;
	}
	return r;
}

void later_done(struct later *l)
{
	l->file_fd = fd_close(l->file_fd);
	buf_done(&l->notes);
}
