/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/server.h"

#include <errno.h>
#include <unistd.h>

#include "rpc/server/fixture_test.h"
#include "rpc/server/measure.h"
#include "unit.h"

/* ---- one server ---- */

static void a_unary_call(void)
{
	Nacre__Test__V1__EchoRequest request;
	struct seen seen = { .n_ends = 0 };
	char text[] = "hello";

	begin(1);
	nacre__test__v1__echo_request__init(&request);
	request.text = text;
	call(&seen, "/nacre.test.v1.Test/Echo", NULL, &request.base, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.err.code, 0);
	CHECK_INT(seen.n_messages, 1);
	CHECK_INT(seen.n_bytes, 7);
	end();
}

static void see_measure(void *userdata, const struct rpc_measure *m)
{
	struct rpc_measure *to = userdata;
	bool is_echo = str_has_suffix(m->path, "/Echo"),
	     is_count = str_has_suffix(m->path, "/Count");

	CHECK(is_echo || is_count || str_empty(m->path));
	to[is_echo ? 0 : is_count ? 1 : 2] = *m;
}

static void calls_are_measured(void)
{
	struct rpc_measure got[3] = { { .started = 0 } };
	struct seen seen[4] = { { .n_ends = 0 } };
	Nacre__Test__V1__EchoRequest request;
	struct rpc_server_load load;
	uint64_t n = 0;

	begin(1);
	must(rpc_server_measure(nodes[0].server) == 0);
	nacre__test__v1__echo_request__init(&request);
	call(&seen[0], "/nacre.test.v1.Test/Echo", NULL, &request.base, NSEC_NEVER);
	finish(&seen[0]);
	call(&seen[1], "/nacre.test.v1.Test/Echo", NULL, &request.base, NSEC_NEVER);
	finish(&seen[1]);
	count(&seen[2], NULL, 3, 3, NSEC_NEVER);
	finish(&seen[2]);
	call(&seen[3], "/nacre.test.v1.Test/Nothing", NULL, &request.base, NSEC_NEVER);
	finish(&seen[3]);
	rpc_server_each_measure(nodes[0].server, see_measure, got);
	CHECK_INT(got[0].started, 2);
	CHECK_INT(got[0].by_code[RPC_OK], 2);
	for (size_t i = 0; i <= RPC_MEASURE_BOUNDS; i++)
		n += got[0].buckets[i];
	CHECK_INT(n, 2);
	CHECK(got[0].is_timed && got[0].total > 0);
	CHECK(!got[1].is_timed && got[1].by_code[RPC_OK] == 1);
	CHECK_INT(got[2].started, 1);
	CHECK_INT(got[2].by_code[RPC_UNIMPLEMENTED], 1);
	load = rpc_server_load(nodes[0].server);
	CHECK(load.connections == 1 && load.calls == 0 && load.request_bytes == 0);
	end();
}

static void the_status_arrives(void)
{
	Nacre__Test__V1__FailRequest request;
	char text[] = "container \xc3\xa4: 100% gone";
	struct seen seen;

	begin(1);
	nacre__test__v1__fail_request__init(&request);
	request.text = text;
	for (unsigned kind = 0; kind < ERROR_KIND_COUNT; kind++) {
		seen = (struct seen){ .n_ends = 0 };
		request.kind = kind;
		call(&seen, "/nacre.test.v1.Test/Fail", NULL, &request.base, NSEC_NEVER);
		finish(&seen);
		CHECK_INT(seen.err.kind, kind);
		CHECK_STR(seen.err.text, text);
	}
	end();
}

static void a_stream(void)
{
	struct seen seen = { .n_ends = 0 };

	begin(1);
	count(&seen, NULL, 20000, 10, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, 20000);
	CHECK_INT(seen.n_wrong, 0);
	/* And an empty one. */
	seen = (struct seen){ .n_ends = 0 };
	count(&seen, NULL, 0, 0, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	end();
}

static void many_at_once(void)
{
	static struct seen seen[1500];

	begin(1);
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		wait_for(&seen[i], NULL, 20, NSEC_NEVER);
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		finish(&seen[i]);
		CHECK_INT(seen[i].code, RPC_OK);
	}
	end();
}

