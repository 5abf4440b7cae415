/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/websocket.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "stream/channels.h"
#include "stream/upgrade.h"
#include "unit.h"

#define CHECK_OK(r) CHECK_INT(r, 0)

static const uint8_t mask[4] = { 0x37, 0xfa, 0x21, 0x3d };

/* A masked frame of a client. */
static void put_frame(struct buf *to, unsigned first, const void *data, size_t len)
{
	size_t at = to->len;

	CHECK_OK(websocket_put_head(to, WEBSOCKET_BINARY, len));
	if (to->len == at)
		return;
	to->base[to->head + at] = (uint8_t)first;
	to->base[to->head + at + 1] |= 0x80;
	CHECK_OK(buf_add(to, mask, sizeof(mask)));
	for (size_t i = 0; i < len; i++) {
		uint8_t c = ((const uint8_t *)data)[i] ^ mask[i % 4];

		CHECK_OK(buf_add(to, &c, 1));
	}
}

/* What all frames of `from` say, in pieces of `step` bytes: the messages one behind the other, each
 * ended by '|', a ping as "(…)", a close as "<code reason>". The first error. */
static int read_all(struct buf *from, size_t step, struct buf *said)
{
	struct websocket *w = websocket_new();
	size_t have = 0;
	int r = w ? 0 : -ENOMEM;

	while (r >= 0 && from->len > 0) {
		struct websocket_event e;
		size_t used;

		have = MIN(have + step, from->len);
		r = websocket_take(w, buf_data(from), have, &used, &e);
		if (r == 0 && have == from->len)
			break;
		if (r <= 0)
			continue;
		if (e.opcode == WEBSOCKET_PING)
			CHECK_OK(buf_addf(said, "(%.*s)", (int)e.len, (const char *)e.data));
		else if (e.opcode == WEBSOCKET_CLOSE)
			CHECK_OK(buf_addf(said, "<%u %.*s>", e.code, (int)e.len,
					  (const char *)e.data));
		else if (e.opcode == WEBSOCKET_BINARY)
			CHECK_OK(buf_add(said, e.data, e.len));
		if (e.ends)
			CHECK_OK(buf_add(said, "|", 1));
		buf_consume(from, used);
		have -= used;
	}
	(void)websocket_free(w);
	return MIN(r, 0);
}

static void reads_messages(void)
{
	for (size_t step = 1; step < 40; step++) {
		_cleanup_(buf_done) struct buf from = BUF_INIT;
		_cleanup_(buf_done) struct buf said = BUF_INIT;
		_cleanup_str_ char *text = NULL;

		put_frame(&from, 0x82, "one", 3);
		put_frame(&from, 0x01, "fr", 2);
		put_frame(&from, 0x89, "ping", 4);
		put_frame(&from, 0x00, "", 0);
		put_frame(&from, 0x80, "agment", 6);
		put_frame(&from, 0x8a, "", 0);
		put_frame(&from, 0x82, "", 0);
		put_frame(&from, 0x88,
			  "\x03\xe8"
			  "bye",
			  5);
		put_frame(&from, 0x88, "", 0);
		CHECK_OK(read_all(&from, step, &said));
		CHECK_INT(from.len, 0);
		text = buf_take_str(&said);
		CHECK_STR(text, "one|fr(ping)agment||<1000 bye><1005 >");
	}
}

