/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/talk.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "stream/websocket.h"
#include "unit.h"

#define CHECK_OK(r) CHECK_INT(r, 0)

static const struct upgrade channels = { .kind = UPGRADE_CHANNELS,
					 .is_websocket = true,
					 .version = 5 };
static const struct upgrade old_channels = { .kind = UPGRADE_CHANNELS,
					     .is_websocket = true,
					     .version = 4 };
static const struct upgrade tunnel = { .kind = UPGRADE_TUNNEL, .is_websocket = true };
static const struct upgrade spdy = { .kind = UPGRADE_SPDY };

/* A frame with a mask of zeros. */
static void put_frame(struct buf *to, unsigned first, const void *data, size_t len)
{
	const uint8_t head[6] = { (uint8_t)first, (uint8_t)(0x80 | len) };

	CHECK_OK(buf_add(to, head, sizeof(head)));
	CHECK_OK(buf_add(to, data, len));
}

/* Each event in words: "3:bytes", and "!" with the end of the stream. The error in the end. */
static int hear_all(struct talk *t, struct buf *in, struct buf *said)
{
	for (;;) {
		struct spdy_event e;
		int r = talk_take(t, in, &e);

		if (r <= 0)
			return r;
		if (e.kind == SPDY_DATA)
			CHECK_OK(buf_addf(said, "%u:%.*s%s ", e.stream, (int)e.len,
					  (const char *)e.data, e.fin ? "!" : ""));
		CHECK(e.kind != SPDY_PING);
	}
}

static void check_bytes(struct buf *b, const char *want, size_t len)
{
	CHECK_INT(b->len, len);
	CHECK(b->len == len && memcmp(buf_data(b), want, len) == 0);
	buf_clear(b);
}

#define CHECK_BYTES(b, want) check_bytes(b, want, sizeof(want) - 1)

static void hears_channels(void)
{
	const struct upgrade *kinds[] = { &channels, &old_channels };

	for (unsigned i = 0; i < 2; i++) {
		_cleanup_str_ char *words = NULL;
		_cleanup_(buf_done) struct buf in = BUF_INIT;
		_cleanup_(buf_done) struct buf out = BUF_INIT;
		_cleanup_(buf_done) struct buf said = BUF_INIT;
		struct talk *t = talk_new(kinds[i], &out);

		CHECK(t);
		if (!t)
			return;
		put_frame(&in, 0x82, "\0one", 4);
		put_frame(&in, 0x82, "", 0);
		put_frame(&in, 0x02, "\4", 1);
		put_frame(&in, 0x89, "?", 1);
		put_frame(&in, 0x80, "{}", 2);
		put_frame(&in, 0x82, "\xff\0", 2);
		put_frame(&in, 0x88, "\3\xe9", 2);
		CHECK_INT(hear_all(t, &in, &said), -ESHUTDOWN);
		/* Of an old client that is a channel that nobody has. */
		words = buf_take_str(&said);
		CHECK_STR(words, i == 0 ? "1:one 5: 5:{} 1:! " : "1:one 5: 5:{} 256: ");
		CHECK_BYTES(&out, "\x8a\1?");
		CHECK_OK(talk_close(t, -ESHUTDOWN));
		CHECK_OK(talk_close(t, 0));
		CHECK_BYTES(&out, "\x88\2\3\xe9");
		(void)talk_free(t);
	}
}

static void says_channels(void)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct talk *t = talk_new(&channels, &out);

	CHECK(t);
	if (!t)
		return;
	CHECK_OK(talk_accept(t, 1));
	CHECK_INT(talk_reset(t, 1, SPDY_CANCEL), -EOPNOTSUPP);
	CHECK_OK(talk_data(t, 2, "", 0, true));
	CHECK_INT(out.len, 0);
	CHECK_OK(talk_data(t, 2, "", 0, false));
	CHECK_OK(talk_data(t, 4, "x", 1, true));
	CHECK_OK(talk_pulse(t));
	CHECK_BYTES(&out, "\x82\1\1\x82\2\3x\x8a\0");
	CHECK_OK(talk_close(t, -EMSGSIZE));
	CHECK_BYTES(&out, "\x88\x21\3\xf1"
			  "a message is longer than 32 MiB");
	(void)talk_free(t);
}

/* What is one message, in messages of `step` bytes. */
static void hears_a_tunnel(void)
{
	static const char frames[] = "\0\0\0\3\0\0\0\5hello\x80\3\0\6\0\0\0\4\0\0\0\7"
				     "\0\0\0\3\1\0\0\0";

	for (size_t step = 1; step < sizeof(frames); step++) {
		_cleanup_(buf_done) struct buf in = BUF_INIT;
		_cleanup_(buf_done) struct buf out = BUF_INIT;
		_cleanup_(buf_done) struct buf said = BUF_INIT;
		struct talk *t = talk_new(&tunnel, &out);
		size_t n = 0;

		CHECK(t);
		if (!t)
			return;
		for (size_t at = 0; at < sizeof(frames) - 1; at += step)
			put_frame(&in, 0x82, frames + at, MIN(step, sizeof(frames) - 1 - at));
		CHECK_OK(hear_all(t, &in, &said));
		CHECK(said.len >= 4 && memcmp(buf_data(&said) + said.len - 4, "3:! ", 4) == 0);
		for (size_t i = 0; i < said.len; i++)
			n += strchr("helo", buf_data(&said)[i]) != NULL;
		CHECK_INT(n, 5);
		/* The ping is answered inside of a message. */
		CHECK_BYTES(&out, "\x82\x0c\x80\3\0\6\0\0\0\4\0\0\0\7");
		CHECK_OK(talk_data(t, 3, "x", 1, true));
		CHECK_OK(talk_reset(t, 5, SPDY_REFUSED));
		CHECK_BYTES(&out, "\x82\x09\0\0\0\3\1\0\0\1x\x82\x10\x80\3\0\3\0\0\0\x08\0\0\0\5"
				  "\0\0\0\3");
		/* And what is no SPDY ends it. */
		put_frame(&in, 0x82, "\x80\2\0\1\0\0\0\0", 8);
		CHECK_INT(hear_all(t, &in, &said), -EPROTO);
		(void)talk_free(t);
	}
}

static void says_spdy(void)
{
	_cleanup_(buf_done) struct buf in = BUF_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	_cleanup_(buf_done) struct buf said = BUF_INIT;
	struct talk *t = talk_new(&spdy, &out);

	CHECK(t);
	if (!t)
		return;
	CHECK_OK(buf_add(&in, "\x80\3\0\6\0\0\0\4\0\0\0\7\0\0\0\1\1\0\0\2hi", 22));
	CHECK_OK(hear_all(t, &in, &said));
	CHECK_BYTES(&said, "1:hi! ");
	CHECK_INT(in.len, 0);
	CHECK_BYTES(&out, "\x80\3\0\6\0\0\0\4\0\0\0\7");
	CHECK_OK(talk_pulse(t));
	CHECK_OK(talk_close(t, 0));
	CHECK_INT(out.len, 0);
	(void)talk_free(t);
}

UNIT_MAIN({ "hears_channels", hears_channels }, { "says_channels", says_channels },
	  { "hears_a_tunnel", hears_a_tunnel }, { "says_spdy", says_spdy })
