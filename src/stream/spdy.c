/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/spdy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "stream/spdy_dictionary.h"

#define SPDY_VERSION 3U
#define SPDY_HEAD 8U /* bytes of every frame before its payload */
#define SPDY_CONTROL 0x80000000U
#define SPDY_FLAG_FIN 1U

enum {
	TYPE_SYN_STREAM = 1,
	TYPE_SYN_REPLY = 2,
	TYPE_RST_STREAM = 3,
	TYPE_PING = 6,
	TYPE_GOAWAY = 7,
};

/* Bytes of a frame before its headers. */
#define SYN_STREAM_FIXED 10U

struct spdy {
	z_stream in, out;
	bool has_in, has_out;
	uint32_t data_stream; /* of the frame of data that is under way */
	size_t data_left;
	bool data_fin;
	uint8_t headers[SPDY_HEADERS_MAX]; /* unpacked */
};

static uint32_t spdy_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void spdy_put_u32(uint8_t *p, uint32_t n)
{
	p[0] = (uint8_t)(n >> 24);
	p[1] = (uint8_t)(n >> 16);
	p[2] = (uint8_t)(n >> 8);
	p[3] = (uint8_t)n;
}

struct spdy *spdy_free(struct spdy *s)
{
	if (!s)
		return NULL;
	if (s->has_in)
		(void)inflateEnd(&s->in);
	if (s->has_out)
		(void)deflateEnd(&s->out);
	free(s);
	return NULL;
}

struct spdy *spdy_new(void)
{
	struct spdy *s = calloc(1, sizeof(*s));
	size_t len;
	const uint8_t *words;

	if (!s)
		return NULL;
	s->has_in = inflateInit(&s->in) == Z_OK;
	s->has_out = deflateInit(&s->out, Z_BEST_SPEED) == Z_OK;
	words = spdy_dictionary(&len);
	if (!s->has_in || !s->has_out || deflateSetDictionary(&s->out, words, (uInt)len) != Z_OK)
		return spdy_free(s);
	return s;
}

/* ---- headers ---- */

/* All of one block is there: what it unpacks to, and no more. */
static int spdy_unpack(struct spdy *s, const uint8_t *data, size_t len, size_t *ret_len)
{
	bool had_dictionary = false;

	s->in.next_in = (uint8_t *)(uintptr_t)data;
	s->in.avail_in = (uInt)len;
	s->in.next_out = s->headers;
	s->in.avail_out = sizeof(s->headers);
	while (s->in.avail_in > 0) {
		int r = inflate(&s->in, Z_SYNC_FLUSH);
		size_t n;
		const uint8_t *words = spdy_dictionary(&n);

		if (r == Z_NEED_DICT && !had_dictionary) {
			had_dictionary = true;
			if (inflateSetDictionary(&s->in, words, (uInt)n) != Z_OK)
				return -EPROTO;
			continue;
		}
		if (r == Z_MEM_ERROR)
			return -ENOMEM;
		if (r != Z_OK)
			return s->in.avail_out == 0 ? -ENOBUFS : -EPROTO;
	}
	*ret_len = sizeof(s->headers) - s->in.avail_out;
	return s->in.avail_out == 0 ? -ENOBUFS : 0;
}

/* A length and so many bytes: what is behind it, or NULL. */
static const uint8_t *spdy_text(const uint8_t *p, const uint8_t *end, const char **ret,
				size_t *ret_len)
{
	size_t n;

	if (end - p < 4)
		return NULL;
	n = spdy_u32(p);
	p += 4;
	if ((size_t)(end - p) < n)
		return NULL;
	*ret = (const char *)p;
	*ret_len = n;
	return p + n;
}

static bool spdy_is(const char *name, size_t len, const char *want)
{
	return len == strlen(want) && memcmp(name, want, len) == 0;
}

/* A value that is longer, or has a byte 0 (a list), is no value that is known here. */
static void spdy_keep(char to[SPDY_VALUE_MAX], const char *value, size_t len)
{
	if (len < SPDY_VALUE_MAX && !memchr(value, '\0', len))
		(void)str_printf(to, SPDY_VALUE_MAX, "%.*s", (int)len, value);
}

static int spdy_read_headers(const uint8_t *p, size_t len, struct spdy_event *ret)
{
	const uint8_t *end = p + len;
	uint32_t n;

	if (len < 4)
		return -EPROTO;
	n = spdy_u32(p);
	p += 4;
	for (; n > 0; n--) {
		const char *name, *value;
		size_t name_len, value_len;

		p = spdy_text(p, end, &name, &name_len);
		if (p)
			p = spdy_text(p, end, &value, &value_len);
		if (!p)
			return -EPROTO;
		/* The client lowers their letters. */
		if (spdy_is(name, name_len, "streamtype"))
			spdy_keep(ret->stream_type, value, value_len);
		else if (spdy_is(name, name_len, "port"))
			spdy_keep(ret->port, value, value_len);
		else if (spdy_is(name, name_len, "requestid"))
			spdy_keep(ret->request_id, value, value_len);
	}
	return p == end ? 0 : -EPROTO;
}

/* ---- what comes ---- */

static int spdy_take_open(struct spdy *s, const uint8_t *payload, size_t len,
			  struct spdy_event *ret)
{
	size_t n = 0;
	int r;

