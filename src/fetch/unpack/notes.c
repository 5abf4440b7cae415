/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/notes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"

/* A note begins with its length, as a uint32_t. */

static int notes_fail(const struct notes *n, int r, struct error *err)
{
	return error_set(err, r, "remember the %s of the layer", n->what);
}

/* Moves the notes from memory to the end of the file. */
static int notes_spill(struct notes *n, struct error *err)
{
	int r;

	if (n->n_file + n->buf.len > NOTES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "the layer has too many %s", n->what);
	if (n->file_fd < 0)
		n->file_fd = sysio_openat(n->root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (n->file_fd < 0)
		return notes_fail(n, -errno, err);
	r = fd_write_full(n->file_fd, buf_data(&n->buf), n->buf.len);
	if (r < 0)
		return notes_fail(n, r, err);
	n->n_file += n->buf.len;
	buf_consume(&n->buf, n->buf.len);
	return 0;
}

int notes_add(struct notes *n, const struct iovec *parts, size_t n_parts, struct error *err)
{
	uint32_t len = 0;
	int r;

	for (size_t i = 0; i < n_parts; i++)
		len += (uint32_t)parts[i].iov_len;
	r = buf_add(&n->buf, &len, sizeof(len));
	for (size_t i = 0; i < n_parts && r == 0; i++)
		if (parts[i].iov_len)
			r = buf_add(&n->buf, parts[i].iov_base, parts[i].iov_len);
	if (r < 0)
		return notes_fail(n, r, err);
	return n->buf.len < NOTES_MEMORY ? 0 : notes_spill(n, err);
}

/* Each whole note of these bytes; *ret: how many they were. */
static int notes_each_of(const uint8_t *data, size_t len, notes_fn fn, void *userdata, size_t *ret,
			 struct error *err)
{
	size_t at = 0;

	for (;;) {
		uint32_t size;
		int r;

		*ret = at;
		if (len - at < sizeof(size))
			return 0;
		memcpy(&size, data + at, sizeof(size));
		if (len - at - sizeof(size) < size)
			return 0;
		r = fn(userdata, data + at + sizeof(size), size, err);
		if (r < 0)
			return r;
		at += sizeof(size) + size;
	}
}

static int notes_load(struct notes *n, uint64_t at, size_t len, struct error *err)
{
	uint8_t *to;
	ssize_t got;
	int r;

	r = buf_reserve(&n->buf, len, &to);
	if (r < 0)
		return notes_fail(n, r, err);
	got = sysio_pread(n->file_fd, to, len, (off_t)at);
	if (got != (ssize_t)len)
		return notes_fail(n, got < 0 ? -errno : -EIO, err);
	buf_added(&n->buf, len);
	return 0;
}

int notes_each(struct notes *n, notes_fn fn, void *userdata, struct error *err)
{
	size_t done = 0;
	int r;

	if (n->file_fd < 0)
		return notes_each_of(buf_data(&n->buf), n->buf.len, fn, userdata, &done, err);
	r = notes_spill(n, err);
	for (uint64_t at = 0; r == 0 && at < n->n_file;) {
		size_t len = (size_t)MIN(n->n_file - at, (uint64_t)NOTES_MEMORY);

		r = notes_load(n, at, len, err);
		if (r == 0)
			r = notes_each_of(buf_data(&n->buf), n->buf.len, fn, userdata, &done, err);
		buf_consume(&n->buf, r == 0 ? done : n->buf.len);
		at += len;
	}
	return r;
}

void notes_done(struct notes *n)
{
	n->file_fd = fd_close(n->file_fd);
	buf_done(&n->buf);
}
