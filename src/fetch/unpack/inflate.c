/* SPDX-License-Identifier: Apache-2.0 */

/* So that a decoder of zstd can be told where its memory comes from. */
#define ZSTD_STATIC_LINKING_ONLY

#include "fetch/unpack/inflate.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/unpack/follow.h"
#include "fetch/unpack/memory.h"

#define INFLATE_GZIP_FIRST 0x1f

struct inflate {
	struct inflate_config config;
	struct error no_memory; /* why there is none for a window */
	uint8_t *own;           /* the piece of one who shares none */
	uint8_t *input;
	size_t pos, len;
	bool input_ended;
	bool in_frame; /* a gzip member or zstd frame has begun and not ended */
	bool any;      /* one has ended */
	bool ended;
	uint64_t n_in, n_out;
	struct inflate_state *gzip;
	ZSTD_DCtx *zstd;
};

/* How what programs have compressed begins. Those that are not read here are known by name. */
static const struct {
	const char *name;
	bool is_read;
	enum fetch_compression compression;
	size_t at, len;
	uint8_t bytes[6];
} inflate_forms[] = {
	{ "gzip", true, FETCH_GZIP, 0, 2, { INFLATE_GZIP_FIRST, 0x8b } },
	{ "zstd", true, FETCH_ZSTD, 0, 4, { 0x28, 0xb5, 0x2f, 0xfd } },
	{ "xz", false, FETCH_PLAIN, 0, 6, { 0xfd, '7', 'z', 'X', 'Z', 0 } },
	/* "BZh", a digit, and the digits of pi. */
	{ "bzip2", false, FETCH_PLAIN, 4, 6, { 0x31, 0x41, 0x59, 0x26, 0x53, 0x59 } },
};

static size_t inflate_form(const uint8_t *data, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(inflate_forms); i++) {
		size_t at = inflate_forms[i].at, n = inflate_forms[i].len;

		if (len >= at + n && memcmp(data + at, inflate_forms[i].bytes, n) == 0 &&
		    (at == 0 || memcmp(data, "BZh", 3) == 0))
			break;
	}
	return i;
}

enum fetch_compression inflate_guess(const uint8_t *data, size_t len)
{
	size_t form = inflate_form(data, len);

	return form < ARRAY_SIZE(inflate_forms) ? inflate_forms[form].compression : FETCH_PLAIN;
}

/* Before a decoder is lost for words. A tar begins with a name, which no program would make so. */
int inflate_check_form(enum fetch_compression said, const uint8_t *data, size_t len,
		       struct error *err)
{
	static const char *const says[] = {
		[FETCH_PLAIN] = "it is not compressed",
		[FETCH_GZIP] = "gzip",
		[FETCH_ZSTD] = "zstd",
	};
	size_t form = inflate_form(data, len);

	if (form == ARRAY_SIZE(inflate_forms))
		return 0;
	if (!inflate_forms[form].is_read)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "the data is compressed with %s, which is not read here: "
				    "gzip and zstd are; recompress it with one of these",
				    inflate_forms[form].name);
	if (inflate_forms[form].compression == said)
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "the data is compressed with %s, though its type says %s",
			    inflate_forms[form].name, says[said]);
}

/* With the header that belongs to gzip, and the checksum at its end. */
static void inflate_begin_member(struct inflate *i)
{
	isal_inflate_init(i->gzip);
	i->gzip->crc_flag = ISAL_GZIP;
}

/* A window, unlike all else, is longer than what nobody asks for. */
static void *inflate_zstd_alloc(void *userdata, size_t size)
{
	struct inflate *i = userdata;

	if (i->config.memory && memory_ask(i->config.memory, size, &i->no_memory) < 0)
		return NULL;
	return malloc(size);
}

static void inflate_zstd_free(void *userdata, void *memory)
{
	free(memory);
}

static int inflate_setup_zstd(struct inflate *i)
{
	const ZSTD_customMem mem = { inflate_zstd_alloc, inflate_zstd_free, i };

	i->zstd = ZSTD_createDCtx_advanced(mem);
	if (!i->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(i->zstd, ZSTD_d_windowLogMax,
							    INFLATE_ZSTD_WINDOW_LOG)))
		return -ENOMEM;
	return 0;
}

static int inflate_setup(struct inflate *i)
{
	if (!i->config.pieces) {
		i->own = malloc(INFLATE_INPUT);
		if (!i->own)
			return -ENOMEM;
	}
	if (i->config.compression == FETCH_GZIP) {
		i->gzip = malloc(sizeof(*i->gzip));
		if (!i->gzip)
			return -ENOMEM;
		inflate_begin_member(i);
	}
	return i->config.compression == FETCH_ZSTD ? inflate_setup_zstd(i) : 0;
}

int inflate_new(struct inflate **ret, const struct inflate_config *config, struct error *err)
{
	struct inflate *i = calloc(1, sizeof(*i));
	int r;

	if (!i)
		return error_set(err, -ENOMEM, "begin to decompress");
	*i = (struct inflate){ .config = *config, .no_memory = ERROR_INIT };
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
	(void)ZSTD_freeDCtx(i->zstd);
	free(i->gzip);
	free(i->own);
	free(i);
	return NULL;
}

