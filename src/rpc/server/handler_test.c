/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/handler.h"

#include <errno.h>

#include "rpc/server/fixture_test.h"
#include "unit.h"

/* Calls whose client streams: its side, by hand. */

#define GATHER "/nacre.test.v1.Test/Gather"
#define TALK "/nacre.test.v1.Test/Talk"

/* What came back in a Gather or a Talk. */
static struct {
	unsigned n_messages;
	size_t n_bytes;
	uint32_t gathered;
	uint64_t gathered_bytes;
	unsigned n_ends;
	enum rpc_code code;
	struct error err;
	unsigned n_writable;
} got;

static struct rpc_stream *stream;

static void got_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	Nacre__Test__V1__GatherResponse *m;

	got.n_messages++;
	got.n_bytes += len;
	if (!userdata)
		return;
	m = nacre__test__v1__gather_response__unpack(NULL, len, data);
	if (!m)
		return;
	got.gathered = m->messages;
	got.gathered_bytes = m->bytes;
	nacre__test__v1__gather_response__free_unpacked(m, NULL);
}

static void got_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
		    void *userdata)
{
	got.n_ends++;
	got.code = code;
	got.err = *err;
	stream = NULL;
}

static void got_writable(struct rpc_stream *s, void *userdata)
{
	got.n_writable++;
}

static const struct rpc_stream_ops got_ops = {
	.on_message = got_message,
	.on_end = got_end,
	.on_writable = got_writable,
};

static void open_stream(const char *method, const char *target)
{
	struct rpc_request request = {
		.method = method, .target = target, .timeout = NSEC_NEVER, .more = true
	};
	static char gathers;

	memset(&got, 0, sizeof(got));
	must(rpc_client_call(nodes[0].client, &request, &got_ops,
			     str_eq(method, GATHER) ? &gathers : NULL, &stream) == 0);
}

/* An EchoRequest with `size` bytes of data, less than 2 MiB. */
static void say(size_t size)
{
	static uint8_t bytes[2 * 1024 * 1024];

	bytes[0] = 0x0a;
	bytes[1] = (uint8_t)((size & 0x7f) | 0x80);
	bytes[2] = (uint8_t)((size >> 7 & 0x7f) | 0x80);
	bytes[3] = (uint8_t)(size >> 14 & 0x7f);
	must(stream);
	must(rpc_stream_send(stream, bytes, size + 4) == 0);
}

static void no_more(void)
{
	must(stream);
	rpc_stream_close_send(stream);
}

static void until_end(void)
{
	time_t since = unit_now();

	while (got.n_ends == 0 && unit_waits(since))
		loop_turn(loop, false);
	must(got.n_ends == 1);
}

static void until_messages(unsigned n)
{
	time_t since = unit_now();

	while (got.n_messages < n && unit_waits(since))
		loop_turn(loop, false);
	must(got.n_messages == n);
}

/* Here and two hops away. */
static const char *const targets[] = { NULL, "a/b" };

static void a_client_streams(void)
{
	begin(3);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		open_stream(GATHER, targets[i]);
		for (unsigned k = 0; k < 500; k++) {
			say(1000);
			if (k % 100 == 0)
				turns(5);
		}
		CHECK_INT(got.n_messages, 0);
		no_more();
		until_end();
		CHECK_INT(got.code, RPC_OK);
		CHECK_INT(got.n_messages, 1);
		CHECK_INT(got.gathered, 500);
		CHECK_INT(got.gathered_bytes, 500000);
	}
	end();
}

static void a_stream_without_messages(void)
{
	begin(3);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		open_stream(GATHER, targets[i]);
		turns(20);
		CHECK_INT(got.n_ends, 0);
		no_more();
		until_end();
		CHECK_INT(got.code, RPC_OK);
		CHECK_INT(got.n_messages, 1);
		CHECK_INT(got.gathered, 0);
		open_stream(TALK, targets[i]);
		no_more();
		until_end();
		CHECK_INT(got.code, RPC_OK);
		CHECK_INT(got.n_messages, 0);
	}
	end();
}

