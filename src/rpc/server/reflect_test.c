/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/reflect.h"

#include "rpc/message/pb.h"
#include "rpc/server/descriptors.h"
#include "rpc/server/fixture_test.h"
#include "rpc/server/health.h"
#include "unit.h"

static void symbols(void)
{
	static const struct {
		const char *symbol;
		int found;
	} table[] = {
		{ "nacre.test.v1.Test", 1 },
		{ "nacre.test.v1.Test.Echo", 1 },
		{ "nacre.test.v1.Test.Nope", 0 },
		{ "nacre.test.v1.Sample", 1 },
		{ "nacre.test.v1.Sample.text", 1 },
		{ "nacre.test.v1.Sample.choice", 1 },
		{ "nacre.test.v1.Sample.LabelsEntry", 1 },
		{ "nacre.test.v1.Sample.LabelsEntry.key", 1 },
		{ "nacre.test.v1.Sample.LabelsEntry.key.x", 0 },
		{ "nacre.test.v1.Sampl", 0 },
		{ "nacre.test.v1", 0 },
		{ "nacre.test.v1.", 0 },
		{ "nacre.test.v1x.Test", 0 },
		{ "nacre.test.v1xTest", 0 },
		{ "Test", 0 },
		{ "", 0 },
	};
	struct pb_field file;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		CHECK_INT(descriptors_find_symbol(rpc_test_descriptors, rpc_test_descriptors_len,
						  table[i].symbol, &file),
			  table[i].found);
	CHECK_INT(descriptors_find_file(rpc_test_descriptors, rpc_test_descriptors_len,
					"rpc_test.proto", &file),
		  1);
	CHECK_INT(descriptors_find_file(rpc_test_descriptors, rpc_test_descriptors_len, "x", &file),
		  0);
	CHECK_INT(descriptors_find_file(NULL, 0, "x", &file), 0);
}

/* A broken set is a bug of the build, and still nothing is read behind its end. */
static void a_set_that_is_cut(void)
{
	struct pb_field file;
	uint8_t *exact;

	for (size_t n = 0; n < rpc_test_descriptors_len; n++) {
		exact = malloc(n ? n : 1);
		memcpy(exact, rpc_test_descriptors, n);
		CHECK(descriptors_find_symbol(exact, n, "nacre.test.v1.Sample.LabelsEntry.key",
					      &file) <= 0);
		free(exact);
	}
}

/* ---- through the server ---- */

/* What came last, and what ended it. */
static struct {
	uint8_t data[8192];
	size_t len;
	unsigned n_messages, n_ends;
	enum rpc_code code;
} got;

static void got_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	got.n_messages++;
	CHECK(len <= sizeof(got.data));
	got.len = MIN(len, sizeof(got.data));
	memcpy(got.data, data, got.len);
}

static void got_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
		    void *userdata)
{
	got.n_ends++;
	got.code = code;
}

static const struct rpc_stream_ops got_ops = { .on_message = got_message, .on_end = got_end };

static struct rpc_stream *ask(const char *method, const void *data, size_t len, bool more)
{
	struct rpc_request request = {
		.method = method, .timeout = NSEC_NEVER, .data = data, .len = len, .more = more
	};
	struct rpc_stream *s;

	memset(&got, 0, sizeof(got));
	must(rpc_client_call(nodes[0].client, &request, &got_ops, NULL, &s) == 0);
	turns(20);
	return got.n_ends > 0 ? NULL : s;
}

