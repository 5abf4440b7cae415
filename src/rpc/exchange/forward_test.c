/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/exchange/forward.h"

#include <errno.h>

#include "http/session.h"
#include "rpc/server/fixture_test.h"
#include "unit.h"

/* ---- two hops ---- */

static void calls_go_down_the_chain(void)
{
	Nacre__Test__V1__FailRequest request;
	char text[] = "deep down: 100%";
	struct seen seen = { .n_ends = 0 };

	begin(3);
	count(&seen, "a/b", 5000, 100, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, 5000);
	CHECK_INT(seen.n_wrong, 0);
	CHECK_INT(nodes[0].echo.n_sent, 0);
	CHECK_INT(nodes[1].echo.n_sent, 0);
	CHECK_INT(nodes[2].echo.n_sent, 5000);

	seen = (struct seen){ .n_ends = 0 };
	nacre__test__v1__fail_request__init(&request);
	request.text = text;
	request.kind = ERROR_EXISTS;
	call(&seen, "/nacre.test.v1.Test/Fail", "a/b", &request.base, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_ALREADY_EXISTS);
	CHECK_STR(seen.err.text, text);

	/* A path that goes deeper than there are instances; the last one says so. */
	seen = (struct seen){ .n_ends = 0 };
	call(&seen, "/nacre.test.v1.Test/Fail", "a/b/c", &request.base, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_NOT_FOUND);
	CHECK_STR(seen.err.text, "c: no such instance");
	end();
}

static void targets_are_paths(void)
{
	static const char *const bad[] = { "/a", "a/", "a//b", "A_", "..", "a/b/c/d/e/f/g/h/i" };
	struct seen seen;

	begin(1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		seen = (struct seen){ .n_ends = 0 };
		wait_for(&seen, bad[i], 1, NSEC_NEVER);
		finish(&seen);
		CHECK_INT(seen.code, RPC_INVALID_ARGUMENT);
	}
	end();
}

static void a_slow_reader_stops_the_chain(void)
{
	struct seen seen = { .pause_after = 10 }, other = { .n_ends = 0 };

	begin(3);
	count(&seen, "a/b", 20000, 1000, NSEC_NEVER);
	turns(1000);
	CHECK_INT(seen.n_messages, 10);
	CHECK(nodes[2].echo.n_sent < 4000);
	/* Other calls over the same connections go on. */
	count(&other, "a/b", 100, 1000, NSEC_NEVER);
	finish(&other);
	CHECK_INT(other.n_messages, 100);
	rpc_stream_pause(seen.stream, false);
	finish(&seen);
	CHECK_INT(seen.n_messages, 20000);
	CHECK_INT(seen.n_wrong, 0);
	end();
}

static void cancel_and_deadline_go_down_the_chain(void)
{
	struct seen seen = { .n_ends = 0 };
	nsec_t limit;

	begin(3);
	wait_for(&seen, "a/b", 100000, NSEC_NEVER);
	turns(50);
	rpc_stream_cancel(seen.stream);
	turns(50);
	CHECK_INT(nodes[2].echo.n_cancelled, 1);
	/* Long enough to come down there; how long that takes is the machine's affair. */
	for (limit = 50 * NSEC_PER_MSEC; limit < 20 * NSEC_PER_SEC; limit *= 4) {
		seen = (struct seen){ .n_ends = 0 };
		wait_for(&seen, "a/b", 100000, limit);
		finish(&seen);
		CHECK_INT(seen.code, RPC_DEADLINE_EXCEEDED);
		turns(50);
		if (nodes[2].echo.n_cancelled == 2)
			break;
	}
	CHECK_INT(nodes[2].echo.n_cancelled, 2);
	/* The middle goes away. */
	seen = (struct seen){ .n_ends = 0 };
	wait_for(&seen, "a/b", 100000, NSEC_NEVER);
	turns(50);
	nodes[1].server = rpc_server_free(nodes[1].server);
	finish(&seen);
	CHECK_INT(seen.code, RPC_UNAVAILABLE);
	turns(50);
	CHECK_INT(nodes[2].echo.n_cancelled, 3);
	end();
}

static void messages_of_the_client_go_down_too(void)
{
	static uint8_t big[100000];
	static const uint8_t three[] = { 0x08, 3 };
	struct rpc_request request = { .method = "/nacre.test.v1.Test/Count",
				       .target = "a/b",
				       .timeout = NSEC_NEVER,
				       .more = true };
	struct seen seen = { .n_ends = 0 };

	begin(3);
	CHECK_INT(rpc_client_call(nodes[0].client, &request, &ops, &seen, &seen.stream), 0);
	turns(20);
	CHECK_INT(rpc_stream_send(seen.stream, three, sizeof(three)), 0);
	turns(20);
	CHECK_INT(seen.n_messages, 0);
	rpc_stream_close_send(seen.stream);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, 3);
	CHECK(!seen.n_wrong);

	/* What is no message is refused, while more is on its way. */
	seen = (struct seen){ .n_ends = 0 };
	CHECK_INT(rpc_client_call(nodes[0].client, &request, &ops, &seen, &seen.stream), 0);
	for (unsigned i = 0; i < 20; i++)
		CHECK_INT(rpc_stream_send(seen.stream, big, sizeof(big)), 0);
	CHECK(!rpc_stream_writable(seen.stream));
	finish(&seen);
	CHECK_INT(seen.code, RPC_INVALID_ARGUMENT);
	end();
}