static void both_sides_talk(void)
{
	begin(3);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		open_stream(TALK, targets[i]);
		for (unsigned k = 1; k <= 20; k++) {
			say(k);
			until_messages(k);
		}
		CHECK_INT(got.n_ends, 0);
		no_more();
		until_end();
		CHECK_INT(got.code, RPC_OK);
		CHECK_INT(got.n_messages, 20);
	}
	end();
}

static void a_message_of_the_stream_is_checked(void)
{
	static const uint8_t bad[] = { 0x12, 2, 'h', 0 };

	begin(3);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		size_t cancelled = nodes[0].echo.n_cancelled + nodes[2].echo.n_cancelled;

		open_stream(TALK, targets[i]);
		say(5);
		until_messages(1);
		CHECK_INT(rpc_stream_send(stream, bad, sizeof(bad)), 0);
		until_end();
		CHECK_INT(got.code, RPC_INVALID_ARGUMENT);
		CHECK(strstr(got.err.text, "text") != NULL);
		turns(20);
		CHECK_INT(nodes[0].echo.n_cancelled + nodes[2].echo.n_cancelled, cancelled + 1);
		/* The first one is refused before there is a handler to tell. */
		open_stream(TALK, targets[i]);
		CHECK_INT(rpc_stream_send(stream, bad, sizeof(bad)), 0);
		until_end();
		CHECK_INT(got.code, RPC_INVALID_ARGUMENT);
		CHECK_INT(nodes[0].echo.n_cancelled + nodes[2].echo.n_cancelled, cancelled + 1);
	}
	end();
}

static void cancel_reaches_a_streaming_handler(void)
{
	begin(3);
	open_stream(TALK, "a/b");
	say(5);
	until_messages(1);
	must(stream);
	rpc_stream_cancel(stream);
	turns(50);
	CHECK_INT(nodes[2].echo.n_cancelled, 1);
	open_stream(GATHER, NULL);
	say(5);
	turns(20);
	must(stream);
	rpc_stream_cancel(stream);
	turns(50);
	CHECK_INT(nodes[0].echo.n_cancelled, 1);
	/* And one that has said nothing yet. */
	open_stream(GATHER, NULL);
	turns(20);
	must(stream);
	rpc_stream_cancel(stream);
	turns(50);
	CHECK_INT(nodes[0].echo.n_cancelled, 1);
	end();
}

/* ---- a handler that takes its time ---- */

static struct {
	struct rpc_call *call;
	unsigned n_messages, n_ends;
	size_t n_bytes;
} slow;

static void slow_message(struct rpc_call *c, const ProtobufCMessage *message, void *data)
{
	const Nacre__Test__V1__EchoRequest *in = (const void *)message;
	Nacre__Test__V1__GatherResponse answer = NACRE__TEST__V1__GATHER_RESPONSE__INIT;

	if (in) {
		slow.n_messages++;
		slow.n_bytes += in->data.len;
		return;
	}
	slow.n_ends++;
	answer.messages = slow.n_messages;
	rpc_call_reply(c, &answer.base);
}

static void slow_handle(struct rpc_call *c, const ProtobufCMessage *request, void *userdata)
{
	slow.call = c;
}

static void slow_begin(void)
{
	static const struct rpc_method methods[] = { {
		.name = "Slow",
		.input = &nacre__test__v1__echo_request__descriptor,
		.output = &nacre__test__v1__gather_response__descriptor,
		.client_streaming = true,
		.handle = slow_handle,
	} };
	static const struct rpc_service service = { "nacre.test.v1.Slow", methods, 1 };

	begin(3);
	memset(&slow, 0, sizeof(slow));
	must(rpc_server_add(nodes[0].server, &service, NULL) == 0);
	open_stream("/nacre.test.v1.Slow/Slow", NULL);
}

