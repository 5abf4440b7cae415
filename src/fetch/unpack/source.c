/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/memory/arena.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "fetch/unpack/inflate.h"
#include "fetch/unpack/place.h"

#define SOURCE_CHUNK (128 * 1024)
#define SOURCE_BLOCK 512 /* of a tar */
#define SOURCE_ENTRIES_MAX 65536
#define SOURCE_NAMES_MAX (32 << 20)
#define SOURCE_LINKS_MAX 8
#define SOURCE_PLAIN "plain.tar" /* the decompressed archive, in staging */

struct source_file {
	const char *name;
	const char *link; /* another name, for links; "" where it leads out of the archive */
	int64_t at;       /* of its header */
};

struct source {
	int fd;
	int plain_fd; /* owned; the tar that is read, where it was compressed */
	bool is_dir;
	struct map files;
	struct arena arena;
	size_t n_files;
	int64_t pos; /* of the reader */
	int64_t end; /* of the tar, where the data of the member that is read is whole; else -1 */
	uint8_t *chunk;
};

/* ---- reading the tar from any place ---- */

static int source_tar_fd(const struct source *s)
{
	return s->plain_fd >= 0 ? s->plain_fd : s->fd;
}

static ssize_t source_feed(struct archive *a, void *userdata, const void **ret)
{
	struct source *s = userdata;
	ssize_t n;

	do {
		n = pread(source_tar_fd(s), s->chunk, SOURCE_CHUNK, s->pos);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		archive_set_error(a, errno, "%s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	/* The padding of the last member may be missing (unpack.c). */
	if (n == 0 && s->end == s->pos) {
		n = -s->pos & (SOURCE_BLOCK - 1);
		memset(s->chunk, 0, (size_t)n);
	}
	s->pos += n;
	*ret = s->chunk;
	return n;
}

static int64_t source_skip(struct archive *a, void *userdata, int64_t request)
{
	struct source *s = userdata;
	struct stat st;

	/* Not beyond the end, so that a tar that is cut short is seen as such. */
	if (fstat(source_tar_fd(s), &st) < 0 || request < 0 || st.st_size - s->pos < request)
		return 0;
	s->pos += request;
	return request;
}

/* Whether the data of the member that the reader stands at ends within the tar, and the tar with
 * it. */
static void source_note_end(struct source *s, struct archive *a, struct archive_entry *entry,
			    int64_t from)
{
	int64_t at = from + archive_filter_bytes(a, 0), size = archive_entry_size(entry);
	struct stat st;

	s->end = -1;
	if (fstat(source_tar_fd(s), &st) == 0 && archive_entry_sparse_count(entry) == 0 &&
	    size >= 0 && size <= st.st_size - at && st.st_size - at - size < SOURCE_BLOCK)
		s->end = st.st_size;
}

static void source_archive_free(struct archive **a)
{
	(void)archive_read_free(*a);
}
#define _cleanup_archive_ _cleanup_(source_archive_free)

static int source_archive_fail(struct archive *a, struct error *err)
{
	if (archive_errno(a) == ENOMEM)
		return error_set(err, -ENOMEM, "read the archive");
	return error_refuse(err, ERROR_INVALID, "the archive is no tar that can be read: %.200s",
			    archive_error_string(a) ? archive_error_string(a) : "unknown format");
}

static int source_archive_open(struct source *s, int64_t at, struct archive **ret,
			       struct error *err)
{
	_cleanup_archive_ struct archive *a = archive_read_new();

	if (!a || archive_read_support_format_tar(a) != ARCHIVE_OK)
		return error_set(err, -ENOMEM, "read the archive");
	s->pos = at;
	s->end = -1;
	if (archive_read_open2(a, s, NULL, source_feed, source_skip, NULL) != ARCHIVE_OK)
		return source_archive_fail(a, err);
	*ret = TAKE_PTR(a);
	return 0;
}

/* ---- the index ---- */

/*
 * The name that a link means: a hard link's is one of the archive already, a symbolic link's is
 * relative to its own directory. What leads out of the archive is "" and cannot be read.
 */
static int source_link_name(struct source *s, const char *name, const char *target, bool symbolic,
			    const char **ret, struct error *err)
{
	const char *slash = symbolic ? strrchr(name, '/') : NULL;
	char path[PLACE_PATH_MAX + 1] = "", joined[PLACE_PATH_MAX + 1];
	size_t len = slash ? (size_t)(slash - name) : 0;

	memcpy(path, name, len);
	while (*target == '.' && target[1] == '.' && target[2] == '/' && len > 0) {
		while (len > 0 && path[len - 1] != '/')
			len--;
		len -= len > 0;
		target += 3;
	}
	path[len] = '\0';
	*ret = "";
	if (*target == '/' || str_printf(joined, sizeof(joined), "%s/%s", path, target) < 0 ||
	    place_normalise(path, joined, NULL) < 0)
		return 0;
	*ret = arena_strdup(&s->arena, path);
	return *ret ? 0 : error_set(err, -ENOMEM, "read the archive");
}

static int source_index_link(struct source *s, struct source_file *f, struct archive_entry *entry,
			     struct error *err)
{
	const char *hard = archive_entry_hardlink(entry);
	const char *soft = archive_entry_symlink(entry);

	if (hard)
		return source_link_name(s, f->name, hard, false, &f->link, err);
	if (archive_entry_filetype(entry) == AE_IFLNK)
		return source_link_name(s, f->name, soft ? soft : "/", true, &f->link, err);
	return 0;
}

static int source_index_entry(struct source *s, struct archive *a, struct archive_entry *entry,
			      struct error *err)
{
	mode_t type = archive_entry_filetype(entry);
	char name[PLACE_PATH_MAX + 1];
	struct source_file *f;
	int r;

	if (type != AE_IFREG && type != AE_IFLNK && !archive_entry_hardlink(entry))
		return 0;
	r = place_normalise(name, archive_entry_pathname(entry), err);
	if (r < 0)
		return r;
	f = arena_zalloc(&s->arena, 1, sizeof(*f));
	if (f)
		f->name = arena_strdup(&s->arena, name);
	if (!f || !f->name || ++s->n_files > SOURCE_ENTRIES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "the archive has too many files");
	f->at = archive_read_header_position(a);
	r = source_index_link(s, f, entry, err);
	if (r < 0)
		return r;
	r = map_add(&s->files, f->name, f);
	if (r == -EEXIST)
		return error_refuse(err, ERROR_INVALID, "the archive has \"%.200s\" twice", name);
	return r < 0 ? error_set(err, r, "read the archive") : 0;
}

static int source_index(struct source *s, struct error *err)
{
	_cleanup_archive_ struct archive *a = NULL;
	int r;

	r = source_archive_open(s, 0, &a, err);
	while (r == 0) {
		struct archive_entry *entry;

		r = archive_read_next_header(a, &entry);
		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return source_archive_fail(a, err);
		source_note_end(s, a, entry, 0);
		r = source_index_entry(s, a, entry, err);
	}
	return r;
}

/* ---- opening ---- */

static int source_decompress_to(struct source *s, struct inflate *i, struct error *err)
{
	for (;;) {
		ssize_t n = inflate_read(i, s->chunk, SOURCE_CHUNK, err);
		int r;

		if (n <= 0)
			return (int)n;
		r = fd_write_full(s->plain_fd, s->chunk, (size_t)n);
		if (r < 0)
			return error_set(err, r, "write the decompressed archive");
	}
}

static int source_decompress(struct source *s, int staging_fd, enum fetch_compression compression,
			     uint64_t max_bytes, struct error *err)
{
	_cleanup_(inflate_freep) struct inflate *i = NULL;
	int r;

	s->plain_fd = sysio_openat(staging_fd, SOURCE_PLAIN,
				   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->plain_fd < 0)
		return error_set(err, -errno, "make the decompressed archive");
	/* It goes when it is closed, whatever happens. */
	if (sysio_unlinkat(staging_fd, SOURCE_PLAIN, 0) < 0)
		return error_set(err, -errno, "unlink the decompressed archive");
	r = inflate_new(&i,
			&(struct inflate_config){
				.fd = s->fd, .compression = compression, .max_out = max_bytes },
			err);
	return r == 0 ? source_decompress_to(s, i, err) : r;
}

static int source_open_file(struct source *s, int staging_fd, uint64_t max_bytes, struct error *err)
{
	enum fetch_compression compression;
	uint8_t head[INFLATE_HEAD];
	ssize_t n;
	int r;

	n = pread(s->fd, head, sizeof(head), 0);
	if (n < 0)
		return error_set(err, -errno, "read the archive");
	if (n == 0)
		return error_refuse(err, ERROR_INVALID, "the archive is empty");
	compression = inflate_guess(head, (size_t)n);
	r = inflate_check_form(compression, head, (size_t)n, err);
	if (r < 0)
		return r;
	if (compression != FETCH_PLAIN) {
		r = source_decompress(s, staging_fd, compression, max_bytes, err);
		if (r < 0)
			return error_wrap(err, r, "decompress the archive");
	}
	return source_index(s, err);
}

int source_open(struct source **ret, int fd, int staging_fd, uint64_t max_bytes, struct error *err)
{
	struct source *s = calloc(1, sizeof(*s));
	struct stat st;
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "open the archive");
	*s = (struct source){ .fd = fd,
			      .plain_fd = -1,
			      .files = MAP_INIT,
			      .arena = ARENA_INIT_LIMIT(SOURCE_NAMES_MAX),
			      .chunk = malloc(SOURCE_CHUNK) };
	if (!s->chunk)
		r = error_set(err, -ENOMEM, "open the archive");
	else if (fstat(fd, &st) < 0)
		r = error_set(err, -errno, "open the archive");
	else if (S_ISDIR(st.st_mode))
		r = 0;
	else
		r = source_open_file(s, staging_fd, max_bytes, err);
	if (r < 0) {
		(void)source_free(s);
		return r;
	}
	s->is_dir = S_ISDIR(st.st_mode);
	*ret = s;
	return 0;
}

struct source *source_free(struct source *s)
{
	if (!s)
		return NULL;
	(void)fd_close(s->plain_fd);
	map_done(&s->files);
	arena_done(&s->arena);
	free(s->chunk);
	free(s);
	return NULL;
}

/* ---- reading one file ---- */

static const struct source_file *source_find(const struct source *s, const char *name)
{
	const struct source_file *f = map_get(&s->files, name);

	for (int i = 0; f && f->link && i < SOURCE_LINKS_MAX; i++)
		f = map_get(&s->files, f->link);
	return f && !f->link ? f : NULL;
}

bool source_has(struct source *s, const char *name)
{
	_cleanup_fd_ int fd = -1;

	if (!s->is_dir)
		return source_find(s, name) != NULL;
	fd = rootfd_open_regular(s->fd, name);
	return fd >= 0;
}

static int source_missing(const char *name, struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "the archive has no file \"%.200s\"", name);
}

