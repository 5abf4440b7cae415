/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/h2frame.h"

#include <errno.h>

#include "base/macros.h"
#include "unit.h"

struct frame {
	uint32_t len;
	uint8_t type, flags;
	uint32_t stream;
};

#define SETTINGS                                                                                   \
	{                                                                                          \
		0, 4, 0, 0                                                                         \
	}

static uint8_t bytes[1 << 18];

/* The frames up to the first without any member; payloads are zero. */
static size_t lay_out(const struct frame *frames, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const struct frame *f = &frames[i];
		const uint8_t head[] = { (uint8_t)(f->len >> 16),
					 (uint8_t)(f->len >> 8),
					 (uint8_t)f->len,
					 f->type,
					 f->flags,
					 (uint8_t)(f->stream >> 24),
					 (uint8_t)(f->stream >> 16),
					 (uint8_t)(f->stream >> 8),
					 (uint8_t)f->stream };

		memcpy(bytes + at, head, sizeof(head));
		memset(bytes + at + sizeof(head), 0, f->len);
		at += sizeof(head) + f->len;
	}
	return at;
}

static bool from_client;

static int feed_in(size_t len, size_t step)
{
	struct h2frame f = { .from_client = from_client };
	int r = 0;

	for (size_t at = 0; r == 0 && at < len; at += step)
		r = h2frame_feed(&f, bytes + at, MIN(step, len - at), NULL);
	CHECK(r < 0 || h2frame_is_whole(&f));
	return r;
}

static const struct frame good[] = {
	{ 36, 4, 0, 0 },    { 0, 4, 1, 0 },     { 4, 8, 0, 0 },          { 20, 1, 4, 1 },
	{ 16384, 0, 0, 1 }, { 0, 0, 1, 1 },     { 8, 6, 0, 0 },          { 16384, 1, 0, 3 },
	{ 0, 9, 0, 3 },     { 16384, 9, 4, 3 }, { 5, 2, 0, 3 },          { 4, 3, 0, 3 },
	{ 4, 8, 0, 3 },     { 8, 7, 0, 0 },     { 1, 1, 4, 0x80000001 }, { 1, 1, 5, INT32_MAX }
};

static void lets_frames_pass(void)
{
	size_t len = lay_out(good, ARRAY_SIZE(good));

	CHECK_INT(feed_in(len, len), 0);
	for (size_t step = 1; step < 40; step++)
		CHECK_INT(feed_in(len, step), 0);
}

static void refuses(void)
{
	static const struct frame bad[][12] = {
		{ { 0, 0, 0, 1 } },                           /* no SETTINGS first */
		{ { 0, 4, 1, 0 } },                           /* only an answer to some */
		{ SETTINGS, { 0, 10, 0, 0 } },                /* unknown types */
		{ SETTINGS, { 0, 255, 0, 1 } },               /* */
		{ SETTINGS, { 16385, 0, 0, 1 } },             /* too long */
		{ SETTINGS, { 4, 5, 4, 1 } },                 /* PUSH_PROMISE */
		{ SETTINGS, { 10, 0, 0, 0 } },                /* DATA on the connection */
		{ SETTINGS, { 10, 0, 0, 2 } },                /* on a stream of the server */
		{ SETTINGS, { 1, 1, 4, 0 } },                 /* HEADERS on the connection */
		{ SETTINGS, { 8, 6, 0, 1 } },                 /* PING on a stream */
		{ SETTINGS, { 7, 6, 0, 0 } },                 /* of another length */
		{ SETTINGS, { 6, 4, 0, 1 } },                 /* SETTINGS on a stream */
		{ { 7, 4, 0, 0 } },                           /* of another length */
		{ SETTINGS, { 6, 4, 1, 0 } },                 /* an answer with settings */
		{ SETTINGS, { 246, 4, 0, 0 } },               /* too many of them */
		{ SETTINGS, { 5, 3, 0, 1 } },                 /* RST_STREAM of another length */
		{ SETTINGS, { 4, 3, 0, 0 } },                 /* on the connection */
		{ SETTINGS, { 3, 8, 0, 1 } },                 /* WINDOW_UPDATE */
		{ SETTINGS, { 4, 2, 0, 1 } },                 /* PRIORITY */
		{ SETTINGS, { 7, 7, 0, 0 } },                 /* GOAWAY */
		{ SETTINGS, { 8, 7, 0, 1 } },                 /* */
		{ SETTINGS, { 1, 9, 4, 1 } },                 /* CONTINUATION of nothing */
		{ SETTINGS, { 1, 1, 0, 1 }, { 0, 0, 0, 1 } }, /* a block that is left */
		{ SETTINGS, { 1, 1, 0, 1 }, { 8, 6, 0, 0 } }, /* */
		{ SETTINGS, { 1, 1, 0, 1 }, { 1, 9, 4, 3 } }, /* or goes on elsewhere */
		{ SETTINGS, { 1, 1, 4, 1 }, { 1, 9, 4, 1 } }, /* or after its end */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t n = 1;

		while (n < ARRAY_SIZE(bad[i]) &&
		       (bad[i][n].len || bad[i][n].type || bad[i][n].stream))
			n++;
		CHECK_INT(feed_in(lay_out(bad[i], n), 1 << 18), -EPROTO);
		if (feed_in(lay_out(bad[i], n), 3) != -EPROTO)
			printf("# case %zu\n", i);
	}
}

