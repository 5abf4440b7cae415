/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/spdy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "stream/spdy_dictionary.h"
#include "unit.h"

/* A client: it packs headers as one does. */
static z_stream client;

static void client_begin(void)
{
	size_t len;
	const uint8_t *words = spdy_dictionary(&len);

	memset(&client, 0, sizeof(client));
	CHECK_INT(deflateInit(&client, 9), Z_OK);
	CHECK_INT(deflateSetDictionary(&client, words, (uInt)len), Z_OK);
}

static void put_text(struct buf *to, const char *text)
{
	const uint8_t head[4] = { 0, 0, (uint8_t)(strlen(text) >> 8), (uint8_t)strlen(text) };

	CHECK_INT(buf_add(to, head, sizeof(head)), 0);
	CHECK_INT(buf_add(to, text, strlen(text)), 0);
}

/* A SYN_STREAM with so many pairs of this name and value. */
static void put_open(struct buf *to, uint8_t id, const char *name, const char *value, uint8_t n)
{
	static uint8_t packed[65536];
	_cleanup_(buf_done) struct buf block = BUF_INIT;
	const uint8_t count[4] = { 0, 0, 0, n };
	uint8_t head[18] = { 0x80, 3, 0, 1 };
	size_t len;

	CHECK_INT(buf_add(&block, count, sizeof(count)), 0);
	for (unsigned i = 0; i < n; i++) {
		put_text(&block, name);
		put_text(&block, value);
	}
	client.next_in = (uint8_t *)(uintptr_t)buf_data(&block);
	client.avail_in = (uInt)block.len;
	client.next_out = packed;
	client.avail_out = sizeof(packed);
	CHECK_INT(deflate(&client, Z_SYNC_FLUSH), Z_OK);
	len = sizeof(packed) - client.avail_out;
	head[6] = (uint8_t)((len + 10) >> 8);
	head[7] = (uint8_t)(len + 10);
	head[11] = id;
	CHECK_INT(buf_add(to, head, sizeof(head)), 0);
	CHECK_INT(buf_add(to, packed, len), 0);
}

static void reads_what_a_client_opens(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct spdy *s = spdy_new();
	struct spdy_event e;
	size_t used;

	client_begin();
	put_open(&b, 1, "streamtype", "stdin", 1);
	put_open(&b, 3, "port", "8080", 1);
	put_open(&b, 5, "requestid", "4", 1);
	for (size_t n = 0; n < 20; n++)
		CHECK_INT(spdy_take(s, buf_data(&b), n, &used, &e), 0);
	CHECK_INT(spdy_take(s, buf_data(&b), b.len, &used, &e), 1);
	CHECK_INT(e.kind, SPDY_OPEN);
	CHECK_INT(e.stream, 1);
	CHECK_STR(e.stream_type, "stdin");
	buf_consume(&b, used);
	CHECK_INT(spdy_take(s, buf_data(&b), b.len, &used, &e), 1);
	CHECK_STR(e.port, "8080");
	CHECK_STR(e.stream_type, "");
	buf_consume(&b, used);
	CHECK_INT(spdy_take(s, buf_data(&b), b.len, &used, &e), 1);
	CHECK_STR(e.request_id, "4");
	(void)deflateEnd(&client);
	(void)spdy_free(s);
}

static void tells_data_piece_by_piece(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char got[16] = "";
	struct spdy *s = spdy_new();
	struct spdy_event e = { .fin = false };
	size_t used, at = 0, n = 0;

	CHECK_INT(spdy_put_data(&b, 7, "hello", 5, true), 0);
	CHECK_INT(spdy_put_data(&b, 9, "", 0, true), 0);
	while (!e.fin) {
		int r = spdy_take(s, buf_data(&b) + at, MIN(b.len - at, (size_t)9), &used, &e);

		CHECK_INT(r, 1);
		at += used;
		if (e.kind != SPDY_DATA)
			continue;
		CHECK_INT(e.stream, 7);
		memcpy(got + n, e.data, e.len);
		n += e.len;
	}
	CHECK_STR(got, "hello");
	CHECK_INT(spdy_take(s, buf_data(&b) + at, b.len - at, &used, &e), 1);
	CHECK_INT(e.stream, 9);
	CHECK(e.fin && e.len == 0);
	(void)spdy_free(s);
}

