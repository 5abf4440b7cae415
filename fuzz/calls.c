/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A server, and a peer that makes whole frames of the input: heads of calls with fields that nobody
 * should send, bodies in pieces, ends, resets, several calls at a time. Each step begins with a
 * byte that says what it is.
 */

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "fuzz.h"
#include "http/pull_test.h"
#include "loop/loop.h"
#include "rpc/echo/echo.h"
#include "rpc/server/server.h"

#define STREAMS 4
#define STEPS 64

static struct {
	struct http_session *http;
	struct http_stream *streams[STREAMS];
	bool finished[STREAMS];
	int fd;
} peer;

static void peer_field(struct http_stream *s, const char *name, const char *value)
{
}

static void peer_headers(struct http_stream *s)
{
}

static void peer_data(struct http_stream *s, const uint8_t *data, size_t len)
{
	http_stream_consumed(s, len);
}

static void peer_closed(struct http_stream *s, uint32_t code)
{
	for (size_t i = 0; i < STREAMS; i++)
		if (peer.streams[i] == s)
			peer.streams[i] = NULL;
}

static const struct http_ops peer_ops = {
	.field = peer_field,
	.headers = peer_headers,
	.data = peer_data,
	.end = peer_headers,
	.close = peer_closed,
	.drain = peer_headers,
};

static void talk(struct loop *loop)
{
	struct buf out = BUF_INIT;
	uint8_t in[4096];
	ssize_t n;

	for (unsigned i = 0; i < 4; i++) {
		if (pull_into(peer.http, &out, 65536) < 0)
			break;
		n = out.len ? write(peer.fd, buf_data(&out), out.len) : 0;
		if (n > 0)
			buf_consume(&out, (size_t)n);
		loop_turn(loop, false);
		n = read(peer.fd, in, sizeof(in));
		if (n > 0 && http_session_receive(peer.http, in, (size_t)n) < 0)
			break;
	}
	buf_done(&out);
}

static const char *const paths[] = {
	"/nacre.test.v1.Test/Echo",
	"/nacre.test.v1.Test/Count",
	"/nacre.test.v1.Test/Wait",
	"/nacre.test.v1.Test/Talk",
	"/grpc.health.v1.Health/Check",
	"/grpc.health.v1.Health/Watch",
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	"/nacre.test.v1.Test/Sum",
};

static const char *const names[] = {
	"grpc-timeout", "nacre-target",         "grpc-encoding",  "te",
	"x-bin-bin",    "grpc-accept-encoding", "content-length", "user-agent",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A field of HTTP has no bytes that end it. */
static char *value_of(struct fuzz_input part)
{
	char *s = fuzz_str(part);

	for (char *c = s; *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = '?';
	return s;
}

static void step_head(struct fuzz_input *in, size_t i)
{
	struct http_stream **stream = &peer.streams[i];
	unsigned path = fuzz_byte(in), name = fuzz_byte(in);
	char *value = value_of(fuzz_bytes(in, fuzz_byte(in) & 31));
	struct http_field fields[] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", path < 0x80 ? paths[path % COUNT(paths)] : value },
		{ ":authority", "x" },
		{ "content-type", "application/grpc" },
		{ names[name % COUNT(names)], value },
	};

	if (!*stream) {
		peer.finished[i] = false;
		if (http_session_request(peer.http, fields,
					 name & 0x80 ? COUNT(fields) : COUNT(fields) - 1, &peer,
					 stream) < 0)
			*stream = NULL;
	}
	free(value);
}

/* A message, with a length that is right or not. */
static void step_body(struct fuzz_input *in, struct http_stream *s)
{
	unsigned how = fuzz_byte(in);
	struct fuzz_input part = fuzz_bytes(in, fuzz_byte(in));
	uint8_t head[5] = { 0, 0, 0, 0, (uint8_t)part.len };
	uint8_t *to;

	if (!s)
		return;
	head[0] = how & 1;
	head[3] = how & 2 ? 1 : 0;
	if (http_stream_reserve(s, sizeof(head) + part.len, &to) < 0)
		return;
	memcpy(to, head, sizeof(head));
	if (part.len > 0)
		memcpy(to + sizeof(head), part.at, part.len);
	http_stream_commit(s, how & 4 ? part.len : sizeof(head) + part.len);
}

static void step(struct fuzz_input *in, struct loop *loop)
{
	unsigned what = fuzz_byte(in);
	size_t i = what >> 3 & (STREAMS - 1);
	struct http_stream *s = peer.streams[i];

	switch (what & 7) {
	case 0:
		step_head(in, i);
		break;
	case 1:
	case 2:
		step_body(in, peer.finished[i] ? NULL : s);
		break;
	case 3:
		if (s && !peer.finished[i])
			fuzz_need(http_stream_finish(s, NULL, 0) <= 0);
		peer.finished[i] = true;
		break;
	case 4:
		if (s)
			http_stream_reset(s, fuzz_byte(in));
		peer.finished[i] = true;
		break;
	default:
		talk(loop);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_server_config config = { .descriptors = rpc_test_descriptors,
					    .descriptors_len = rpc_test_descriptors_len };
	struct fuzz_input in = { data, size };
	struct echo echo = { 0 };
	struct rpc_server *server;
	struct echo_address address;
	struct loop *loop;

	fuzz_need(loop_new(&loop) == 0);
	config.loop = echo.loop = loop;
	fuzz_need(rpc_server_new(&server, &config) == 0);
	fuzz_need(rpc_server_add(server, &echo_service, &echo) == 0);
	fuzz_need(rpc_server_listen(server, echo_listen(&address)) == 0);
	memset(&peer, 0, sizeof(peer));
	peer.fd = echo_connect(&address);
	fuzz_need(peer.fd >= 0);
	fuzz_need(http_session_new(&peer.http, HTTP_CLIENT, &peer_ops, &peer) == 0);
	for (unsigned i = 0; i < STEPS && in.len > 0; i++)
		step(&in, loop);
	talk(loop);
	(void)http_session_free(peer.http);
	(void)fd_close(peer.fd);
	for (unsigned i = 0; i < 8; i++)
		loop_turn(loop, false);
	(void)rpc_server_free(server);
	(void)loop_free(loop);
	return 0;
}