static void bounds_a_block(void)
{
	struct frame block[2 + H2FRAME_CONTINUATIONS_MAX + 1] = { SETTINGS, { 1, 1, 0, 1 } };
	size_t last = 1 + H2FRAME_CONTINUATIONS_MAX;

	for (size_t i = 2; i < ARRAY_SIZE(block); i++)
		block[i] = (struct frame){ 1, 9, 0, 1 };
	block[last].flags = 4;
	CHECK_INT(feed_in(lay_out(block, last + 1), 7), 0);
	block[last].flags = 0;
	block[last + 1].flags = 4;
	CHECK_INT(feed_in(lay_out(block, last + 2), 7), -EPROTO);
}

/* A preface, and frames that no server may send; what is wrong of a server is so of a client too.
 */
static void knows_clients(void)
{
	static const struct frame own[] = {
		SETTINGS, { 20, 1, 4, 1 }, { 3, 0x10, 0, 0 }, { 0, 77, 0, 1 }
	};
	static const struct frame long_one[] = { SETTINGS, { 16385, 77, 0, 0 } };
	static const struct frame between[] = { SETTINGS, { 1, 1, 0, 1 }, { 0, 77, 0, 1 } };
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const struct frame *const bad[] = { long_one, between };
	static const size_t n_bad[] = { ARRAY_SIZE(long_one), ARRAY_SIZE(between) };
	struct h2frame f = { .from_client = true };
	size_t len, n = sizeof(preface) - 1;

	from_client = true;
	len = lay_out(own, ARRAY_SIZE(own));
	memmove(bytes + n, bytes, len);
	memcpy(bytes, preface, n);
	for (size_t step = 1; step < 40; step++)
		CHECK_INT(feed_in(n + len, step), 0);
	CHECK_INT(h2frame_feed(&f, bytes, n + 9, NULL), 0);
	CHECK(!f.asked);
	CHECK_INT(h2frame_feed(&f, bytes + n + 9, len - 9, NULL), 0);
	CHECK(f.asked);
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= 0x20;
		CHECK_INT(feed_in(n + len, 5), -EPROTO);
		bytes[i] ^= 0x20;
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		len = lay_out(bad[i], n_bad[i]);
		memmove(bytes + n, bytes, len);
		memcpy(bytes, preface, n);
		CHECK_INT(feed_in(n + len, 6), -EPROTO);
	}
	from_client = false;
}

UNIT_MAIN({ "lets_frames_pass", lets_frames_pass }, { "refuses", refuses },
	  { "bounds_a_block", bounds_a_block }, { "knows_clients", knows_clients })