/* ---- the deadline is a header on each hop ---- */

static nsec_t deadline_below;

static void tell_deadline(struct rpc_call *c, const ProtobufCMessage *request, void *userdata)
{
	Nacre__Test__V1__WaitResponse answer = NACRE__TEST__V1__WAIT_RESPONSE__INIT;

	deadline_below = rpc_call_deadline(c);
	rpc_call_reply(c, &answer.base);
}

static void the_deadline_is_passed_on(void)
{
	static const struct rpc_method methods[] = { {
		.name = "Tell",
		.input = &nacre__test__v1__wait_request__descriptor,
		.output = &nacre__test__v1__wait_response__descriptor,
		.handle = tell_deadline,
	} };
	static const struct rpc_service service = { "nacre.test.v1.Teller", methods, 1 };
	Nacre__Test__V1__WaitRequest request = NACRE__TEST__V1__WAIT_REQUEST__INIT;
	struct seen seen = { .n_ends = 0 };
	nsec_t before = clock_mono();

	begin(3);
	CHECK_INT(rpc_server_add(nodes[2].server, &service, NULL), 0);
	call(&seen, "/nacre.test.v1.Teller/Tell", "a/b", &request.base, 10 * NSEC_PER_SEC);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK(deadline_below >= before + 10 * NSEC_PER_SEC);
	CHECK(deadline_below <= clock_mono() + 10 * NSEC_PER_SEC);
	seen = (struct seen){ .n_ends = 0 };
	call(&seen, "/nacre.test.v1.Teller/Tell", "a/b", &request.base, NSEC_NEVER);
	finish(&seen);
	CHECK(deadline_below == NSEC_NEVER);
	end();
}

/* ---- a handler that answers with another server's answer ---- */

static void pass_on(struct rpc_call *c, const ProtobufCMessage *request, void *userdata)
{
	rpc_call_forward(c, nodes[1].client, "/nacre.test.v1.Test/Count", "b", request);
}

static void a_handler_forwards(void)
{
	static const struct rpc_method methods[] = { {
		.name = "PassOn",
		.input = &nacre__test__v1__count_request__descriptor,
		.output = &nacre__test__v1__count_response__descriptor,
		.server_streaming = true,
		.handle = pass_on,
	} };
	static const struct rpc_service service = { "nacre.test.v1.Passer", methods, 1 };
	Nacre__Test__V1__CountRequest request = NACRE__TEST__V1__COUNT_REQUEST__INIT;
	struct seen seen = { .pause_after = 5 };

	begin(3);
	CHECK_INT(rpc_server_add(nodes[0].server, &service, NULL), 0);
	request.count = 6000;
	request.size = 1000;
	call(&seen, "/nacre.test.v1.Passer/PassOn", NULL, &request.base, 60 * NSEC_PER_SEC);
	turns(300);
	CHECK_INT(seen.n_messages, 5);
	CHECK(nodes[2].echo.n_sent < 4000);
	rpc_stream_pause(seen.stream, false);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, 6000);

	seen = (struct seen){ .cancel_at_once = true };
	request.count = 1000000;
	call(&seen, "/nacre.test.v1.Passer/PassOn", NULL, &request.base, NSEC_NEVER);
	turns(300);
	CHECK_INT(nodes[2].echo.n_cancelled, 1);
	end();
}

/* ---- the end of the server behind us ---- */

static unsigned n_drained;

static void on_drained(void *userdata)
{
	n_drained++;
}

/* A call passed on to nodes[1], whose reader stops after some messages. */
static void begin_paused(struct seen *seen, uint32_t n)
{
	begin(2);
	*seen = (struct seen){ .pause_after = 10 };
	count(seen, "a", n, 1000, NSEC_NEVER);
	turns(300);
	CHECK_INT(seen->n_messages, 10);
	/* It is still there: who retires its client does not free it. */
	CHECK_INT(nodes[1].echo.n_cancelled, 0);
}

/* The server of nodes[1] lets its calls end and is gone, and nobody needs its client any more. */
static void drain_and_retire(void)
{
	n_drained = 0;
	rpc_server_drain(nodes[1].server, 60 * NSEC_PER_SEC, on_drained, NULL);
	for (unsigned i = 0; i < 5000 && !n_drained; i++)
		turns(1);
	nodes[1].server = rpc_server_free(nodes[1].server);
	nodes[1].client = rpc_client_retire(nodes[1].client);
}