static int source_each_of_dir(struct source *s, const char *name, source_piece_fn fn,
			      void *userdata, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open_regular(s->fd, name);

	if (fd == -ENOENT || fd == -EINVAL || fd == -ENOTDIR || fd == -ELOOP)
		return source_missing(name, err);
	if (fd < 0)
		return error_set(err, fd, "open \"%.200s\" of the archive", name);
	for (;;) {
		ssize_t n = sysio_read(fd, s->chunk, SOURCE_CHUNK);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, -errno, "read \"%.200s\" of the archive", name);
		if (n == 0)
			return 0;
		r = fn(userdata, s->chunk, (size_t)n, err);
		if (r < 0)
			return r;
	}
}

static int source_each_of_tar(struct source *s, const char *name, source_piece_fn fn,
			      void *userdata, struct error *err)
{
	const struct source_file *f = source_find(s, name);
	_cleanup_archive_ struct archive *a = NULL;
	struct archive_entry *entry;
	int r;

	if (!f)
		return source_missing(name, err);
	r = source_archive_open(s, f->at, &a, err);
	if (r < 0)
		return r;
	r = archive_read_next_header(a, &entry);
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return source_archive_fail(a, err);
	source_note_end(s, a, entry, f->at);
	for (;;) {
		static uint8_t piece[SOURCE_CHUNK];
		la_ssize_t n = archive_read_data(a, piece, sizeof(piece));

		if (n < 0)
			return source_archive_fail(a, err);
		if (n == 0)
			return 0;
		r = fn(userdata, piece, (size_t)n, err);
		if (r < 0)
			return r;
	}
}

int source_each_piece(struct source *s, const char *name, source_piece_fn fn, void *userdata,
		      struct error *err)
{
	return (s->is_dir ? source_each_of_dir : source_each_of_tar)(s, name, fn, userdata, err);
}

static int source_load_piece(void *userdata, const void *data, size_t len, struct error *err)
{
	struct buf *b = userdata;
	int r = buf_add(b, data, len);

	if (r == -ENOBUFS)
		return error_refuse(err, ERROR_EXHAUSTED, "it is longer than %zu bytes", b->limit);
	return r < 0 ? error_set(err, r, "read it") : 0;
}

int source_load(struct source *s, const char *name, size_t max, struct buf *ret, struct error *err)
{
	int r;

	ret->limit = max;
	r = source_each_piece(s, name, source_load_piece, ret, err);
	return r < 0 ? error_wrap(err, r, "%.200s", name) : 0;
}