static void answers_of_reflection(void)
{
	static const struct {
		const char *request;
		size_t len;
		uint32_t answer; /* its field in the response */
		const char *part;
	} table[] = {
#define CASE(s, field, part) { s, sizeof(s) - 1, field, part }
		CASE("\x3a\0", 6, "nacre.test.v1.Test"),
		CASE("\x1a\x0erpc_test.proto", 4, "nacre.test.v1"),
		CASE("\x1a\x1cgrpc/health/v1/health.proto?", 7, "not known"),
		CASE("\x1a\x1bgrpc/health/v1/health.proto", 4, "grpc.health.v1"),
		CASE("\x22\x12nacre.test.v1.Test", 4, "rpc_test.proto"),
		CASE("\x22\x01?", 7, "not known"),
		CASE("\x2a\x03\x0a\x01x", 7, "no extensions"),
		CASE("\x32\x14nacre.test.v1.Sample", 5, "nacre.test.v1.Sample"),
		CASE("\x32\x01x", 7, "not known"),
		CASE("", 7, "not a request"),
		CASE("\x0a\x01h", 7, "not a request"),
#undef CASE
	};
	static const char *const methods[] = { "/" REFLECT_SERVICE "/ServerReflectionInfo",
					       "/" REFLECT_SERVICE_ALPHA "/ServerReflectionInfo" };
	struct rpc_stream *s;
	struct pb_field f;

	begin(1);
	for (size_t m = 0; m < ARRAY_SIZE(methods); m++) {
		s = ask(methods[m], table[0].request, table[0].len, true);
		for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
			CHECK(s != NULL);
			CHECK_INT(rpc_stream_send(s, table[i].request, table[i].len), 0);
			turns(20);
			CHECK_INT(got.n_messages, i + 2);
			CHECK_INT(pb_find(got.data, got.len, table[i].answer, &f), 1);
			CHECK(memmem(f.data, f.len, table[i].part, strlen(table[i].part)));
			CHECK_INT(pb_find(got.data, got.len, 2, &f), 1);
			CHECK(f.len == table[i].len &&
			      memcmp(f.data, table[i].request, f.len) == 0);
		}
		rpc_stream_close_send(s);
		turns(20);
		CHECK_INT(got.n_ends, 1);
		CHECK_INT(got.code, RPC_OK);
	}
	end();
}

static void health_is_told(void)
{
	static const char check[] = "/" HEALTH_SERVICE "/Check";

	begin(1);
	(void)ask(check, NULL, 0, false);
	CHECK_INT(got.code, RPC_OK);
	CHECK(got.len == 2 && got.data[1] == 1);
	(void)ask(check, "\x0a\x12nacre.test.v1.Test", 20, false);
	CHECK_INT(got.code, RPC_OK);
	(void)ask(check, "\x0a\x01x", 3, false);
	CHECK_INT(got.n_ends, 1);
	CHECK_INT(got.code, RPC_NOT_FOUND);
	(void)ask(check, "\x0a\x01\xff", 3, false);
	CHECK_INT(got.code, RPC_INVALID_ARGUMENT);
	(void)ask(check, NULL, 0, true);
	CHECK_INT(got.n_ends, 0);
	end();
}

static void health_is_watched(void)
{
	static const char watch[] = "/" HEALTH_SERVICE "/Watch";
	struct rpc_stream *s;

	begin(1);
	s = ask(watch, NULL, 0, false);
	CHECK(s != NULL);
	rpc_stream_cancel(s);
	turns(10);
	(void)ask(watch, "\x0a\x01x", 3, false);
	CHECK_INT(got.data[1], 3);
	(void)ask(watch, NULL, 0, false);
	CHECK_INT(got.n_messages, 1);
	CHECK_INT(got.data[1], 1);
	rpc_server_drain(nodes[0].server, NSEC_PER_SEC, NULL, NULL);
	turns(20);
	/* The other watcher hears it too. */
	CHECK_INT(got.n_messages, 3);
	CHECK_INT(got.n_ends, 2);
	CHECK_INT(got.code, RPC_UNAVAILABLE);
	end();
}

UNIT_MAIN({ "symbols", symbols }, { "a set that is cut", a_set_that_is_cut },
	  { "answers of reflection", answers_of_reflection }, { "health is told", health_is_told },
	  { "health is watched", health_is_watched })