static void messages_wait_for_their_reader(void)
{
	slow_begin();
	/* More than the windows and queues of both sides together. */
	for (unsigned i = 0; i < 100; i++)
		say(100000);
	no_more();
	turns(300);
	CHECK(slow.call != NULL);
	CHECK_INT(got.n_writable, 0);
	rpc_call_on_message(slow.call, slow_message, NULL);
	CHECK_INT(slow.n_messages, 0);
	turns(3);
	rpc_call_pause(slow.call, true);
	turns(300);
	CHECK(slow.n_messages < 50);
	CHECK_INT(slow.n_ends, 0);
	rpc_call_pause(slow.call, false);
	until_end();
	CHECK_INT(got.code, RPC_OK);
	CHECK_INT(slow.n_messages, 99);
	CHECK_INT(slow.n_bytes, 9900000);
	CHECK_INT(slow.n_ends, 1);
	end();
}

static void a_late_forward_loses_nothing(void)
{
	Nacre__Test__V1__EchoRequest first = NACRE__TEST__V1__ECHO_REQUEST__INIT;

	for (unsigned closes_early = 0; closes_early < 2; closes_early++) {
		slow_begin();
		for (unsigned i = 0; i < 100; i++)
			say(100000);
		if (closes_early)
			no_more();
		turns(300);
		CHECK(slow.call != NULL);
		rpc_call_forward(slow.call, nodes[1].client, GATHER, "b", &first.base);
		turns(300);
		if (!closes_early)
			no_more();
		until_end();
		CHECK_INT(got.code, RPC_OK);
		CHECK_INT(got.n_messages, 1);
		end();
	}
}

static void a_forward_of_nothing(void)
{
	slow_begin();
	no_more();
	turns(20);
	CHECK(slow.call != NULL);
	rpc_call_forward(slow.call, nodes[1].client, TALK, "b", NULL);
	until_end();
	CHECK_INT(got.code, RPC_OK);
	CHECK_INT(got.n_messages, 0);
	end();
}

/* A server that echoes to a client that does not take it stops reading too. */
static void a_talk_stops_in_both_directions(void)
{
	size_t sent;
	unsigned n = 0;

	begin(3);
	open_stream(TALK, "a/b");
	rpc_stream_pause(stream, true);
	for (unsigned i = 0; i < 3000; i++) {
		if (rpc_stream_writable(stream)) {
			say(10000);
			n++;
		}
		turns(1);
	}
	sent = nodes[2].echo.n_sent;
	CHECK(sent < 1000);
	CHECK(n < 1000);
	turns(100);
	CHECK_INT(nodes[2].echo.n_sent, sent);
	CHECK_INT(got.n_messages, 0);
	rpc_stream_pause(stream, false);
	no_more();
	until_end();
	CHECK_INT(got.code, RPC_OK);
	CHECK_INT(got.n_messages, n);
	end();
}

static void a_lost_server_ends_a_stream(void)
{
	begin(1);
	open_stream(TALK, NULL);
	say(5);
	until_messages(1);
	nodes[0].server = rpc_server_free(nodes[0].server);
	until_end();
	CHECK_INT(got.code, RPC_UNAVAILABLE);
	CHECK_INT(nodes[0].echo.n_cancelled, 1);
	end();
}

UNIT_MAIN({ "a client streams", a_client_streams },
	  { "a stream without messages", a_stream_without_messages },
	  { "both sides talk", both_sides_talk },
	  { "a message of the stream is checked", a_message_of_the_stream_is_checked },
	  { "cancel reaches a streaming handler", cancel_reaches_a_streaming_handler },
	  { "messages wait for their reader", messages_wait_for_their_reader },
	  { "a late forward loses nothing", a_late_forward_loses_nothing },
	  { "a forward of nothing", a_forward_of_nothing },
	  { "a talk stops in both directions", a_talk_stops_in_both_directions },
	  { "a lost server ends a stream", a_lost_server_ends_a_stream })
