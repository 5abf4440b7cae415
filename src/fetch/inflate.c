/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/inflate.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/str.h"
#include "base/sysio.h"
#include "fetch/hash.h"

#define INFLATE_INPUT (128 * 1024)

struct inflate {
	int fd;
	enum fetch_compression compression;
	uint8_t *input;
	size_t pos, len;
	bool input_ended;
	bool in_frame; /* a gzip member or zstd frame has begun and not ended */
	bool any;      /* one has ended */
	bool ended;
	uint64_t n_in, n_out, max_out;
	struct hash hash_in, hash_out;
	z_stream gzip;
	bool gzip_ready;
	ZSTD_DCtx *zstd;
};

enum fetch_compression inflate_guess(const uint8_t *data, size_t len)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b };
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (len >= sizeof(gzip) && memcmp(data, gzip, sizeof(gzip)) == 0)
		return FETCH_GZIP;
	if (len >= sizeof(zstd) && memcmp(data, zstd, sizeof(zstd)) == 0)
		return FETCH_ZSTD;
	return FETCH_PLAIN;
}

static int inflate_setup(struct inflate *i)
{
	if (hash_start(&i->hash_in) < 0 || hash_start(&i->hash_out) < 0)
		return -ENOMEM;
	i->input = malloc(INFLATE_INPUT);
	if (!i->input)
		return -ENOMEM;
	if (i->compression == FETCH_GZIP) {
		/* 15 bits of window and a gzip header. */
		if (inflateInit2(&i->gzip, 15 + 16) != Z_OK)
			return -ENOMEM;
		i->gzip_ready = true;
	}
	if (i->compression == FETCH_ZSTD) {
		i->zstd = ZSTD_createDCtx();
		if (!i->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(i->zstd, ZSTD_d_windowLogMax,
								    INFLATE_ZSTD_WINDOW_LOG)))
			return -ENOMEM;
	}
	return 0;
}

int inflate_new(struct inflate **ret, int fd, enum fetch_compression compression, uint64_t max_out,
		struct error *err)
{
	struct inflate *i = calloc(1, sizeof(*i));
	int r;

	if (!i)
		return error_set(err, -ENOMEM, "begin to decompress");
	*i = (struct inflate){ .fd = fd, .compression = compression, .max_out = max_out };
	r = inflate_setup(i);
	if (r < 0) {
		(void)inflate_free(i);
		return error_set(err, r, "begin to decompress");
	}
	*ret = i;
	return 0;
}

struct inflate *inflate_free(struct inflate *i)
{
	if (!i)
		return NULL;
	if (i->gzip_ready)
		(void)inflateEnd(&i->gzip);
	(void)ZSTD_freeDCtx(i->zstd);
	hash_done(&i->hash_in);
	hash_done(&i->hash_out);
	free(i->input);
	free(i);
	return NULL;
}

static int inflate_fill(struct inflate *i, struct error *err)
{
	ssize_t n;

	if (i->pos < i->len || i->input_ended)
		return 0;
	do {
		n = sysio_read(i->fd, i->input, INFLATE_INPUT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "read the blob");
	i->input_ended = n == 0;
	i->pos = 0;
	i->len = (size_t)n;
	i->n_in += (uint64_t)n;
	hash_add(&i->hash_in, i->input, (size_t)n);
	return 0;
}

static int inflate_cut(struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "the compressed data is cut short");
}

/* Each step uses input and yields n bytes (perhaps 0), and says in i->ended that it was the last
 * one. */
static ssize_t inflate_step_plain(struct inflate *i, uint8_t *to, size_t size, struct error *err)
{
	size_t n = MIN(size, i->len - i->pos);

	memcpy(to, i->input + i->pos, n);
	i->pos += n;
	i->ended = i->input_ended;
	return (ssize_t)n;
}