	if (len < SYN_STREAM_FIXED)
		return -EPROTO;
	ret->kind = SPDY_OPEN;
	ret->stream = spdy_u32(payload) & SPDY_STREAM_MAX;
	r = spdy_unpack(s, payload + SYN_STREAM_FIXED, len - SYN_STREAM_FIXED, &n);
	return r < 0 ? r : spdy_read_headers(s->headers, n, ret);
}

static int spdy_take_control(struct spdy *s, unsigned type, const uint8_t *payload, size_t len,
			     struct spdy_event *ret)
{
	if (type == TYPE_SYN_STREAM)
		return spdy_take_open(s, payload, len, ret);
	ret->kind = type == TYPE_RST_STREAM ? SPDY_RESET
		    : type == TYPE_PING     ? SPDY_PING
		    : type == TYPE_GOAWAY   ? SPDY_GOAWAY
					    : SPDY_OTHER;
	if (ret->kind == SPDY_OTHER)
		return 0;
	if (len < 4)
		return -EPROTO;
	ret->stream = spdy_u32(payload);
	return 0;
}

/* The next piece of the frame of data that is under way. */
static int spdy_take_piece(struct spdy *s, const uint8_t *data, size_t len, size_t *used,
			   struct spdy_event *ret)
{
	size_t n = MIN(len, s->data_left);

	if (n == 0 && s->data_left > 0)
		return 0;
	s->data_left -= n;
	*used += n;
	ret->kind = SPDY_DATA;
	ret->stream = s->data_stream;
	ret->data = data;
	ret->len = n;
	ret->fin = s->data_left == 0 && s->data_fin;
	return 1;
}

int spdy_take(struct spdy *s, const uint8_t *data, size_t len, size_t *used, struct spdy_event *ret)
{
	uint32_t first, second;
	size_t payload;
	int r;

	*used = 0;
	*ret = (struct spdy_event){ .kind = SPDY_OTHER };
	if (s->data_left > 0)
		return spdy_take_piece(s, data, len, used, ret);
	if (len < SPDY_HEAD)
		return 0;
	first = spdy_u32(data);
	second = spdy_u32(data + 4);
	payload = second & 0xffffff;
	if (!(first & SPDY_CONTROL)) {
		s->data_stream = first;
		s->data_left = payload;
		s->data_fin = (second >> 24 & SPDY_FLAG_FIN) != 0;
		*used = SPDY_HEAD;
		if (payload > 0 && len == SPDY_HEAD)
			return 1; /* the head alone: an event that is nothing */
		return spdy_take_piece(s, data + SPDY_HEAD, len - SPDY_HEAD, used, ret);
	}
	if ((first >> 16 & 0x7fff) != SPDY_VERSION)
		return -EPROTO;
	if (payload > SPDY_HEADERS_MAX)
		return -ENOBUFS;
	if (len - SPDY_HEAD < payload)
		return 0;
	r = spdy_take_control(s, first & 0xffff, data + SPDY_HEAD, payload, ret);
	ret->fin = (second >> 24 & SPDY_FLAG_FIN) != 0;
	*used = SPDY_HEAD + payload;
	return r < 0 ? r : 1;
}

/* ---- what goes ---- */

static int spdy_put(struct buf *to, unsigned type, const uint8_t *payload, size_t len)
{
	uint8_t head[SPDY_HEAD];
	int r;

	spdy_put_u32(head, SPDY_CONTROL | SPDY_VERSION << 16 | type);
	spdy_put_u32(head + 4, (uint32_t)len);
	r = buf_add(to, head, sizeof(head));
	return r < 0 ? r : buf_add(to, payload, len);
}

int spdy_put_reply(struct spdy *s, struct buf *to, uint32_t stream)
{
	uint8_t none[4] = { 0 }, payload[256];

	spdy_put_u32(payload, stream);
	s->out.next_in = none;
	s->out.avail_in = sizeof(none);
	s->out.next_out = payload + 4;
	s->out.avail_out = sizeof(payload) - 4;
	if (deflate(&s->out, Z_SYNC_FLUSH) != Z_OK || s->out.avail_out == 0)
		return -EIO;
	return spdy_put(to, TYPE_SYN_REPLY, payload, sizeof(payload) - s->out.avail_out);
}

int spdy_put_data(struct buf *to, uint32_t stream, const void *data, size_t len, bool fin)
{
	uint8_t head[SPDY_HEAD];
	int r;

	assert(len <= 0xffffff);
	spdy_put_u32(head, stream);
	spdy_put_u32(head + 4, (uint32_t)len | (fin ? SPDY_FLAG_FIN << 24 : 0));
	r = buf_add(to, head, sizeof(head));
	return r < 0 ? r : buf_add(to, data, len);
}

int spdy_put_reset(struct buf *to, uint32_t stream, uint32_t status)
{
	uint8_t payload[8];

	spdy_put_u32(payload, stream);
	spdy_put_u32(payload + 4, status);
	return spdy_put(to, TYPE_RST_STREAM, payload, sizeof(payload));
}

int spdy_put_ping(struct buf *to, uint32_t number)
{
	uint8_t payload[4];

	spdy_put_u32(payload, number);
	return spdy_put(to, TYPE_PING, payload, sizeof(payload));
}

int spdy_put_goaway(struct buf *to, uint32_t last)
{
	uint8_t payload[8] = { 0 };

	spdy_put_u32(payload, last);
	return spdy_put(to, TYPE_GOAWAY, payload, sizeof(payload));
}
