/* SPDX-License-Identifier: Apache-2.0 */
#include "http/session.h"

#include <errno.h>

#include "base/time/clock.h"
#include "http/guard.h"
#include "http/pull_test.h"

#include "unit.h"

/* Two sessions whose bytes go straight to each other. */
struct side {
	struct http_session *http;
	struct http_stream *stream; /* the one that the test looks at */
	unsigned n_begun, n_fields, n_headers, n_ended, n_closed, n_drained;
	size_t n_data;
	uint32_t code;
	bool refuses;
	bool consumes;
	char status[8];
};

static struct side server, client;
static char anchor; /* what streams are attached to: the side is found by the session */

static struct side *side_of(struct http_stream *s)
{
	return http_session_userdata(http_stream_session(s));
}

static int on_begin(struct http_session *h, struct http_stream *s)
{
	struct side *side = http_session_userdata(h);

	side->n_begun++;
	side->stream = s;
	http_stream_attach(s, &anchor);
	return side->refuses ? -EBUSY : 0;
}

static void on_field(struct http_stream *s, const char *name, const char *value)
{
	struct side *side = side_of(s);

	side->n_fields++;
	if (strcmp(name, ":status") == 0)
		(void)snprintf(side->status, sizeof(side->status), "%s", value);
}

static void on_headers(struct http_stream *s)
{
	side_of(s)->n_headers++;
}

static void on_data(struct http_stream *s, const uint8_t *data, size_t len)
{
	struct side *side = side_of(s);

	side->n_data += len;
	if (side->consumes)
		http_stream_consumed(s, len);
}

static void on_end(struct http_stream *s)
{
	side_of(s)->n_ended++;
}

static void on_close(struct http_stream *s, uint32_t code)
{
	struct side *side = side_of(s);

	side->n_closed++;
	side->code = code;
	if (side->stream == s)
		side->stream = NULL;
}

static void on_drain(struct http_stream *s)
{
	side_of(s)->n_drained++;
}

static const struct http_ops ops = {
	.begin = on_begin,
	.field = on_field,
	.headers = on_headers,
	.data = on_data,
	.end = on_end,
	.close = on_close,
	.drain = on_drain,
};

static int pump_one(struct side *from, struct side *to, bool *moved)
{
	struct buf b = BUF_INIT;
	int r;

	*moved = false;
	CHECK_INT(pull_into(from->http, &b, 65536), 0);
	if (b.len == 0)
		return 0;
	*moved = true;
	r = http_session_receive(to->http, buf_data(&b), b.len);
	buf_done(&b);
	return r;
}

static int pump(void)
{
	bool a, b;
	int r;

	do {
		r = pump_one(&client, &server, &a);
		if (r < 0)
			return r;
		r = pump_one(&server, &client, &b);
		if (r < 0)
			return r;
	} while (a || b);
	return 0;
}

static void begin(void)
{
	server = client = (struct side){ .consumes = true };
	CHECK_INT(http_session_new(&server.http, HTTP_SERVER, &ops, &server), 0);
	CHECK_INT(http_session_new(&client.http, HTTP_CLIENT, &ops, &client), 0);
	CHECK_INT(pump(), 0);
}

static void end(void)
{
	server.http = http_session_free(server.http);
	client.http = http_session_free(client.http);
}

static const struct http_field request[] = {
	{ ":method", "POST" },
	{ ":scheme", "http" },
	{ ":path", "/x" },
	{ ":authority", "here" },
};
static const struct http_field answer[] = { { ":status", "200" } };
static const struct http_field trailers[] = { { "grpc-status", "0" }, { "grpc-message", "" } };

static void open_stream(void)
{
	CHECK_INT(http_session_request(client.http, request, 4, &anchor, &client.stream), 0);
}

static void queue(struct http_stream *s, size_t n)
{
	uint8_t *to;

	CHECK_INT(http_stream_reserve(s, n, &to), 0);
	memset(to, 'x', n);
	http_stream_commit(s, n);
}