/* Into a piece: bytes, or 0 at the end. */
static ssize_t inflate_read_piece(struct inflate *i, uint8_t *piece, struct error *err)
{
	struct follow *follow = i->config.follow;
	size_t size = INFLATE_INPUT;
	ssize_t n;
	int r;

	if (follow) {
		r = follow_wait(follow, i->n_in, err);
		if (r < 0)
			return r;
		if (follow->good > i->n_in)
			size = MIN(size, follow->good - i->n_in);
	}
	do {
		n = sysio_read(i->config.fd, piece, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? error_set(err, -errno, "read the blob") : n;
}

static int inflate_fill(struct inflate *i, struct error *err)
{
	const struct inflate_pieces *pieces = i->config.pieces;
	bool first = i->n_in == 0;
	uint8_t *piece;
	ssize_t n;

	if (i->pos < i->len || i->input_ended)
		return 0;
	piece = pieces ? pieces->take(pieces->userdata) : i->own;
	if (!piece)
		return error_set(err, -ECANCELED, "read the blob");
	n = inflate_read_piece(i, piece, err);
	if (n < 0)
		return (int)n;
	i->input_ended = n == 0;
	i->input = piece;
	i->pos = 0;
	i->len = (size_t)n;
	i->n_in += (uint64_t)n;
	if (pieces && n > 0)
		pieces->filled(pieces->userdata, (size_t)n);
	return first ? inflate_check_form(i->config.compression, piece, (size_t)n, err) : 0;
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

static int inflate_gzip_damaged(int code, struct error *err)
{
	static const struct {
		int code;
		const char *text;
	} texts[] = {
		{ ISAL_INVALID_BLOCK, "wrong block" },
		{ ISAL_INVALID_SYMBOL, "wrong symbol" },
		{ ISAL_INVALID_LOOKBACK, "a distance too far back" },
		{ ISAL_INVALID_WRAPPER, "wrong header" },
		{ ISAL_UNSUPPORTED_METHOD, "unknown method" },
		{ ISAL_INCORRECT_CHECKSUM, "wrong checksum" },
	};
	const char *text = "unknown fault";

	for (size_t n = 0; n < ARRAY_SIZE(texts); n++)
		if (texts[n].code == code)
			text = texts[n].text;
	return error_refuse(err, ERROR_INVALID, "the gzip data is damaged (%s)", text);
}

static ssize_t inflate_step_gzip(struct inflate *i, uint8_t *to, size_t size, struct error *err)
{
	int rc;

	if (i->input_ended && !i->in_frame) {
		if (!i->any)
			return inflate_cut(err);
		i->ended = true;
		return 0;
	}
	/* Asked here, since the decoder waits for a whole header before it looks at it. */
	if (!i->in_frame && i->input[i->pos] != INFLATE_GZIP_FIRST)
		return inflate_gzip_damaged(ISAL_INVALID_WRAPPER, err);
	if (!i->in_frame && i->any)
		inflate_begin_member(i);
	i->in_frame = true;
	i->gzip->next_in = i->input + i->pos;
	i->gzip->avail_in = (uint32_t)(i->len - i->pos);
	i->gzip->next_out = to;
	i->gzip->avail_out = (uint32_t)size;
	rc = isal_inflate(i->gzip);
	/* A dictionary belongs to zlib's format alone. */
	if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT)
		return inflate_gzip_damaged(rc, err);
	i->pos = i->len - i->gzip->avail_in;
	i->in_frame = i->gzip->block_state != ISAL_BLOCK_FINISH;
	i->any = i->any || !i->in_frame;
	/* At the end of the input the decoder may still hold what did not fit into `to` before. */
	if (i->input_ended && i->in_frame && i->gzip->avail_out == size)
		return inflate_cut(err);
	return (ssize_t)(size - i->gzip->avail_out);
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
	if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
		return error_refuse(err, ERROR_INVALID,
				    "the zstd data wants a window of more than %u MiB",
				    1U << (INFLATE_ZSTD_WINDOW_LOG - 20));
	if (ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation)
		return i->no_memory.code ? error_copy(err, &i->no_memory)
					 : error_set(err, -ENOMEM, "decompress");
	if (ZSTD_isError(rc))
		return error_refuse(err, ERROR_INVALID, "the zstd data is damaged (%s)",
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
	if (i->n_out > i->config.max_out)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "more than %llu bytes come out of the compressed data",
				    (unsigned long long)i->config.max_out);
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
		n = inflate_steps[i->config.compression](i, to, size, err);
	}
	if (n <= 0)
		return n;
	i->n_out += (uint64_t)n;
	r = inflate_check_limits(i, err);
	return r < 0 ? r : n;
}

uint64_t inflate_n_in(const struct inflate *i)
{
	return i->n_in;
}

uint64_t inflate_n_out(const struct inflate *i)
{
	return i->n_out;
}