static void reads_long_messages(void)
{
	static uint8_t data[70000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (size_t len = 125; len < 70000; len = len < 127 ? len + 1 : len * 8) {
		_cleanup_(buf_done) struct buf from = BUF_INIT;
		_cleanup_(buf_done) struct buf said = BUF_INIT;

		put_frame(&from, 0x82, data, len);
		CHECK_OK(read_all(&from, 1000, &said));
		CHECK_INT(said.len, len + 1);
		CHECK(said.len > len && memcmp(buf_data(&said), data, len) == 0);
	}
}

static int take_bytes(const char *bytes, size_t len)
{
	_cleanup_(buf_done) struct buf from = BUF_INIT;
	_cleanup_(buf_done) struct buf said = BUF_INIT;
	int r;

	CHECK_OK(buf_add(&from, bytes, len));
	r = read_all(&from, 1, &said);
	return r;
}

#define TAKE(bytes) take_bytes(bytes, sizeof(bytes) - 1)

static void refuses_what_is_none(void)
{
	CHECK_INT(TAKE("\x82\x01x"), -EPROTO); /* unmasked */
	CHECK_INT(TAKE("\x82\x01"), -EPROTO);  /* and that is seen at once */
	CHECK_INT(TAKE("\xc2\x80"
		       "mask"),
		  -EPROTO); /* an extension */
	CHECK_INT(TAKE("\xa2\x80"
		       "mask"),
		  -EPROTO);
	CHECK_INT(TAKE("\x92\x80"
		       "mask"),
		  -EPROTO);
	CHECK_INT(TAKE("\x83\x80"
		       "mask"),
		  -EPROTO); /* opcodes of nobody */
	CHECK_INT(TAKE("\x87\x80"
		       "mask"),
		  -EPROTO);
	CHECK_INT(TAKE("\x8b\x80"
		       "mask"),
		  -EPROTO);
	CHECK_INT(TAKE("\x8f\x80"
		       "mask"),
		  -EPROTO);
	CHECK_INT(TAKE("\x09\x80"
		       "mask"),
		  -EPROTO); /* a part of a ping */
	CHECK_INT(TAKE("\x89\xfe\x00\x7e"
		       "mask"),
		  -EPROTO); /* a long ping */
	CHECK_INT(TAKE("\x80\x80"
		       "mask"),
		  -EPROTO); /* goes on with nothing */
	CHECK_INT(TAKE("\x02\x80"
		       "mask"
		       "\x82\x80"
		       "mask"),
		  -EPROTO); /* two at a time */
	CHECK_INT(TAKE("\x82\xfe\x00\x7d"
		       "mask"),
		  -EPROTO); /* lengths that are too long */
	CHECK_INT(TAKE("\x82\xff\0\0\0\0\0\0\xff\xff"
		       "mask"),
		  -EPROTO);
	CHECK_INT(TAKE("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"
		       "mask"),
		  -EPROTO);
	CHECK_INT(TAKE("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
		       "mask"),
		  -EMSGSIZE);
	CHECK_INT(TAKE("\x82\xff\0\0\0\0\x02\0\0\x01"
		       "mask"),
		  -EMSGSIZE);
	CHECK_INT(TAKE("\x82\xff\0\0\0\0\x02\0\0\0"
		       "mask"),
		  0); /* the most that is allowed */
	CHECK_INT(TAKE("\x02\x81"
		       "maskx"
		       "\x80\xff\0\0\0\0\x02\0\0\0"
		       "mask"),
		  -EMSGSIZE);
	CHECK_INT(TAKE("\x88\x81\0\0\0\0\x03"), -EPROTO);     /* half a code */
	CHECK_INT(TAKE("\x88\x82\0\0\0\0\x03\xe7"), -EPROTO); /* 999 */
	CHECK_INT(TAKE("\x88\x82\0\0\0\0\x03\xec"), -EPROTO); /* 1004 */
	CHECK_INT(TAKE("\x88\x82\0\0\0\0\x03\xed"), -EPROTO); /* 1005 */
	CHECK_INT(TAKE("\x88\x82\0\0\0\0\x03\xee"), -EPROTO); /* 1006 */
	CHECK_INT(TAKE("\x88\x82\0\0\0\0\x03\xf7"), -EPROTO); /* 1015 */
	CHECK_INT(TAKE("\x88\x82\0\0\0\0\x13\x88"), -EPROTO); /* 5000 */
	CHECK_INT(TAKE("\x88\x82\0\0\0\0\x0b\xb8"), 0);       /* 3000 */
	CHECK_INT(TAKE("\x88\x83\0\0\0\0\x03\xe8\xff"), -EILSEQ);
}

static void names_its_errors(void)
{
	const char *words;

	CHECK_INT(websocket_code(-EPROTO, &words), 1002);
	CHECK_INT(websocket_code(-EMSGSIZE, &words), 1009);
	CHECK_STR(words, "a message is longer than 32 MiB");
	CHECK_INT(websocket_code(-EILSEQ, &words), 1007);
	CHECK_INT(websocket_code(-EBADMSG, &words), 1007);
	CHECK_INT(websocket_code(-ENOMEM, &words), 1011);
	for (int i = 1; i < 140; i++) {
		(void)websocket_code(-i, &words);
		CHECK(strlen(words) <= WEBSOCKET_CONTROL_MAX - 2);
	}
}

static void writes_frames(void)
{
	static uint8_t data[70000];
	_cleanup_(buf_done) struct buf to = BUF_INIT;

	CHECK_OK(websocket_put(&to, WEBSOCKET_TEXT, "hi", 2));
	CHECK(to.len == 4 && memcmp(buf_data(&to), "\x81\x02hi", 4) == 0);
	buf_clear(&to);
	CHECK_OK(websocket_put_head(&to, WEBSOCKET_BINARY, 125));
	CHECK_OK(websocket_put_head(&to, WEBSOCKET_BINARY, 126));
	CHECK_OK(websocket_put_head(&to, WEBSOCKET_BINARY, 65535));
	CHECK_OK(websocket_put_head(&to, WEBSOCKET_BINARY, 65536));
	CHECK(to.len == 20 && memcmp(buf_data(&to),
				     "\x82\x7d\x82\x7e\x00\x7e\x82\x7e\xff\xff"
				     "\x82\x7f\0\0\0\0\0\1\0\0",
				     20) == 0);
	buf_clear(&to);
	CHECK_OK(websocket_put_close(&to, 1000, "bye"));
	CHECK_OK(websocket_put_close(&to, WEBSOCKET_NO_CODE, "bye"));
	CHECK(to.len == 9 && memcmp(buf_data(&to),
				    "\x88\x05\x03\xe8"
				    "bye\x88\x00",
				    9) == 0);
	buf_clear(&to);
	memset(data, 'x', 200);
	CHECK_OK(websocket_put_close(&to, 1002, (const char *)data));
	CHECK_INT(to.len, 2 + WEBSOCKET_CONTROL_MAX);
}

/* ---- the handshake ---- */

static void answers_a_key(void)
{
	static const char *const bad[] = { "",
					   "AAAA",
					   "dGhlIHNhbXBsZSBub25jZQ=",
					   "dGhlIHNhbXBsZSBub25jZQ===",
					   "dGhlIHNhbXBsZSBub25jZWU=",
					   "dGhlIHNhbXBsZSBub25jZQ!=" };
	char accept[WEBSOCKET_ACCEPT_SIZE];

	/* The example of RFC 6455. */
	CHECK_OK(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", accept));
	CHECK_STR(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(websocket_accept(bad[i], accept), -EINVAL);
}

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define WS "Connection: upgrade\r\nUpgrade: WebSocket\r\n"
#define SPDY "Connection: upgrade\r\nUpgrade: SPDY/3.1\r\n"

/* The status of a refusal, or what is agreed on. */
static const char *agree(const char *line, const char *fields, bool is_forward, size_t n_ports,
			 struct upgrade *ret)
{
	_cleanup_str_ char *text = str_format("%s\r\n%s\r\n", line, fields);
	const struct refusal *why;
	struct head h;
	size_t used;

	CHECK(text);
	if (!text || head_take((const uint8_t *)text, strlen(text), &used, &h) != 1)
		return "head";
	why = upgrade_check(&h, ret);
	if (!why)
		why = upgrade_choose(&h, is_forward, n_ports, ret);
	return why ? why->status : ret->protocol;
}

static void agrees_on_a_protocol(void)
{
	static const struct {
		const char *line, *fields;
		bool is_forward;
		size_t n_ports;
		const char *want;
	} cases[] = {
		{ "GET / HTTP/1.1", WS KEY VERSION, false, 0, "" },
		{ "GET / HTTP/1.1",
		  WS KEY VERSION "Sec-WebSocket-Protocol: x, v5.channel.k8s.io\r\n", false, 0,
		  "v5.channel.k8s.io" },
		{ "GET / HTTP/1.1", WS KEY VERSION "Sec-WebSocket-Protocol: v6.channel.k8s.io\r\n",
		  false, 0, "403 Forbidden" },
		/* What is for SPDY is not for a WebSocket, and the other way round. */
		{ "GET / HTTP/1.1", WS KEY VERSION "Sec-WebSocket-Protocol: v3.channel.k8s.io\r\n",
		  false, 0, "403 Forbidden" },
		{ "POST / HTTP/1.1", SPDY "X-Stream-Protocol-Version: v5.channel.k8s.io\r\n", false,
		  0, "403 Forbidden" },
		{ "POST / HTTP/1.1", SPDY "X-Stream-Protocol-Version: portforward.k8s.io\r\n",
		  false, 0, "403 Forbidden" },
		{ "POST / HTTP/1.1", SPDY, false, 0, "400 Bad Request" },
		{ "GET / HTTP/1.1",
		  WS KEY VERSION "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n", true, 0,
		  "SPDY/3.1+portforward.k8s.io" },
		{ "GET / HTTP/1.1", WS KEY VERSION, true, 0, "400 Bad Request" },
		{ "GET / HTTP/1.1", WS KEY VERSION, true, 33, "400 Bad Request" },
		{ "GET / HTTP/1.1", WS KEY VERSION, true, 32, "" },
		{ "GET / HTTP/1.1", WS KEY VERSION "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
		  true, 1, "403 Forbidden" },
		{ "POST / HTTP/1.1", WS KEY VERSION, false, 0, "400 Bad Request" },
		{ "GET / HTTP/1.0", WS KEY VERSION, false, 0, "400 Bad Request" },
		{ "GET / HTTP/1.1", WS KEY, false, 0, "426 Upgrade Required" },
		{ "GET / HTTP/1.1", WS KEY "Sec-WebSocket-Version: 8\r\n", false, 0,
		  "426 Upgrade Required" },
		{ "GET / HTTP/1.1", WS VERSION, false, 0, "400 Bad Request" },
		{ "GET / HTTP/1.1", WS KEY KEY VERSION, false, 0, "head" },
		{ "GET / HTTP/1.1", WS KEY VERSION VERSION, false, 0, "head" },
		{ "PUT / HTTP/1.1", WS KEY VERSION, false, 0, "405 Method Not Allowed" },
		{ "GET / HTTP/1.1", "Upgrade: websocket\r\n" KEY VERSION, false, 0,
		  "400 Bad Request" },
		{ "GET / HTTP/1.1", WS KEY VERSION "Origin: http://example.org\r\n", false, 0, "" },
	};
	struct upgrade u;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_STR(agree(cases[i].line, cases[i].fields, cases[i].is_forward,
				cases[i].n_ports, &u),
			  cases[i].want);
}

static void writes_its_answer(void)
{
	_cleanup_(buf_done) struct buf to = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	struct upgrade u;

	CHECK_STR(agree("GET / HTTP/1.1",
			WS KEY VERSION "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n", false, 0,
			&u),
		  "v5.channel.k8s.io");
	CHECK_OK(upgrade_put(&u, &to));
	text = buf_take_str(&to);
	CHECK_STR(text, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			"Upgrade: websocket\r\n"
			"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
			"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n");
}

static void writes_a_refusal(void)
{
	_cleanup_(buf_done) struct buf to = BUF_INIT;
	static const char fields[] = SPDY "X-Stream-Protocol-Version: v9.channel.k8s.io\r\n\r\n";
	_cleanup_str_ char *request = str_format("POST / HTTP/1.1\r\n%s", fields);
	_cleanup_str_ char *text = NULL;
	const struct refusal *why;
	struct upgrade u;
	struct head h;
	size_t used;

	CHECK(request);
	if (!request || head_take((const uint8_t *)request, strlen(request), &used, &h) != 1)
		return;
	CHECK(!upgrade_check(&h, &u));
	why = upgrade_choose(&h, true, 0, &u);
	CHECK(why);
	if (why)
		CHECK_OK(refusal_put(why, &to));
	text = buf_take_str(&to);
	CHECK_STR(text, "HTTP/1.1 403 Forbidden\r\n"
			"X-Accepted-Stream-Protocol-Versions: portforward.k8s.io\r\n"
			"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 59\r\n"
			"Connection: close\r\n\r\n"
			"X-Stream-Protocol-Version does not name portforward.k8s.io\n");
}

/* ---- channels ---- */

/* What one message in pieces of `step` says: "channel:bytes", or "error". */
static char *hear(bool is_base64, const char *message, size_t len, size_t step)
{
	struct channels *c = channels_new(is_base64);
	_cleanup_(buf_done) struct buf said = BUF_INIT;
	unsigned channel = 0;
	int r = c ? 0 : -ENOMEM;

	for (size_t at = 0; r >= 0 && (at < len || at == 0); at += step) {
		size_t part = MIN(step, len - at);
		const struct websocket_event e = { .opcode = WEBSOCKET_BINARY,
						   .data = (const uint8_t *)message + at,
						   .len = part,
						   .begins = at == 0,
						   .ends = at + step >= len };
		const uint8_t *data;
		size_t n;

		r = channels_take(c, &e, &channel, &data, &n);
		if (r > 0)
			CHECK_OK(buf_add(&said, data, n));
	}
	(void)channels_free(c);
	if (r < 0)
		buf_clear(&said);
	CHECK_OK(r < 0 ? buf_addf(&said, "error") : buf_addf(&said, ":%u", channel));
	return buf_take_str(&said);
}

static void reads_channels(void)
{
	static const struct {
		bool is_base64;
		const char *message, *want;
	} cases[] = {
		{ false, "\x04{}", "{}:4" },
		{ false, "\xff\x01", "\x01:255" },
		{ false, "", ":0" },
		{ true, "0aGVsbG8=", "hello:0" },
		{ true, "4", ":4" },
		{ true, "oaGVsbG8h", "hello!:63" },
		{ true, "0aGVsbG8", "error" },
		{ true, "0aGV\xff", "error" },
		{ true, "0aGVsbG8==", "error" },
		{ true, "0=", "error" },
		{ true, "0a=GVsbG8=", "error" },
		{ true, "\x01YQ==", "a:209" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t step = 1; step < 12; step++) {
			_cleanup_str_ char *have = hear(cases[i].is_base64, cases[i].message,
							strlen(cases[i].message), step);

			CHECK_STR(have, cases[i].want);
		}
}

static void writes_channels(void)
{
	struct channels *plain = channels_new(false), *text = channels_new(true);
	_cleanup_(buf_done) struct buf to = BUF_INIT;

	CHECK(plain && text);
	if (plain && text) {
		CHECK_OK(channels_put(plain, &to, 3, "hi", 2));
		CHECK_OK(channels_put(plain, &to, 1, "", 0));
		CHECK_OK(channels_put(text, &to, CHANNEL_MAX, "hello", 5));
		CHECK_OK(channels_put(text, &to, 1, "", 0));
		CHECK(to.len == 22 && memcmp(buf_data(&to),
					     "\x82\x03\x03hi\x82\x01\x01\x81\x09oaGVsbG8=\x81\x01"
					     "1",
					     22) == 0);
	}
	(void)channels_free(plain);
	(void)channels_free(text);
}

UNIT_MAIN({ "reads_messages", reads_messages }, { "reads_long_messages", reads_long_messages },
	  { "refuses_what_is_none", refuses_what_is_none },
	  { "names_its_errors", names_its_errors }, { "writes_frames", writes_frames },
	  { "answers_a_key", answers_a_key }, { "agrees_on_a_protocol", agrees_on_a_protocol },
	  { "writes_its_answer", writes_its_answer }, { "writes_a_refusal", writes_a_refusal },
	  { "reads_channels", reads_channels }, { "writes_channels", writes_channels })