static void there_and_back(void)
{
	struct buf b = BUF_INIT;

	begin();
	open_stream();
	queue(client.stream, 10);
	CHECK_INT(http_stream_finish(client.stream, NULL, 0), 0);
	CHECK_INT(pump(), 0);
	CHECK_INT(server.n_begun, 1);
	CHECK_INT(server.n_fields, 4);
	CHECK_INT(server.n_headers, 1);
	CHECK_INT(server.n_data, 10);
	CHECK_INT(server.n_ended, 1);

	queue(server.stream, 20);
	CHECK(server.stream != NULL);
	CHECK_INT(http_stream_respond(server.stream, answer, 1, false), 0);
	CHECK_INT(http_stream_finish(server.stream, trailers, 2), 0);
	/* Head, data and trailers come in one run of bytes. */
	CHECK_INT(pull_into(server.http, &b, 65536), 0);
	CHECK_INT(http_session_receive(client.http, buf_data(&b), b.len), 0);
	buf_done(&b);
	CHECK_STR(client.status, "200");
	CHECK_INT(client.n_headers, 2);
	CHECK_INT(client.n_data, 20);
	CHECK_INT(client.n_ended, 1);
	CHECK_INT(pump(), 0);
	CHECK_INT(client.n_closed, 1);
	CHECK_INT(server.n_closed, 1);
	CHECK_INT(client.code, HTTP_NO_ERROR);
	end();
}

static void a_reader_that_waits_stops_the_writer(void)
{
	begin();
	server.consumes = false;
	open_stream();
	queue(client.stream, 4U * HTTP_WINDOW);
	CHECK(!http_stream_writable(client.stream));
	CHECK_INT(pump(), 0);
	CHECK_INT(server.n_data, HTTP_WINDOW);
	CHECK_INT(client.n_drained, 0);
	/* Another stream is not stopped by that one. */
	open_stream();
	queue(client.stream, 1000);
	CHECK_INT(pump(), 0);
	CHECK_INT(server.n_data, HTTP_WINDOW + 1000);
	end();
}

static void giving_back_opens_the_window(void)
{
	struct http_stream *s;

	begin();
	server.consumes = false;
	open_stream();
	s = client.stream;
	queue(s, 3U * HTTP_WINDOW);
	CHECK_INT(pump(), 0);
	for (unsigned i = 2; i <= 3; i++) {
		CHECK(server.stream != NULL);
		http_stream_consumed(server.stream, HTTP_WINDOW);
		CHECK_INT(pump(), 0);
		CHECK_INT(server.n_data, i * HTTP_WINDOW);
	}
	CHECK_INT(client.n_drained, 1);
	CHECK(http_stream_writable(s));
	end();
}

static void the_queue_has_a_limit(void)
{
	uint8_t *to;

	begin();
	open_stream();
	queue(client.stream, 1000);
	CHECK_INT(http_stream_reserve(client.stream, HTTP_QUEUE_MAX, &to), -ENOBUFS);
	CHECK_INT(http_stream_reserve(client.stream, HTTP_QUEUE_MAX + 1U, &to), -ENOBUFS);
	CHECK(client.stream != NULL);
	http_stream_reset(client.stream, HTTP_CANCEL);
	CHECK_INT(http_stream_queued(client.stream), 0);
	CHECK_INT(pump(), 0);
	CHECK_INT(client.n_closed, 1);
	end();
}

static void an_early_answer_ends_the_request(void)
{
	begin();
	open_stream();
	CHECK_INT(pump(), 0);
	CHECK(server.stream != NULL);
	CHECK_INT(http_stream_respond(server.stream, answer, 1, true), 0);
	CHECK_INT(pump(), 0);
	CHECK_INT(client.n_closed, 1);
	CHECK_INT(client.code, HTTP_NO_ERROR);
	CHECK_INT(server.n_closed, 1);
	end();
}

static void resets_arrive(void)
{
	begin();
	open_stream();
	CHECK_INT(pump(), 0);
	CHECK(client.stream != NULL);
	http_stream_reset(client.stream, HTTP_CANCEL);
	CHECK_INT(pump(), 0);
	CHECK_INT(server.n_closed, 1);
	CHECK_INT(server.code, HTTP_CANCEL);
	end();
}

static void refused_streams(void)
{
	begin();
	server.refuses = true;
	open_stream();
	CHECK_INT(pump(), 0);
	CHECK_INT(client.n_closed, 1);
	CHECK_INT(client.code, HTTP_REFUSED_STREAM);
	CHECK_INT(server.n_closed, 0); /* what was refused is not told of again */
	end();
}