static void a_server_that_ends_does_not_wait_for_a_slow_reader(void)
{
	struct seen seen;

	begin_paused(&seen, 2000);
	CHECK(nodes[1].echo.n_sent < 2000);
	drain_and_retire();
	CHECK_INT(n_drained, 1);
	CHECK_INT(nodes[1].echo.n_sent, 2000);
	CHECK_INT(nodes[1].echo.n_cancelled, 0);
	CHECK_INT(seen.n_messages, 10);
	turns(100);
	rpc_stream_pause(seen.stream, false);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, 2000);
	CHECK_INT(seen.n_wrong, 0);
	end();
}

static void the_rest_of_a_server_is_bounded(void)
{
	unsigned most = (RPC_REST_MAX + 1024 * 1024) / 1000, n = 3 * most;
	struct seen seen;

	begin_paused(&seen, n);
	rpc_server_drain(nodes[1].server, 60 * NSEC_PER_SEC, on_drained, NULL);
	for (unsigned i = 0; i < 2000; i++)
		turns(1);
	CHECK(nodes[1].echo.n_sent > RPC_REST_MAX / 1100);
	CHECK(nodes[1].echo.n_sent < most);
	/* Past that the reader sets the pace as ever. */
	rpc_stream_pause(seen.stream, false);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, n);
	CHECK_INT(seen.n_wrong, 0);
	end();
}

static void a_server_that_dies_has_said_what_it_has(void)
{
	struct seen seen;

	begin_paused(&seen, 2000);
	nodes[1].server = rpc_server_free(nodes[1].server);
	nodes[1].client = rpc_client_retire(nodes[1].client);
	turns(100);
	CHECK_INT(seen.n_ends, 0);
	rpc_stream_pause(seen.stream, false);
	finish(&seen);
	CHECK_INT(seen.code, RPC_UNAVAILABLE);
	CHECK_STR(seen.err.text, "the connection was lost");
	/* A window of it had come. */
	CHECK(seen.n_messages > HTTP_WINDOW / 1100);
	CHECK_INT(seen.n_wrong, 0);
	end();

	/* And who has left is not waited for. */
	begin_paused(&seen, 2000);
	drain_and_retire();
	rpc_stream_cancel(seen.stream);
	turns(100);
	end();
}

static void a_retired_client_takes_no_calls(void)
{
	Nacre__Test__V1__WaitRequest request = NACRE__TEST__V1__WAIT_REQUEST__INIT;
	struct rpc_request again = { .method = "/nacre.test.v1.Test/Wait",
				     .message = &request.base,
				     .timeout = NSEC_NEVER };
	struct rpc_client *client;
	struct rpc_stream *stream;
	struct seen seen;

	begin_paused(&seen, 2000);
	client = nodes[1].client;
	nodes[1].client = rpc_client_retire(client);
	CHECK_INT(rpc_client_call(client, &again, &ops, &seen, &stream), -EPIPE);
	rpc_stream_pause(seen.stream, false);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, 2000);
	end();
}

static struct seen many[FORWARD_STREAMS_MAX];

/* The rest of the connection is for other peers, and for calls of this process. */
static void calls_that_are_passed_on_have_a_limit(void)
{
	struct seen own = { .n_ends = 0 };
	size_t refused = 0;

	begin(2);
	turns(5);
	memset(many, 0, sizeof(many));
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		wait_for(&many[i], "a", 100000, NSEC_NEVER);
	turns(20);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		refused += many[i].n_ends > 0 && many[i].code == RPC_RESOURCE_EXHAUSTED;
	CHECK_INT(refused, FORWARD_STREAMS_MAX / 2);
	/* What is not passed on is not counted. */
	wait_for(&own, NULL, 1, NSEC_NEVER);
	finish(&own);
	CHECK_INT(own.code, RPC_OK);
	end();
}

UNIT_MAIN({ "calls go down the chain", calls_go_down_the_chain },
	  { "targets are paths", targets_are_paths },
	  { "a slow reader stops the chain", a_slow_reader_stops_the_chain },
	  { "cancel and deadline go down the chain", cancel_and_deadline_go_down_the_chain },
	  { "messages of the client go down too", messages_of_the_client_go_down_too },
	  { "the deadline is passed on", the_deadline_is_passed_on },
	  { "a handler forwards", a_handler_forwards },
	  { "a server that ends does not wait for a slow reader",
	    a_server_that_ends_does_not_wait_for_a_slow_reader },
	  { "the rest of a server is bounded", the_rest_of_a_server_is_bounded },
	  { "a server that dies has said what it has", a_server_that_dies_has_said_what_it_has },
	  { "a retired client takes no calls", a_retired_client_takes_no_calls },
	  { "calls that are passed on have a limit", calls_that_are_passed_on_have_a_limit })
