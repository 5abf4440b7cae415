/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/unpack/inflate.h"
#include "wire/name/checksum.h"

#define STAGING_INCOMING "incoming"
#define STAGING_HEAD 8
#define STAGING_PIECE ((size_t)256 * 1024)

struct staging_blob {
	char digest[DIGEST_SIZE];
	uint64_t size;
};

/* A blob on its way. */
struct staging_copy {
	struct staging *staging;
	int fd;
	struct checksum hash;
	uint64_t size, max;
	uint8_t head[STAGING_HEAD];
};

static void staging_copy_done(struct staging_copy *c)
{
	/* After a success it has another name by now. */
	if (c->fd >= 0)
		(void)sysio_unlinkat(c->staging->dir_fd, STAGING_INCOMING, 0);
	c->fd = fd_close(c->fd);
}

static int staging_copy_start(struct staging_copy *c, struct error *err)
{
	checksum_start(&c->hash);
	c->fd = sysio_openat(c->staging->dir_fd, STAGING_INCOMING,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return c->fd < 0 ? error_set(err, -errno, "make a file for a blob") : 0;
}

static int staging_piece(void *userdata, const void *data, size_t len, struct error *err)
{
	struct staging_copy *c = userdata;
	int r;

	if (c->size < STAGING_HEAD && len)
		memcpy(c->head + c->size, data, MIN(len, (size_t)(STAGING_HEAD - c->size)));
	c->size += len;
	if (c->size > c->max)
		return error_refuse(err, ERROR_INVALID,
				    "the blob has more than the %llu bytes it should have",
				    (unsigned long long)c->max);
	c->staging->n_bytes += len;
	if (c->staging->n_bytes > c->staging->max_bytes)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "the blobs of the archive have more than %llu bytes",
				    (unsigned long long)c->staging->max_bytes);
	if (len)
		checksum_add(&c->hash, data, len);
	r = fd_write_full(c->fd, data, len);
	return r < 0 ? error_set(err, r, "write a blob") : 0;
}

static int staging_remember(struct staging *s, const char *digest, uint64_t size, struct error *err)
{
	struct staging_blob *b;

	if (++s->n_blobs > FETCH_BLOBS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "the archive has more than %d blobs",
				    FETCH_BLOBS_MAX);
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_set(err, -ENOMEM, "remember a blob");
	(void)str_copy(b->digest, sizeof(b->digest), digest);
	b->size = size;
	if (map_add(&s->blobs, b->digest, b) < 0) {
		free(b);
		return error_set(err, -ENOMEM, "remember a blob");
	}
	return 0;
}

/* Gives the copied file its name and tells the core. */
static int staging_copy_end(struct staging_copy *c, const char *digest, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_BLOB };
	struct staging *s = c->staging;
	int r;

	if (map_get(&s->blobs, digest))
		return 0;
	r = staging_remember(s, digest, c->size, err);
	if (r < 0)
		return r;
	if (sysio_renameat(s->dir_fd, STAGING_INCOMING, s->dir_fd, digest_hex(digest)) < 0)
		return error_set(err, -errno, "name a blob");
	(void)str_copy(m.blob.digest, sizeof(m.blob.digest), digest);
	m.blob.size = c->size;
	return channel_send(s->sock_fd, &m, err);
}

int staging_take(struct staging *s, struct source *source, const char *name, const char *digest,
		 uint64_t size, struct error *err)
{
	_cleanup_(
		staging_copy_done) struct staging_copy c = { .staging = s, .fd = -1, .max = size };
	const struct staging_blob *known = map_get(&s->blobs, digest);
	char found[DIGEST_SIZE];
	int r;

	if (known && known->size != size)
		return error_refuse(err, ERROR_INVALID, "blob %s has %llu bytes, not %llu", digest,
				    (unsigned long long)known->size, (unsigned long long)size);
	if (known)
		return 0;
	r = staging_copy_start(&c, err);
	if (r == 0)
		r = source_each_piece(source, name, staging_piece, &c, err);
	if (r < 0)
		return error_wrap(err, r, "blob %s", digest);
	if (c.size != size)
		return error_refuse(err, ERROR_INVALID, "blob %s has %llu bytes, not %llu", digest,
				    (unsigned long long)c.size, (unsigned long long)size);
	checksum_end(&c.hash, found);
	if (!str_eq(found, digest))
		return error_refuse(err, ERROR_INVALID, "blob %s has the digest %s", digest, found);
	return staging_copy_end(&c, digest, err);
}

/* What nobody has named a digest for is what it is. */
static int staging_found(struct staging_copy *c, char ret_digest[DIGEST_SIZE], uint64_t *ret_size,
			 enum fetch_compression *ret_compression, struct error *err)
{
	*ret_size = c->size;
	*ret_compression = inflate_guess(c->head, (size_t)MIN(c->size, (uint64_t)STAGING_HEAD));
	checksum_end(&c->hash, ret_digest);
	return staging_copy_end(c, ret_digest, err);
}

int staging_take_any(struct staging *s, struct source *source, const char *name,
		     char ret_digest[DIGEST_SIZE], uint64_t *ret_size,
		     enum fetch_compression *ret_compression, struct error *err)
{
	_cleanup_(staging_copy_done) struct staging_copy c = { .staging = s,
							       .fd = -1,
							       .max = s->max_bytes };
	int r;

	r = staging_copy_start(&c, err);
	if (r == 0)
		r = source_each_piece(source, name, staging_piece, &c, err);
	if (r < 0)
		return error_wrap(err, r, "%.200s", name);
	return staging_found(&c, ret_digest, ret_size, ret_compression, err);
}

static int staging_file(struct staging_copy *c, int fd, struct error *err)
{
	static uint8_t piece[STAGING_PIECE];

	for (;;) {
		ssize_t n = pread(fd, piece, sizeof(piece), (off_t)c->size);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, -errno, "read the archive");
		if (n == 0)
			return 0;
		r = staging_piece(c, piece, (size_t)n, err);
		if (r < 0)
			return r;
	}
}

int staging_take_file(struct staging *s, int fd, char ret_digest[DIGEST_SIZE], uint64_t *ret_size,
		      enum fetch_compression *ret_compression, struct error *err)
{
	_cleanup_(staging_copy_done) struct staging_copy c = { .staging = s,
							       .fd = -1,
							       .max = s->max_bytes };
	int r;

	r = staging_copy_start(&c, err);
	if (r == 0)
		r = staging_file(&c, fd, err);
	if (r < 0)
		return r;
	return staging_found(&c, ret_digest, ret_size, ret_compression, err);
}

int staging_put(struct staging *s, const void *data, size_t len, const char *expected,
		char ret_digest[DIGEST_SIZE], struct error *err)
{
	_cleanup_(staging_copy_done) struct staging_copy c = { .staging = s, .fd = -1, .max = len };
	int r;

	r = staging_copy_start(&c, err);
	if (r == 0)
		r = staging_piece(&c, data, len, err);
	if (r < 0)
		return r;
	checksum_end(&c.hash, ret_digest);
	if (expected && !str_eq(ret_digest, expected))
		return error_refuse(err, ERROR_INVALID, "blob %s has the digest %s", expected,
				    ret_digest);
	return staging_copy_end(&c, ret_digest, err);
}

void staging_done(struct staging *s)
{
	size_t pos = 0;

	for (;;) {
		struct staging_blob *b = map_next(&s->blobs, &pos);

		if (!b)
			break;
		(void)map_remove(&s->blobs, b->digest);
		free(b);
	}
	map_done(&s->blobs);
}