static void goodbye_lets_streams_end(void)
{
	struct http_stream *s;

	begin();
	open_stream();
	s = client.stream;
	CHECK_INT(pump(), 0);
	http_session_goaway(server.http);
	CHECK_INT(pump(), 0);
	CHECK(!http_session_accepts_requests(client.http));
	CHECK_INT(http_session_request(client.http, request, 4, &anchor, &client.stream), -EPIPE);
	CHECK(http_session_alive(server.http) && http_session_alive(client.http));
	client.stream = s;
	CHECK_INT(http_stream_finish(s, NULL, 0), 0);
	CHECK(server.stream != NULL);
	CHECK_INT(http_stream_respond(server.stream, answer, 1, true), 0);
	CHECK_INT(pump(), 0);
	CHECK_INT(client.n_closed, 1);
	CHECK(!http_session_alive(server.http));
	CHECK(!http_session_alive(client.http));
	end();
}

static void detached_streams_are_silent(void)
{
	begin();
	open_stream();
	queue(client.stream, 10);
	http_stream_detach(client.stream);
	CHECK_INT(pump(), 0);
	CHECK_INT(server.n_data, 10);
	CHECK(server.stream != NULL);
	http_stream_reset(server.stream, HTTP_CANCEL);
	CHECK_INT(pump(), 0);
	CHECK_INT(client.n_closed, 0);
	end();
}

static void a_lost_session_closes_its_streams(void)
{
	begin();
	open_stream();
	CHECK_INT(pump(), 0);
	open_stream(); /* not sent yet */
	end();
	CHECK_INT(client.n_closed, 2);
	CHECK_INT(server.n_closed, 1);
	CHECK_INT(server.code, HTTP_CANCEL);
}

static void streams_have_a_limit(void)
{
	begin();
	for (unsigned i = 0; i < HTTP_STREAMS_MAX + 5; i++)
		open_stream();
	CHECK_INT(pump(), 0);
	/* The rest waits at the client until others have ended. */
	CHECK_INT(server.n_begun, HTTP_STREAMS_MAX);
	CHECK(server.stream != NULL);
	http_stream_reset(server.stream, HTTP_CANCEL);
	CHECK_INT(pump(), 0);
	CHECK_INT(server.n_begun, HTTP_STREAMS_MAX + 1);
	end();
}

/* ---- peers that mean no good: bytes that no session of ours would write ---- */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

static int feed(const void *data, size_t len)
{
	return http_session_receive(server.http, data, len);
}

static void raw_begin(void)
{
	server = client = (struct side){ .consumes = true };
	CHECK_INT(http_session_new(&server.http, HTTP_SERVER, &ops, &server), 0);
	CHECK_INT(feed(preface, sizeof(preface)), 0);
}

static void not_http2(void)
{
	server = (struct side){ .consumes = true };
	CHECK_INT(http_session_new(&server.http, HTTP_SERVER, &ops, &server), 0);
	CHECK_INT(feed("GET / HTTP/1.1\r\n", 16), -EPROTO);
	server.http = http_session_free(server.http);
}

/* What was said last to a client that broke the rules: the code of a GOAWAY, -1 for none. */
static int last_word(void)
{
	struct buf out = BUF_INIT;
	int code = -1;

	CHECK_INT(pull_into(server.http, &out, (size_t)1024 * 1024), 0);
	while (out.len >= 9) {
		const uint8_t *p = buf_data(&out);
		size_t len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];

		CHECK(out.len >= 9 + len);
		if (p[3] == 7)
			code = p[9 + 7];
		buf_consume(&out, 9 + len);
	}
	buf_done(&out);
	return code;
}

/* n times the frame, and what comes back until the session has enough. */
static unsigned flood(const void *frame, size_t len, unsigned n, int *ret_code)
{
	*ret_code = -1;
	for (unsigned i = 0; i < n; i++) {
		if (feed(frame, len) < 0)
			return i;
		*ret_code = last_word();
		if (!http_session_alive(server.http))
			return i;
	}
	return n;
}

/* HEADERS of stream 1: POST, http, "/", authority "x", from HPACK's table. */
#define HEADERS_1 "\0\0\6\1\4\0\0\0\1\x83\x86\x84\1\1x"