static void refuses_what_is_none(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		int result;
	} bad[] = {
		{ "\x80\x02\0\1\0\0\0\0", 8, -EPROTO },        /* version 2 */
		{ "\x80\x03\0\1\0\0\0\0", 8, -EPROTO },        /* shorter than it can be */
		{ "\x80\x03\0\1\0\xff\xff\xff", 8, -ENOBUFS }, /* too long */
		{ "\x80\x03\0\3\0\0\0\2\0\0", 10, -EPROTO },   /* a reset without a number */
		{ "\x80\x03\0\1\0\0\0\x0e\0\0\0\1\0\0\0\0\0\0junk", 22, -EPROTO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct spdy *s = spdy_new();
		struct spdy_event e;
		size_t used;

		CHECK_INT(spdy_take(s, (const uint8_t *)bad[i].bytes, bad[i].len, &used, &e),
			  bad[i].result);
		(void)spdy_free(s);
	}
}

/* A few bytes that unpack to a lot. */
static void refuses_a_bomb(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct spdy *s = spdy_new();
	char value[1001];
	struct spdy_event e;
	size_t used;

	memset(value, 'a', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	client_begin();
	put_open(&b, 1, "x", value, 200);
	CHECK(b.len < 4096);
	CHECK_INT(spdy_take(s, buf_data(&b), b.len, &used, &e), -ENOBUFS);
	(void)deflateEnd(&client);
	(void)spdy_free(s);
}

static void answers(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct spdy *s = spdy_new(), *other = spdy_new();
	struct spdy_event e;
	size_t used;

	CHECK_INT(spdy_put_reply(s, &b, 1), 0);
	CHECK_INT(spdy_put_reset(&b, 3, SPDY_REFUSED), 0);
	CHECK_INT(spdy_put_ping(&b, 5), 0);
	CHECK_INT(spdy_put_goaway(&b, 7), 0);
	CHECK_INT(spdy_take(other, buf_data(&b), b.len, &used, &e), 1);
	CHECK_INT(e.kind, SPDY_OTHER);
	buf_consume(&b, used);
	CHECK_INT(spdy_take(other, buf_data(&b), b.len, &used, &e), 1);
	CHECK_INT(e.kind, SPDY_RESET);
	CHECK_INT(e.stream, 3);
	buf_consume(&b, used);
	CHECK_INT(spdy_take(other, buf_data(&b), b.len, &used, &e), 1);
	CHECK_INT(e.kind, SPDY_PING);
	CHECK_INT(e.stream, 5);
	buf_consume(&b, used);
	CHECK_INT(spdy_take(other, buf_data(&b), b.len, &used, &e), 1);
	CHECK_INT(e.kind, SPDY_GOAWAY);
	(void)spdy_free(s);
	(void)spdy_free(other);
}

static void the_dictionary_is_that_of_the_format(void)
{
	size_t len;
	const uint8_t *words = spdy_dictionary(&len);

	CHECK_INT(len, 1423);
	/* RFC 1950 has this number in what was packed with it. */
	CHECK_INT(adler32(adler32(0, NULL, 0), words, (uInt)len), 0xe3c6a7c2);
}

UNIT_MAIN({ "reads_what_a_client_opens", reads_what_a_client_opens },
	  { "tells_data_piece_by_piece", tells_data_piece_by_piece },
	  { "refuses_what_is_none", refuses_what_is_none }, { "refuses_a_bomb", refuses_a_bomb },
	  { "answers", answers },
	  { "the_dictionary_is_that_of_the_format", the_dictionary_is_that_of_the_format })
