/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/layout.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

#define LAYOUT_BLOBS "blobs/sha256/"
#define LAYOUT_HEX 64

/* Where a header has what is looked at. */
enum { LAYOUT_SIZE_AT = 124, LAYOUT_SIZE_LEN = 12, LAYOUT_TYPE_AT = 156, LAYOUT_NAME_LEN = 100 };

static const char *const layout_names[] = { "oci-layout", "index.json", "blobs" };

int layout_open(struct layout *l, const char *path, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	int r;

	*l = (struct layout){ .dir_fd = -1, .file_fd = -1, .path = xstrdup(path) };
	if (sysio_mkdirat(AT_FDCWD, path, 0777) == 0)
		l->made = true;
	else if (errno != EEXIST)
		return error_set(err, -errno, "make the directory %s", path);
	l->dir_fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (l->dir_fd < 0)
		return error_set(err, -errno, "open the directory %s", path);
	r = fd_list_dir(l->dir_fd, &names);
	if (r < 0)
		return error_set(err, r, "read the directory %s", path);
	if (names && *names) {
		l->dir_fd = fd_close(l->dir_fd);
		return error_refuse(err, ERROR_EXISTS, "the directory %s is not empty", path);
	}
	return 0;
}

static bool layout_is_name(const char *name)
{
	size_t prefix = strlen(LAYOUT_BLOBS);

	if (str_eq(name, "oci-layout") || str_eq(name, "index.json"))
		return true;
	return str_has_prefix(name, LAYOUT_BLOBS) && strlen(name) == prefix + LAYOUT_HEX &&
	       strspn(name + prefix, "0123456789abcdef") == LAYOUT_HEX;
}

static uint64_t layout_size(const unsigned char *field)
{
	uint64_t size = 0;

	if (field[0] & 0x80) {
		for (size_t i = LAYOUT_SIZE_LEN - sizeof(size); i < LAYOUT_SIZE_LEN; i++)
			size = size << 8 | field[i];
		return size;
	}
	for (size_t i = 0; i < LAYOUT_SIZE_LEN && field[i] >= '0' && field[i] <= '7'; i++)
		size = size << 3 | (uint64_t)(field[i] - '0');
	return size;
}

static int layout_begin_file(struct layout *l, const char *name, struct error *err)
{
	const unsigned char *h = l->header;

	l->file_fd = sysio_openat(l->dir_fd, name,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (l->file_fd < 0)
		return error_set(err, -errno, "make the file %s/%s", l->path, name);
	l->n_left = layout_size(h + LAYOUT_SIZE_AT);
	l->n_pad = (LAYOUT_BLOCK - l->n_left % LAYOUT_BLOCK) % LAYOUT_BLOCK;
	if (l->n_left == 0)
		l->file_fd = fd_close(l->file_fd);
	return 0;
}

static int layout_header(struct layout *l, struct error *err)
{
	char name[LAYOUT_NAME_LEN + 1] = "";
	char type = (char)l->header[LAYOUT_TYPE_AT];

	memcpy(name, l->header, LAYOUT_NAME_LEN);
	l->n_header = 0;
	if (!*name) {
		l->ended = true;
		return 0;
	}
	if (type == '5' && (str_eq(name, "blobs/") || str_eq(name, LAYOUT_BLOBS)))
		return sysio_mkdirat(l->dir_fd, name, 0777) < 0
			       ? error_set(err, -errno, "make the directory %s/%s", l->path, name)
			       : 0;
	if (type == '0' && layout_is_name(name))
		return layout_begin_file(l, name, err);
	return error_refuse(err, ERROR_INVALID, "the archive has a file that is none of a layout");
}

/* How many of the bytes were taken; or a negative errno. */
static ssize_t layout_step(struct layout *l, const unsigned char *data, size_t len,
			   struct error *err)
{
	size_t n;
	int r;

	if (l->n_left) {
		n = (size_t)MIN(l->n_left, (uint64_t)len);
		r = fd_write_full(l->file_fd, data, n);
		if (r < 0)
			return error_set(err, r, "write below %s", l->path);
		l->n_left -= n;
		if (l->n_left == 0)
			l->file_fd = fd_close(l->file_fd);
		return (ssize_t)n;
	}
	if (l->n_pad) {
		n = (size_t)MIN(l->n_pad, (uint64_t)len);
		l->n_pad -= n;
		return (ssize_t)n;
	}
	n = MIN(len, LAYOUT_BLOCK - l->n_header);
	memcpy(l->header + l->n_header, data, n);
	l->n_header += n;
	r = l->n_header == LAYOUT_BLOCK ? layout_header(l, err) : 0;
	return r < 0 ? r : (ssize_t)n;
}

int layout_add(struct layout *l, const void *data, size_t len, struct error *err)
{
	const unsigned char *p = data;

	while (len && !l->ended) {
		ssize_t n = layout_step(l, p, len, err);

		if (n < 0)
			return (int)n;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int layout_finish(struct layout *l, struct error *err)
{
	return l->ended ? 0 : error_set(err, -EPIPE, "the archive ended too early");
}

void layout_undo(struct layout *l)
{
	if (l->dir_fd < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(layout_names); i++)
		(void)rootfd_remove_tree(l->dir_fd, layout_names[i]);
	if (l->made)
		(void)sysio_unlinkat(AT_FDCWD, l->path, AT_REMOVEDIR);
}

void layout_done(struct layout *l)
{
	l->file_fd = fd_close(l->file_fd);
	l->dir_fd = fd_close(l->dir_fd);
	free(l->path);
	l->path = NULL;
}