static void floods_end_the_connection(void)
{
#define FRAME(s) s, sizeof(s) - 1
	static const struct {
		const char *frame;
		size_t len;
		unsigned burst, rate;
	} table[] = {
		{ FRAME("\0\0\0\4\0\0\0\0\0"), HTTP_SETTINGS_BURST - 1, HTTP_SETTINGS_RATE },
		{ FRAME("\0\0\10\6\0\0\0\0\0abcdefgh"), HTTP_PINGS_BURST, HTTP_PINGS_RATE },
		{ FRAME("\0\0\10\6\1\0\0\0\0abcdefgh"), HTTP_OTHERS_BURST, HTTP_OTHERS_RATE },
		{ FRAME("\0\0\0\0\0\0\0\0\1"), HTTP_EMPTY_BURST, HTTP_EMPTY_RATE },
		{ FRAME("\0\0\3\0\10\0\0\0\1\2\0\0"), HTTP_EMPTY_BURST, HTTP_EMPTY_RATE },
		{ FRAME("\0\0\4\10\0\0\0\0\0\0\0\0\1"), HTTP_UPDATES_BURST, HTTP_UPDATES_RATE },
		{ FRAME("\0\0\4\10\0\0\0\0\1\0\0\0\1"), HTTP_UPDATES_BURST, HTTP_UPDATES_RATE },
		{ FRAME("\0\0\5\2\0\0\0\0\3\0\0\0\0\1"), HTTP_OTHERS_BURST, HTTP_OTHERS_RATE },
		{ FRAME("\0\0\0\x63\0\0\0\0\0"), HTTP_OTHERS_BURST, HTTP_OTHERS_RATE },
	};
#undef FRAME
	nsec_t start;
	unsigned n, more;
	int code;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		start = clock_mono();
		raw_begin();
		CHECK_INT(feed(HEADERS_1, sizeof(HEADERS_1) - 1), 0);
		CHECK_INT(last_word(), -1);
		n = flood(table[i].frame, table[i].len, 10 * table[i].burst, &code);
		/* However slow this runs: the burst, and what the rate has allowed meanwhile. */
		more = (unsigned)((clock_mono() - start) * table[i].rate / NSEC_PER_SEC) + 1;
		CHECK(n >= table[i].burst && n <= table[i].burst + more);
		CHECK_INT(code, HTTP_ENHANCE_YOUR_CALM);
		/* Nothing is heard any more. */
		CHECK_INT(feed("noise, noise, noise", 19), 0);
		server.http = http_session_free(server.http);
	}
}

/* Acknowledgements that the peer does not take are bounded by themselves. */
static void answers_wait_up_to_a_limit(void)
{
	static const uint8_t ping[17] = { 0, 0, 8, 6 };
	unsigned n;

	raw_begin();
	for (n = 0; n < 5000; n++)
		if (feed(ping, sizeof(ping)) < 0)
			break;
	CHECK(n <= HTTP_ACKS_MAX + 1 || last_word() == HTTP_ENHANCE_YOUR_CALM);
	server.http = http_session_free(server.http);
}

/* A request, and what follows it on the same stream, again and again. */
static unsigned rapidly(const char *head, size_t head_len, const char *then, size_t then_len,
			unsigned n)
{
	char frames[64];
	unsigned i;

	memcpy(frames, head, head_len);
	memcpy(frames + head_len, then, then_len);
	for (i = 0; i < n; i++) {
		uint32_t id = 2 * i + 1;

		for (unsigned k = 0; k < 4; k++)
			frames[5 + k] = frames[head_len + 5 + k] = (char)(id >> (24 - 8 * k));
		if (feed(frames, head_len + then_len) < 0)
			break;
		(void)last_word();
		if (!http_session_alive(server.http))
			break;
	}
	return i;
}

/* Cheap for the peer, dear for us. */
static void resets_have_a_rate(void)
{
	nsec_t start = clock_mono();
	unsigned n, more;

	raw_begin();
	n = rapidly(HEADERS_1, sizeof(HEADERS_1) - 1, "\0\0\4\3\0\0\0\0\0\0\0\0\10", 13, 20000);
	more = (unsigned)((clock_mono() - start) * HTTP_RESETS_RATE / NSEC_PER_SEC);
	CHECK(n >= HTTP_RESETS_BURST - 1 && n <= HTTP_RESETS_BURST + more + HTTP_RESETS_RATE);
	CHECK(server.n_begun == server.n_closed);
	server.http = http_session_free(server.http);
}