static void a_slow_reader_stops_the_handler(void)
{
	struct seen seen = { .pause_after = 10 };
	size_t sent;

	begin(1);
	count(&seen, NULL, 20000, 1000, NSEC_NEVER);
	turns(300);
	CHECK_INT(seen.n_messages, 10);
	sent = nodes[0].echo.n_sent;
	/* The queue, the socket and both windows: far less than the twenty megabytes to come. */
	CHECK(sent < 1500);
	turns(100);
	CHECK_INT(nodes[0].echo.n_sent, sent);
	rpc_stream_pause(seen.stream, false);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_messages, 20000);
	CHECK_INT(seen.n_wrong, 0);
	end();
}

static void cancel_reaches_the_handler(void)
{
	struct seen seen = { .n_ends = 0 };

	begin(1);
	wait_for(&seen, NULL, 100000, NSEC_NEVER);
	turns(10);
	CHECK_INT(nodes[0].echo.n_cancelled, 0);
	CHECK(seen.stream != NULL);
	rpc_stream_cancel(seen.stream);
	turns(10);
	CHECK_INT(nodes[0].echo.n_cancelled, 1);
	CHECK_INT(seen.n_ends, 0);
	/* Also from within a message, and before anything was sent. */
	seen = (struct seen){ .cancel_at_once = true };
	count(&seen, NULL, 1000000, 1000, NSEC_NEVER);
	turns(100);
	CHECK_INT(seen.n_messages, 1);
	CHECK_INT(nodes[0].echo.n_cancelled, 2);
	seen = (struct seen){ .n_ends = 0 };
	wait_for(&seen, NULL, 100000, NSEC_NEVER);
	rpc_stream_cancel(seen.stream);
	turns(10);
	CHECK_INT(nodes[0].echo.n_cancelled, 2);
	end();
}

static void deadlines_pass(void)
{
	struct seen seen = { .n_ends = 0 };
	nsec_t start, limit;

	begin(1);
	/* Long enough that the server has heard of it by then; how long that takes is the machine's
	 * affair. */
	for (limit = 50 * NSEC_PER_MSEC; limit < 20 * NSEC_PER_SEC; limit *= 4) {
		seen = (struct seen){ .n_ends = 0 };
		start = clock_mono();
		wait_for(&seen, NULL, 100000, limit);
		finish(&seen);
		CHECK_INT(seen.code, RPC_DEADLINE_EXCEEDED);
		CHECK_INT(seen.err.kind, ERROR_DEADLINE);
		CHECK(clock_mono() - start >= limit);
		turns(20);
		if (nodes[0].echo.n_cancelled)
			break;
	}
	CHECK_INT(nodes[0].echo.n_cancelled, 1);
	/* One that has passed already. */
	seen = (struct seen){ .n_ends = 0 };
	wait_for(&seen, NULL, 100000, 0);
	finish(&seen);
	CHECK_INT(seen.code, RPC_DEADLINE_EXCEEDED);
	/* One that is kept; the slower the machine, the longer it may take. */
	for (limit = 50 * NSEC_PER_MSEC; limit < 20 * NSEC_PER_SEC; limit *= 4) {
		seen = (struct seen){ .n_ends = 0 };
		start = clock_mono();
		wait_for(&seen, NULL, 5, limit);
		finish(&seen);
		if (seen.code == RPC_OK)
			break;
	}
	CHECK_INT(seen.code, RPC_OK);
	/* Nothing of it is left when its time would have come. */
	while (clock_mono() < start + limit + 20 * NSEC_PER_MSEC)
		loop_turn(loop, false);
	CHECK_INT(seen.n_ends, 1);
	end();
}

/* An EchoRequest of n bytes in all, with a length of four bytes. */
static void echo_bytes(struct seen *seen, uint8_t *data, size_t n)
{
	struct rpc_request request = {
		.method = "/nacre.test.v1.Test/Echo", .timeout = NSEC_NEVER, .data = data, .len = n
	};
	size_t left = n - 5;

	data[0] = 0x0a;
	for (unsigned i = 1; i <= 4; i++) {
		data[i] = (uint8_t)((left & 0x7f) | (i < 4 ? 0x80 : 0));
		left >>= 7;
	}
	CHECK_INT(rpc_client_call(nodes[0].client, &request, &ops, seen, &seen->stream), 0);
	finish(seen);
}

