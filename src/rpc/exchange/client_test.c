/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/exchange/client.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "http/pull_test.h"
#include "rpc/message/frame.h"
#include "rpc/message/gzip.h"
#include "rpc/server/fixture_test.h"
#include "unit.h"

/* A client of ours, and a server that answers what a test wants. */

static struct {
	int fd;
	struct http_session *http;
	struct http_stream *stream; /* the request that came last */
	char accepts[32];
	unsigned n_ended;
} far;

static int far_begun(struct http_session *h, struct http_stream *s)
{
	far.stream = s;
	http_stream_attach(s, &far);
	return 0;
}

static void far_field(struct http_stream *s, const char *name, const char *value)
{
	if (str_eq(name, "grpc-accept-encoding"))
		(void)str_copy(far.accepts, sizeof(far.accepts), value);
}

static void far_nothing(struct http_stream *s)
{
}

static void far_data(struct http_stream *s, const uint8_t *data, size_t len)
{
	http_stream_consumed(s, len);
}

static void far_ended(struct http_stream *s)
{
	far.n_ended++;
}

static void far_closed(struct http_stream *s, uint32_t code)
{
	far.stream = NULL;
}

static const struct http_ops far_ops = {
	.begin = far_begun,
	.field = far_field,
	.headers = far_nothing,
	.data = far_data,
	.end = far_ended,
	.close = far_closed,
	.drain = far_nothing,
};

static void far_begin(void)
{
	int fds[2];

	memset(&far, 0, sizeof(far));
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	far.fd = fds[0];
	must(http_session_new(&far.http, HTTP_SERVER, &far_ops, NULL) == 0);
	must(loop_new(&loop) == 0);
	must(rpc_client_new(&nodes[0].client, loop, fds[1]) == 0);
	n_nodes = 1;
}

static void far_end(void)
{
	far.http = http_session_free(far.http);
	far.fd = fd_close(far.fd);
	end();
}

/* Lets both sides talk until nothing moves. */
static void far_talk(void)
{
	struct buf out = BUF_INIT;
	uint8_t in[4096];
	ssize_t n;

	for (unsigned quiet = 0; quiet < 5; quiet++) {
		must(pull_into(far.http, &out, 65536) == 0);
		n = out.len ? write(far.fd, buf_data(&out), out.len) : 0;
		if (n > 0) {
			buf_consume(&out, (size_t)n);
			quiet = 0;
		}
		loop_turn(loop, false);
		n = read(far.fd, in, sizeof(in));
		if (n > 0) {
			must(http_session_receive(far.http, in, (size_t)n) == 0);
			quiet = 0;
		}
	}
	buf_done(&out);
}

static void answer(const char *encoding, const void *frame, size_t len)
{
	struct http_field head[] = {
		{ ":status", "200" },
		{ "content-type", "application/grpc" },
		{ "grpc-encoding", encoding },
	};
	static const struct http_field trailers[] = { { "grpc-status", "0" } };
	uint8_t *to;

	must(http_stream_respond(far.stream, head, encoding ? 3 : 2, false) == 0);
	must(http_stream_reserve(far.stream, len, &to) == 0);
	memcpy(to, frame, len);
	http_stream_commit(far.stream, len);
	must(http_stream_finish(far.stream, trailers, 1) == 0);
	far_talk();
}

static void an_answer_may_be_compressed(void)
{
	static const struct {
		const char *encoding;
		bool marked;
		size_t size; /* of the ballast */
		enum rpc_code code;
	} table[] = {
		{ "gzip", true, 100000, RPC_OK },
		{ "gzip", true, RPC_MESSAGE_MAX, RPC_RESOURCE_EXHAUSTED },
		{ "gzip", false, 1000, RPC_OK }, /* garbage for a message, but not for us */
		{ "identity", true, 1000, RPC_INTERNAL },
		{ NULL, true, 1000, RPC_INTERNAL },
		{ "zstd", true, 1000, RPC_INTERNAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		Nacre__Test__V1__CountResponse m = NACRE__TEST__V1__COUNT_RESPONSE__INIT;
		struct buf frame = BUF_INIT, small = BUF_INIT;
		uint8_t prefix[FRAME_PREFIX], *packed;
		struct seen seen = { .n_ends = 0 };
		size_t len;

		m.ballast.len = table[i].size;
		m.ballast.data = calloc(1, table[i].size);
		len = nacre__test__v1__count_response__get_packed_size(&m);
		packed = malloc(len);
		must(packed && m.ballast.data);
		(void)nacre__test__v1__count_response__pack(&m, packed);
		must(gzip_deflate(&small, packed, len) == 0);
		frame_prefix_write(prefix, small.len, table[i].marked);
		must(buf_add(&frame, prefix, sizeof(prefix)) == 0);
		must(buf_add(&frame, buf_data(&small), small.len) == 0);

		far_begin();
		count(&seen, NULL, 1, 1, NSEC_NEVER);
		far_talk();
		CHECK_STR(far.accepts, "identity,gzip");
		CHECK_INT(far.n_ended, 1);
		answer(table[i].encoding, buf_data(&frame), frame.len);
		CHECK_INT(seen.n_ends, 1);
		CHECK_INT(seen.code, table[i].code);
		if (table[i].marked && table[i].code == RPC_OK) {
			CHECK_INT(seen.n_bytes, len);
			CHECK_INT(seen.n_wrong, 0);
		}
		far_end();
		free(m.ballast.data);
		free(packed);
		buf_done(&small);
		buf_done(&frame);
	}
}

/* The client has something to write when the server has said all and is gone. */
static void what_was_said_before_the_end_is_read(void)
{
	struct rpc_request request = { .method = "/nacre.test.v1.Test/Talk",
				       .timeout = NSEC_NEVER,
				       .more = true };
	static const struct http_field trailers[] = { { ":status", "200" },
						      { "content-type", "application/grpc" },
						      { "grpc-status", "9" },
						      { "grpc-message", "the last word" } };
	struct seen seen = { .n_ends = 0 };
	struct buf out = BUF_INIT;

	far_begin();
	must(rpc_client_call(nodes[0].client, &request, &ops, &seen, &seen.stream) == 0);
	far_talk();
	must(far.stream);
	must(http_stream_respond(far.stream, trailers, ARRAY_SIZE(trailers), true) == 0);
	must(pull_into(far.http, &out, 65536) == 0);
	must(write(far.fd, buf_data(&out), out.len) == (ssize_t)out.len);
	buf_done(&out);
	far.fd = fd_close(far.fd);
	CHECK_INT(rpc_stream_send(seen.stream, "", 0), 0);
	finish(&seen);
	CHECK_INT(seen.code, RPC_FAILED_PRECONDITION);
	CHECK_STR(seen.err.text, "the last word");
	far_end();
}

UNIT_MAIN({ "an answer may be compressed", an_answer_may_be_compressed },
	  { "what was said before the end is read", what_was_said_before_the_end_is_read })