/* The same, but it is we who must reset: a window of more than 2^31 - 1. */
static void faults_have_a_rate(void)
{
	nsec_t start = clock_mono();
	unsigned n, more;

	raw_begin();
	n = rapidly(HEADERS_1, sizeof(HEADERS_1) - 1, "\0\0\4\10\0\0\0\0\0\x7f\xff\xff\xff", 13,
		    5000);
	more = (unsigned)((clock_mono() - start) * HTTP_FAULTS_RATE / NSEC_PER_SEC) + 1;
	CHECK(n >= HTTP_FAULTS_BURST && n <= HTTP_FAULTS_BURST + more);
	server.http = http_session_free(server.http);
}

/* Ids go up, and what is closed stays closed. */
static void streams_do_not_come_back(void)
{
#define FRAME(s) s, sizeof(s) - 1
#define REQUEST(id, flags) "\0\0\6\1" flags "\0\0\0" id "\x83\x86\x84\1\1x"
#define RESET(id) "\0\0\4\3\0\0\0\0" id "\0\0\0\10"
#define DATA(id, flags) "\0\0\1\0" flags "\0\0\0" id "x"
	static const struct {
		const char *frames;
		size_t len;
		int code;
	} table[] = {
		{ FRAME(REQUEST("\1", "\4") DATA("\1", "\0") DATA("\1", "\1")), -1 },
		{ FRAME(REQUEST("\2", "\4")), HTTP_PROTOCOL_ERROR },
		{ FRAME(REQUEST("\0", "\4")), HTTP_PROTOCOL_ERROR },
		{ FRAME(REQUEST("\5", "\4") REQUEST("\3", "\4")), HTTP_PROTOCOL_ERROR },
		{ FRAME(REQUEST("\5", "\4") RESET("\5") REQUEST("\5", "\4")), HTTP_STREAM_CLOSED },
		{ FRAME(REQUEST("\5", "\4") RESET("\5") DATA("\5", "\0")), HTTP_STREAM_CLOSED },
		{ FRAME(REQUEST("\5", "\5") DATA("\5", "\0")), HTTP_STREAM_CLOSED },
		{ FRAME(REQUEST("\5", "\5") REQUEST("\5", "\5")), HTTP_STREAM_CLOSED },
		{ FRAME(DATA("\1", "\0")), HTTP_PROTOCOL_ERROR },
	};
#undef FRAME

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		raw_begin();
		CHECK_INT(feed(table[i].frames, table[i].len), 0);
		CHECK_INT(last_word(), table[i].code);
		CHECK_INT(http_session_alive(server.http), table[i].code < 0);
		server.http = http_session_free(server.http);
	}
	/* What was on its way when we reset the stream is no fault. */
	raw_begin();
	CHECK_INT(feed(REQUEST("\1", "\4"), 15), 0);
	CHECK(server.stream != NULL);
	http_stream_reset(server.stream, HTTP_CANCEL);
	CHECK_INT(last_word(), -1);
	CHECK_INT(feed(DATA("\1", "\1"), 10), 0);
	CHECK_INT(last_word(), -1);
	server.http = http_session_free(server.http);
#undef REQUEST
#undef RESET
#undef DATA
}

static void continuations_have_a_limit(void)
{
	static const uint8_t headers[] = { 0, 0, 1, 1, 0, 0, 0, 0, 1, 0x83 };
	static const uint8_t more[] = { 0, 0, 1, 9, 0, 0, 0, 0, 1, 0x86 };
	int code;

	raw_begin();
	CHECK_INT(feed(headers, sizeof(headers)), 0);
	CHECK(flood(more, sizeof(more), 1000, &code) <= HTTP_CONTINUATIONS_MAX + 1);
	server.http = http_session_free(server.http);
}

/* A request of n literal fields of 12,000 bytes, by the bytes: nghttp2 itself would not send it. */
static void send_fields(uint32_t id, unsigned n)
{
	static const uint8_t field[] = { 0, 1, 'x', 0x7f, 0xe1, 0x5c }; /* 127 + 11873 */
	static const uint8_t pseudo[] = { 0x83, 0x86, 0x84, 0x41, 1, 'h' };
	struct buf b = BUF_INIT;
	uint8_t *to;

	for (unsigned i = 0; i <= n; i++) {
		size_t len = i ? sizeof(field) + 12000 : sizeof(pseudo);
		uint8_t head[9] = {
			0, (uint8_t)(len >> 8), (uint8_t)len, i ? 9 : 1, i == n ? 4 : 0, 0, 0,
			0, (uint8_t)id
		};

		CHECK(buf_add(&b, head, sizeof(head)) == 0);
		if (i == 0) {
			CHECK(buf_add(&b, pseudo, sizeof(pseudo)) == 0);
			continue;
		}
		CHECK(buf_add(&b, field, sizeof(field)) == 0);
		CHECK(buf_reserve(&b, 12000, &to) == 0);
		memset(to, 'v', 12000);
		buf_added(&b, 12000);
	}
	CHECK_INT(feed(buf_data(&b), b.len), 0);
	buf_done(&b);
}