static ssize_t inflate_step_gzip(struct inflate *i, uint8_t *to, size_t size, struct error *err)
{
	int rc;

	if (i->input_ended) {
		if (i->in_frame || !i->any)
			return inflate_cut(err);
		i->ended = true;
		return 0;
	}
	if (!i->in_frame && i->any && inflateReset(&i->gzip) != Z_OK)
		return error_set(err, -ENOMEM, "decompress");
	i->in_frame = true;
	i->gzip.next_in = i->input + i->pos;
	i->gzip.avail_in = (uInt)(i->len - i->pos);
	i->gzip.next_out = to;
	i->gzip.avail_out = (uInt)size;
	rc = inflate(&i->gzip, Z_NO_FLUSH);
	i->pos = i->len - i->gzip.avail_in;
	if (rc == Z_STREAM_END) {
		i->in_frame = false;
		i->any = true;
	} else if (rc == Z_MEM_ERROR) {
		return error_set(err, -ENOMEM, "decompress");
	} else if (rc != Z_OK && rc != Z_BUF_ERROR) {
		return error_refuse(err, ERROR_INVALID, "the gzip data is damaged (%s)",
				    i->gzip.msg ? i->gzip.msg : "wrong header");
	}
	return (ssize_t)(size - i->gzip.avail_out);
}

static ssize_t inflate_step_zstd(struct inflate *i, uint8_t *to, size_t size, struct error *err)
{
	ZSTD_inBuffer in = { .src = i->input + i->pos, .size = i->len - i->pos };
	ZSTD_outBuffer out = { .dst = to, .size = size };
	size_t rc;

	/* At the end of the input the decoder may still hold what did not fit into `to` before. */
	if (i->input_ended && !i->in_frame) {
		if (!i->any)
			return inflate_cut(err);
		i->ended = true;
		return 0;
	}
	rc = ZSTD_decompressStream(i->zstd, &out, &in);
	if (ZSTD_isError(rc))
		return error_refuse(err, ERROR_INVALID,
				    "the zstd data is damaged or wants too much (%s)",
				    ZSTD_getErrorName(rc));
	i->pos += in.pos;
	i->in_frame = rc != 0;
	i->any = i->any || rc == 0;
	if (i->input_ended && i->in_frame && out.pos == 0)
		return inflate_cut(err);
	return (ssize_t)out.pos;
}

static ssize_t (*const inflate_steps[])(struct inflate *i, uint8_t *to, size_t size,
					struct error *err) = {
	[FETCH_PLAIN] = inflate_step_plain,
	[FETCH_GZIP] = inflate_step_gzip,
	[FETCH_ZSTD] = inflate_step_zstd,
};

static int inflate_check_limits(const struct inflate *i, struct error *err)
{
	if (i->n_out > i->max_out)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "more than %llu bytes come out of the compressed data",
				    (unsigned long long)i->max_out);
	if (i->n_out > INFLATE_RATIO_FROM && i->n_out / INFLATE_RATIO_MAX > i->n_in)
		return error_refuse(
			err, ERROR_EXHAUSTED,
			"the data grows to more than %d times its size when decompressed",
			INFLATE_RATIO_MAX);
	return 0;
}

ssize_t inflate_read(struct inflate *i, void *to, size_t size, struct error *err)
{
	ssize_t n = 0;
	int r;

	while (n == 0 && !i->ended) {
		r = inflate_fill(i, err);
		if (r < 0)
			return r;
		n = inflate_steps[i->compression](i, to, size, err);
	}
	if (n <= 0)
		return n;
	i->n_out += (uint64_t)n;
	hash_add(&i->hash_out, to, (size_t)n);
	r = inflate_check_limits(i, err);
	return r < 0 ? r : n;
}

void inflate_digests(struct inflate *i, char ret_in[DIGEST_SIZE], char ret_out[DIGEST_SIZE])
{
	hash_end(&i->hash_in, ret_in);
	hash_end(&i->hash_out, ret_out);
}

uint64_t inflate_n_in(const struct inflate *i)
{
	return i->n_in;
}

uint64_t inflate_n_out(const struct inflate *i)
{
	return i->n_out;
}
