/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/gzip.h"

#include <errno.h>

/* Makes zlib promise not to write to its input. */
#define ZLIB_CONST
#include <zlib.h>

/* Of zlib's window of 32 KiB, with a gzip head. */
#define GZIP_WINDOW (15 + 16)
#define GZIP_MEMORY 8
#define GZIP_PIECE (32U * 1024)

static int gzip_errno(int r)
{
	return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int gzip_inflate_all(z_stream *z, struct buf *out, size_t max)
{
	uint8_t *to;
	size_t room, made = 0;
	int r;

	for (;;) {
		/* One byte more than is allowed tells too much from just enough. */
		room = MIN((size_t)GZIP_PIECE, max + 1 - made);
		r = buf_reserve(out, room, &to);
		if (r < 0)
			return -ENOMEM;
		z->next_out = to;
		z->avail_out = (uInt)room;
		r = inflate(z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END)
			return gzip_errno(r);
		buf_added(out, room - z->avail_out);
		made += room - z->avail_out;
		if (made > max)
			return -EMSGSIZE;
		if (r == Z_STREAM_END)
			return z->avail_in == 0 ? 0 : -EBADMSG;
	}
}

int gzip_inflate(struct buf *out, const uint8_t *data, size_t len, size_t max)
{
	z_stream z = { .next_in = data, .avail_in = (uInt)len };
	int r = inflateInit2(&z, GZIP_WINDOW);

	if (r != Z_OK)
		return gzip_errno(r);
	r = gzip_inflate_all(&z, out, max);
	(void)inflateEnd(&z);
	return r;
}

int gzip_deflate(struct buf *out, const uint8_t *data, size_t len)
{
	z_stream z = { .next_in = data, .avail_in = (uInt)len };
	uint8_t *to;
	int r = deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			     Z_DEFAULT_STRATEGY);

	if (r != Z_OK)
		return -ENOMEM;
	r = buf_reserve(out, len, &to);
	if (r == 0) {
		z.next_out = to;
		z.avail_out = (uInt)len;
		r = deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : -ENOBUFS;
		if (r == 0)
			buf_added(out, len - z.avail_out);
	}
	(void)deflateEnd(&z);
	return r;
}