static void header_fields_have_a_limit(void)
{
	raw_begin();
	send_fields(1, 5);
	CHECK_INT(server.n_headers, 1);
	CHECK_INT(server.n_fields, 4 + 5);
	CHECK(!http_stream_oversized(server.stream));
	send_fields(3, 6);
	CHECK_INT(server.n_begun, 2);
	CHECK_INT(server.n_headers, 2);
	CHECK_INT(server.n_fields, 9 + 4 + 5); /* the sixth is dropped */
	CHECK(http_stream_oversized(server.stream));
	server.http = http_session_free(server.http);
}

static void a_wide_window_lets_more_ahead(void)
{
	begin();
	CHECK_INT(http_session_widen(client.http), 0);
	client.consumes = false;
	open_stream();
	CHECK_INT(http_stream_finish(client.stream, NULL, 0), 0);
	CHECK_INT(pump(), 0);
	CHECK(server.stream != NULL);
	CHECK_INT(http_stream_respond(server.stream, answer, 1, false), 0);
	queue(server.stream, HTTP_WINDOW_WIDE + 1000);
	CHECK_INT(pump(), 0);
	CHECK_INT(client.n_data, HTTP_WINDOW_WIDE);
	end();
}

/* Each byte of a large answer arrives, though its stream is gone before the socket has them, and
 * though its queue grows while some of it is lent. */
static void a_stream_ends_while_its_bytes_are_lent(void)
{
	struct http_out out = HTTP_OUT_INIT;
	struct buf b = BUF_INIT;

	begin();
	open_stream();
	CHECK_INT(http_stream_finish(client.stream, NULL, 0), 0);
	CHECK_INT(pump(), 0);
	CHECK(server.stream != NULL);
	CHECK_INT(http_stream_respond(server.stream, answer, 1, false), 0);
	queue(server.stream, 40000);
	CHECK_INT(http_session_pull(server.http, &out, 30000), 0);
	queue(server.stream, 100);
	CHECK_INT(http_out_rest(&out, 0, &b), 0);
	http_out_done(&out);
	http_session_pulled(server.http);
	CHECK_INT(http_stream_queued(server.stream), 40100 - 32768);
	CHECK_INT(http_stream_finish(server.stream, NULL, 0), 0);
	CHECK_INT(pull_into(server.http, &b, 65536), 0);
	CHECK_INT(server.n_closed, 1);
	CHECK_INT(http_session_receive(client.http, buf_data(&b), b.len), 0);
	buf_done(&b);
	CHECK_INT(client.n_data, 40100);
	CHECK_INT(client.n_ended, 1);
	end();
}

UNIT_MAIN({ "there and back", there_and_back },
	  { "a reader that waits stops the writer", a_reader_that_waits_stops_the_writer },
	  { "giving back opens the window", giving_back_opens_the_window },
	  { "the queue has a limit", the_queue_has_a_limit },
	  { "an early answer ends the request", an_early_answer_ends_the_request },
	  { "resets arrive", resets_arrive }, { "refused streams", refused_streams },
	  { "goodbye lets streams end", goodbye_lets_streams_end },
	  { "detached streams are silent", detached_streams_are_silent },
	  { "a lost session closes its streams", a_lost_session_closes_its_streams },
	  { "a stream ends while its bytes are lent", a_stream_ends_while_its_bytes_are_lent },
	  { "a wide window lets more ahead", a_wide_window_lets_more_ahead },
	  { "header fields have a limit", header_fields_have_a_limit },
	  { "streams have a limit", streams_have_a_limit }, { "not HTTP/2", not_http2 },
	  { "floods end the connection", floods_end_the_connection },
	  { "answers wait up to a limit", answers_wait_up_to_a_limit },
	  { "resets have a rate", resets_have_a_rate },
	  { "faults have a rate", faults_have_a_rate },
	  { "streams do not come back", streams_do_not_come_back },
	  { "continuations have a limit", continuations_have_a_limit })