static void messages_of_16_mib(void)
{
	struct rpc_request request = { .method = "/x/Y",
				       .timeout = NSEC_NEVER,
				       .len = RPC_MESSAGE_MAX + 1 };
	struct seen seen = { .n_ends = 0 };
	uint8_t *data = calloc(1, RPC_MESSAGE_MAX + 1);

	begin(1);
	echo_bytes(&seen, data, RPC_MESSAGE_MAX);
	CHECK_INT(seen.code, RPC_OK);
	CHECK_INT(seen.n_bytes, RPC_MESSAGE_MAX);
	seen = (struct seen){ .n_ends = 0 };
	request.data = data;
	CHECK_INT(rpc_client_call(nodes[0].client, &request, &ops, &seen, &seen.stream), -EMSGSIZE);
	turns(10);
	CHECK_INT(seen.n_ends, 0);
	free(data);
	end();
}

/* ---- lost connections ---- */

static unsigned n_closed;

static void on_close(struct rpc_client *c, void *data)
{
	n_closed++;
	nodes[0].client = rpc_client_free(c);
}

static void a_lost_server(void)
{
	struct seen seen = { .n_ends = 0 }, late = { .n_ends = 0 };

	begin(1);
	wait_for(&seen, NULL, 100000, NSEC_NEVER);
	turns(10);
	CHECK(rpc_client_connected(nodes[0].client));
	nodes[0].server = rpc_server_free(nodes[0].server);
	CHECK_INT(nodes[0].echo.n_cancelled, 1);
	finish(&seen);
	CHECK_INT(seen.code, RPC_UNAVAILABLE);
	CHECK(!rpc_client_connected(nodes[0].client));
	/* A call that comes too late is told so by its end. */
	wait_for(&late, NULL, 1, NSEC_NEVER);
	finish(&late);
	CHECK_INT(late.code, RPC_UNAVAILABLE);
	end();
}

static void a_lost_connection_is_told_once(void)
{
	begin(1);
	n_closed = 0;
	turns(10);
	rpc_client_on_close(nodes[0].client, on_close, NULL);
	nodes[0].server = rpc_server_free(nodes[0].server);
	turns(10);
	CHECK_INT(n_closed, 1);
	CHECK(!nodes[0].client);
	end();
}

static struct seen from_close;

static void on_close_call(struct rpc_client *c, void *data)
{
	n_closed++;
	wait_for(&from_close, NULL, 1, NSEC_NEVER);
}

static void a_call_from_on_close_ends(void)
{
	begin(1);
	n_closed = 0;
	from_close = (struct seen){ .n_ends = 0 };
	turns(10);
	rpc_client_on_close(nodes[0].client, on_close_call, NULL);
	nodes[0].server = rpc_server_free(nodes[0].server);
	finish(&from_close);
	CHECK_INT(from_close.code, RPC_UNAVAILABLE);
	CHECK_INT(n_closed, 1);
	end();
}

static void a_lost_client(void)
{
	struct seen seen[2] = { { .n_ends = 0 }, { .n_ends = 0 } };

	begin(1);
	n_closed = 0;
	rpc_client_on_close(nodes[0].client, on_close, NULL);
	wait_for(&seen[0], NULL, 100000, NSEC_NEVER);
	count(&seen[1], NULL, 1000000, 1000, NSEC_NEVER);
	turns(10);
	nodes[0].client = rpc_client_free(nodes[0].client);
	CHECK_INT(seen[0].n_ends, 1);
	CHECK_INT(seen[0].code, RPC_UNAVAILABLE);
	CHECK_INT(seen[1].n_ends, 1);
	turns(10);
	CHECK_INT(nodes[0].echo.n_cancelled, 2);
	CHECK_INT(n_closed, 0);
	end();
}

/* A handler that keeps its call beyond the server. */
static struct rpc_call *kept;

static void keep(struct rpc_call *c, const ProtobufCMessage *request, void *userdata)
{
	kept = c;
}

static void a_call_outlives_its_server(void)
{
	static const struct rpc_method methods[] = { {
		.name = "Keep",
		.input = &nacre__test__v1__wait_request__descriptor,
		.output = &nacre__test__v1__wait_response__descriptor,
		.handle = keep,
	} };
	static const struct rpc_service service = { "nacre.test.v1.Keeper", methods, 1 };
	Nacre__Test__V1__WaitRequest request = NACRE__TEST__V1__WAIT_REQUEST__INIT;
	Nacre__Test__V1__WaitResponse answer = NACRE__TEST__V1__WAIT_RESPONSE__INIT;
	struct seen seen = { .n_ends = 0 };

	begin(1);
	kept = NULL;
	CHECK_INT(rpc_server_add(nodes[0].server, &service, NULL), 0);
	CHECK_INT(rpc_server_add(nodes[0].server, &service, NULL), -EEXIST);
	call(&seen, "/nacre.test.v1.Keeper/Keep", NULL, &request.base, NSEC_NEVER);
	turns(10);
	CHECK(kept != NULL && !rpc_call_cancelled(kept));
	CHECK_INT(rpc_call_peer(kept)->uid, geteuid());
	CHECK_INT(rpc_call_peer(kept)->pid, getpid());
	CHECK(rpc_call_deadline(kept) == NSEC_NEVER);
	nodes[0].server = rpc_server_free(nodes[0].server);
	CHECK(rpc_call_cancelled(kept));
	CHECK(!rpc_call_writable(kept));
	CHECK_INT(rpc_call_send(kept, &answer.base), 0);
	CHECK(arena_alloc(rpc_call_arena(kept), 100) != NULL);
	rpc_call_reply(kept, &answer.base);
	finish(&seen);
	CHECK_INT(seen.code, RPC_UNAVAILABLE);
	end();
}

/* ---- drain ---- */

static unsigned n_drained;

static void on_drained(void *userdata)
{
	n_drained++;
}

static void drain_lets_calls_end(void)
{
	struct seen seen = { .n_ends = 0 }, late = { .n_ends = 0 };
	uint32_t ms = 50;

	/* One that is under way when the server drains: the slower the machine, the longer it must
	 * be. */
	for (;; ms *= 4) {
		begin(1);
		n_drained = 0;
		seen = (struct seen){ .n_ends = 0 };
		wait_for(&seen, NULL, ms, NSEC_NEVER);
		turns(10);
		rpc_server_drain(nodes[0].server, 60 * NSEC_PER_SEC, on_drained, NULL);
		turns(10);
		if (n_drained == 0 || ms > 20000)
			break;
		end();
	}
	CHECK_INT(n_drained, 0);
	wait_for(&late, NULL, 1, NSEC_NEVER);
	finish(&late);
	CHECK_INT(late.code, RPC_UNAVAILABLE);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	turns(10);
	CHECK_INT(n_drained, 1);
	end();
}

static void drain_ends_after_its_grace(void)
{
	struct seen seen = { .n_ends = 0 };
	time_t since;

	begin(1);
	n_drained = 0;
	wait_for(&seen, NULL, 100000, NSEC_NEVER);
	turns(10);
	rpc_server_drain(nodes[0].server, 20 * NSEC_PER_MSEC, on_drained, NULL);
	CHECK_INT(n_drained, 0);
	since = unit_now();
	while (n_drained == 0 && unit_waits(since))
		loop_turn(loop, false);
	CHECK_INT(n_drained, 1);
	CHECK_INT(seen.n_ends, 0);
	end();
}

UNIT_MAIN({ "a unary call", a_unary_call }, { "calls are measured", calls_are_measured },
	  { "the status arrives", the_status_arrives }, { "a stream", a_stream },
	  { "many at once", many_at_once },
	  { "a slow reader stops the handler", a_slow_reader_stops_the_handler },
	  { "cancel reaches the handler", cancel_reaches_the_handler },
	  { "deadlines pass", deadlines_pass }, { "messages of 16 MiB", messages_of_16_mib },
	  { "a lost server", a_lost_server },
	  { "a lost connection is told once", a_lost_connection_is_told_once },
	  { "a call from on_close ends", a_call_from_on_close_ends },
	  { "a lost client", a_lost_client },
	  { "a call outlives its server", a_call_outlives_its_server },
	  { "drain lets calls end", drain_lets_calls_end },
	  { "drain ends after its grace", drain_ends_after_its_grace })
