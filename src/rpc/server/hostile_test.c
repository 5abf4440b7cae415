/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "http/pull_test.h"
#include "rpc/exchange/exchange.h"
#include "rpc/message/frame.h"
#include "rpc/message/gzip.h"
#include "rpc/server/fixture_test.h"
#include "unit.h"

/* A server, and a peer that says what no client of ours would say. */

static struct {
	int fd;
	struct http_session *http;
	struct http_stream *stream;
	char status[8], grpc_status[8], grpc_encoding[16];
	unsigned n_ended, n_closed;
	struct buf body; /* while `keeps` */
	bool keeps;
	uint32_t code;
} peer;

static struct echo_address address;

static void peer_field(struct http_stream *s, const char *name, const char *value)
{
	if (str_eq(name, ":status"))
		(void)str_copy(peer.status, sizeof(peer.status), value);
	if (str_eq(name, "grpc-status"))
		(void)str_copy(peer.grpc_status, sizeof(peer.grpc_status), value);
	if (str_eq(name, "grpc-accept-encoding"))
		(void)str_copy(peer.grpc_encoding, sizeof(peer.grpc_encoding), value);
}

static void peer_headers(struct http_stream *s)
{
}

static void peer_data(struct http_stream *s, const uint8_t *data, size_t len)
{
	if (peer.keeps)
		CHECK_INT(buf_add(&peer.body, data, len), 0);
	http_stream_consumed(s, len);
}

static void peer_ended(struct http_stream *s)
{
	peer.n_ended++;
}

static void peer_closed(struct http_stream *s, uint32_t code)
{
	peer.n_closed++;
	peer.code = code;
	peer.stream = NULL;
}

static const struct http_ops peer_ops = {
	.field = peer_field,
	.headers = peer_headers,
	.data = peer_data,
	.end = peer_ended,
	.close = peer_closed,
	.drain = peer_headers,
};

static void node_listen(struct node *n, struct rpc_server_config config)
{
	int fd;

	config.loop = loop;
	*n = (struct node){ .echo = { .loop = loop } };
	CHECK_INT(rpc_server_new(&n->server, &config), 0);
	CHECK_INT(rpc_server_add(n->server, &echo_service, &n->echo), 0);
	fd = echo_listen(&address);
	CHECK(fd >= 0);
	CHECK_INT(rpc_server_listen(n->server, fd), 0);
}

static void server_begin_as(struct rpc_server_config config)
{
	CHECK_INT(loop_new(&loop), 0);
	n_nodes = 1;
	node_listen(&nodes[0], config);
}

static void server_begin(void)
{
	server_begin_as((struct rpc_server_config){ 0 });
}

static void peer_begin(void)
{
	memset(&peer, 0, sizeof(peer));
	peer.fd = echo_connect(&address);
	CHECK(peer.fd >= 0);
	CHECK_INT(http_session_new(&peer.http, HTTP_CLIENT, &peer_ops, &peer), 0);
}

static void peer_end(void)
{
	peer.http = http_session_free(peer.http);
	peer.fd = fd_close(peer.fd);
}

/* Lets both sides talk until nothing moves. */
static void peer_talk(void)
{
	struct buf out = BUF_INIT;
	uint8_t in[4096];
	ssize_t n;

	for (unsigned quiet = 0; quiet < 5; quiet++) {
		CHECK_INT(pull_into(peer.http, &out, 65536), 0);
		n = out.len ? write(peer.fd, buf_data(&out), out.len) : 0;
		if (n > 0) {
			buf_consume(&out, (size_t)n);
			quiet = 0;
		}
		loop_turn(loop, false);
		n = read(peer.fd, in, sizeof(in));
		if (n > 0) {
			CHECK_INT(http_session_receive(peer.http, in, (size_t)n), 0);
			quiet = 0;
		}
	}
	buf_done(&out);
}

static void peer_send(const void *body, size_t len, bool ends)
{
	uint8_t *to;

	CHECK(peer.stream != NULL);
	if (len > 0) {
		CHECK_INT(http_stream_reserve(peer.stream, len, &to), 0);
		memcpy(to, body, len);
		http_stream_commit(peer.stream, len);
	}
	if (ends)
		CHECK_INT(http_stream_finish(peer.stream, NULL, 0), 0);
	peer_talk();
}

/* One call by its head and body; what came back stands in peer. */
static void peer_call(const struct http_field *fields, size_t n, const void *body, size_t len,
		      bool ends)
{
	CHECK_INT(http_session_request(peer.http, fields, n, &peer, &peer.stream), 0);
	peer_send(body, len, ends);
}

#define ECHO "/nacre.test.v1.Test/Echo"
#define GRPC "application/grpc"

static void heads(void)
{
	static const struct {
		const char *method, *path, *type, *name, *value;
		const char *status, *grpc_status;
	} table[] = {
		{ "POST", ECHO, GRPC, "te", "trailers", "200", "0" },
		{ "POST", ECHO, GRPC "+proto", "x-mine", "x", "200", "0" },
		{ "POST", ECHO, GRPC, "grpc-encoding", "identity", "200", "0" },
		{ "POST", ECHO, GRPC, "grpc-encoding", "gzip", "200", "0" },
		{ "POST", ECHO, GRPC, "grpc-encoding", "deflate", "200", "12" },
		{ "POST", ECHO, GRPC, "grpc-encoding", "gzip,identity", "200", "12" },
		{ "POST", ECHO, GRPC, "grpc-timeout", "5S", "200", "0" },
		{ "POST", ECHO, GRPC, "grpc-timeout", "123456789n", "200", "3" },
		{ "POST", ECHO, GRPC, "grpc-timeout", "5", "200", "3" },
		{ "POST", ECHO, GRPC, "nacre-target", "a", "200", "5" },
		{ "POST", ECHO, GRPC, "nacre-target", "a//b", "200", "3" },
		{ "POST", ECHO, GRPC, "nacre-target", "", "200", "0" },
		{ "GET", ECHO, GRPC, "te", "trailers", "405", "12" },
		{ "POST", ECHO, "application/json", "te", "trailers", "415", "3" },
		{ "POST", ECHO, "application/grpc-web", "te", "trailers", "415", "3" },
		{ "POST", "/", GRPC, "te", "trailers", "200", "12" },
		{ "POST", "/" ECHO, GRPC, "te", "trailers", "200", "12" },
		{ "POST", ECHO "/", GRPC, "te", "trailers", "200", "12" },
		{ "POST", ECHO "?a=b", GRPC, "te", "trailers", "200", "12" },
		{ "POST", "/nacre.test.v1.test/echo", GRPC, "te", "trailers", "200", "12" },
		{ "POST", "/nacre.test.v1.Test/../v1.Test/Echo", GRPC, "te", "trailers", "200",
		  "12" },
		/* Without descriptors in the configuration there is no reflection. */
		{ "POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", GRPC, "te",
		  "trailers", "200", "12" },
	};
	static const uint8_t empty[FRAME_PREFIX];

	server_begin();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct http_field fields[] = {
			{ ":method", table[i].method },    { ":scheme", "http" },
			{ ":path", table[i].path },        { ":authority", "x" },
			{ "content-type", table[i].type }, { table[i].name, table[i].value },
		};

		peer_begin();
		peer_call(fields, ARRAY_SIZE(fields), empty, sizeof(empty), true);
		CHECK_STR(peer.status, table[i].status);
		CHECK_STR(peer.grpc_status, table[i].grpc_status);
		CHECK_STR(peer.grpc_encoding, str_eq(peer.status, "200") ? "identity,gzip" : "");
		CHECK_INT(peer.n_ended, 1);
		peer_end();
	}
	end();
}

static void bodies(void)
{
	static const struct {
		const char *body;
		size_t len;
		const char *grpc_status;
		bool open; /* the client does not end its side */
	} table[] = {
#define CASE(s, status) { s, sizeof(s) - 1, status, false }
		CASE("\0\0\0\0\0", "0"),
		CASE("\0\0\0\0\4\x12\2hi", "0"),
		CASE("", "12"),
		CASE("\0\0\0\0\0\0\0\0\0\0", "12"),
		CASE("\1\0\0\0\0", "13"),
		CASE("\2\0\0\0\0", "13"),
		CASE("\0\1\0\0\1", "8"),
		CASE("\0\xff\xff\xff\xff", "8"),
		CASE("\0", "13"),
		CASE("\0\0\0\0", "13"),
		CASE("\0\0\0\0\1", "13"),
		CASE("\0\0\0\0\0\0", "13"),
		CASE("\0\0\0\0\3\x12\2h", "3"),
		CASE("\0\0\0\0\4\x12\2h\0", "3"),
#undef CASE
		/* Refused before the client has ended: it is told at once. */
		{ "\0\xff\xff\xff\xff", 5, "8", true },
		{ "\0\0\0\0\1\xff", 6, "3", true },
	};
	static const struct http_field fields[] = {
		{ ":method", "POST" }, { ":scheme", "http" },    { ":path", ECHO },
		{ ":authority", "x" }, { "content-type", GRPC },
	};

	server_begin();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		peer_begin();
		peer_call(fields, ARRAY_SIZE(fields), table[i].body, table[i].len, !table[i].open);
		CHECK_STR(peer.status, "200");
		CHECK_STR(peer.grpc_status, table[i].grpc_status);
		CHECK_INT(peer.n_ended, 1);
		CHECK_INT(peer.n_closed, 1);
		CHECK_INT(peer.code, HTTP_NO_ERROR);
		peer_end();
	}
	end();
}

/* ---- compression ---- */

/* A frame with the gzip of an EchoRequest whose `data` is `size` bytes of zero. */
static void gzip_body(struct buf *ret, size_t size)
{
	struct buf small = BUF_INIT;
	uint8_t *plain = calloc(1, size + 5), prefix[FRAME_PREFIX];

	must(plain != NULL);
	plain[0] = 0x0a;
	for (unsigned i = 0; i < 4; i++)
		plain[1 + i] = (uint8_t)((size >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
	must(gzip_deflate(&small, plain, size + 5) == 0);
	frame_prefix_write(prefix, small.len, true);
	must(buf_add(ret, prefix, sizeof(prefix)) == 0);
	must(buf_add(ret, buf_data(&small), small.len) == 0);
	buf_done(&small);
	free(plain);
}

static void gzip_call(const struct buf *body, const char *accepts)
{
	struct http_field fields[] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", ECHO },
		{ ":authority", "x" },
		{ "content-type", GRPC },
		{ "grpc-encoding", "gzip" },
		{ "grpc-accept-encoding", accepts },
	};

	peer_call(fields, accepts ? 7 : 6, buf_data(body), body->len, true);
}

static void compressed_bodies(void)
{
	enum { WHOLE, CUT, CHANGED, PLAIN };
	static const struct {
		size_t size;
		unsigned how;
		const char *grpc_status;
	} table[] = {
		{ 1000, WHOLE, "0" },
		{ RPC_MESSAGE_MAX - 5, WHOLE, "0" },
		{ RPC_MESSAGE_MAX - 4, WHOLE, "8" },
		{ (size_t)4 * RPC_MESSAGE_MAX, WHOLE, "8" },
		{ 1000, CUT, "13" },
		{ 1000, CHANGED, "13" },
		/* What is not marked is not compressed. */
		{ 1000, PLAIN, "3" },
	};

	server_begin();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct buf body = BUF_INIT;

		gzip_body(&body, table[i].size);
		if (table[i].how == CUT)
			frame_prefix_write(body.base, (body.len -= 9) - FRAME_PREFIX, true);
		if (table[i].how == CHANGED)
			body.base[body.len - 7] ^= 1;
		if (table[i].how == PLAIN)
			body.base[0] = 0;
		peer_begin();
		gzip_call(&body, NULL);
		CHECK_STR(peer.status, "200");
		CHECK_STR(peer.grpc_status, table[i].grpc_status);
		CHECK_INT(peer.n_closed, 1);
		peer_end();
		buf_done(&body);
	}
	end();
}

static void compressed_answers(void)
{
	static const struct {
		size_t size;
		const char *accepts;
		bool compressed;
	} table[] = {
		{ 100000, NULL, true },
		{ 100000, "identity, gzip", true },
		{ 100000, "deflate,gzip", true },
		{ 100000, "identity,deflate", false },
		{ 100000, "", false },
		{ GZIP_WORTH, "gzip", true },
		{ GZIP_WORTH - 8, "gzip", false },
		{ GZIP_MAX - 8, "gzip", true },
		{ GZIP_MAX, "gzip", false },
	};

	server_begin();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct buf body = BUF_INIT, plain = BUF_INIT;
		bool compressed = false;
		size_t len;

		gzip_body(&body, table[i].size);
		peer_begin();
		peer.keeps = true;
		gzip_call(&body, table[i].accepts);
		CHECK_STR(peer.grpc_status, "0");
		CHECK(peer.body.len > FRAME_PREFIX);
		CHECK(frame_prefix_read(buf_data(&peer.body), &len, &compressed));
		CHECK_INT(len, peer.body.len - FRAME_PREFIX);
		CHECK_INT(compressed, table[i].compressed);
		buf_consume(&peer.body, FRAME_PREFIX);
		if (compressed)
			CHECK_INT(gzip_inflate(&plain, buf_data(&peer.body), len, GZIP_MAX), 0);
		CHECK(compressed ? plain.len >= table[i].size : len >= table[i].size);
		buf_done(&plain);
		buf_done(&peer.body);
		peer_end();
		buf_done(&body);
	}
	end();
}

/* A client that sends its deadline and does not watch it: the server does. */
static void the_server_watches_deadlines(void)
{
	static const struct http_field fields[] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", "/nacre.test.v1.Test/Wait" },
		{ ":authority", "x" },
		{ "content-type", GRPC },
		{ "grpc-timeout", "30m" },
	};
	static const char hundred_seconds[] = "\0\0\0\0\4\x08\xa0\x8d\x06";
	nsec_t start = clock_mono();
	time_t since = unit_now();

	server_begin();
	peer_begin();
	peer_call(fields, ARRAY_SIZE(fields), hundred_seconds, 9, true);
	CHECK(peer.n_ended == 0 || clock_mono() >= start + 30 * NSEC_PER_MSEC);
	while (nodes[0].echo.n_cancelled == 0 && unit_waits(since))
		loop_turn(loop, false);
	CHECK(clock_mono() >= start + 30 * NSEC_PER_MSEC);
	CHECK_INT(nodes[0].echo.n_cancelled, 1);
	peer_talk();
	CHECK_STR(peer.grpc_status, "4");
	CHECK_INT(peer.n_closed, 1);
	peer_end();
	end();
}

static void noise_ends_a_connection_only(void)
{
	static const char *const noise[] = {
		"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x05",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxxxxx"
	};
	struct rpc_client *good;
	struct seen seen = { .n_ends = 0 };
	char byte;
	ssize_t n;
	int fd;

	server_begin();
	for (size_t i = 0; i < ARRAY_SIZE(noise); i++) {
		fd = echo_connect(&address);
		CHECK(fd >= 0);
		CHECK_INT(write(fd, noise[i], strlen(noise[i])), strlen(noise[i]));
		turns(5);
		do
			n = read(fd, &byte, 1);
		while (n > 0);
		CHECK(n == 0 || errno == ECONNRESET);
		fd_close(fd);
	}
	CHECK_INT(rpc_client_new(&good, loop, echo_connect(&address)), 0);
	nodes[0].client = good;
	wait_for(&seen, NULL, 1, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	end();
}

static void someone_else_is_served(void)
{
	struct seen seen = { .n_ends = 0 };

	CHECK_INT(rpc_client_new(&nodes[0].client, loop, echo_connect(&address)), 0);
	wait_for(&seen, NULL, 1, NSEC_NEVER);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
}

/* Whether the server closes before long. */
static bool hears_the_end(int fd)
{
	time_t since = unit_now();
	char bytes[4096];
	ssize_t n;

	while (unit_waits(since)) {
		loop_turn(loop, false);
		n = read(fd, bytes, sizeof(bytes));
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return true;
	}
	return false;
}

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"

/* What is a flood is the matter of http/session_test.c. */
static void a_flood_ends_its_connection_only(void)
{
	static const uint8_t ping[17] = { 0, 0, 8, 6 };
	int fd;

	server_begin();
	fd = echo_connect(&address);
	CHECK_INT(write(fd, PREFACE, sizeof(PREFACE) - 1), sizeof(PREFACE) - 1);
	for (unsigned i = 0; i < 2000; i++)
		if (write(fd, ping, sizeof(ping)) < 0)
			break;
	CHECK(hears_the_end(fd));
	fd_close(fd);
	someone_else_is_served();
	end();
}

/* False where our own client was dropped too: it had to answer within that time. */
static bool only_who_answers_stays(nsec_t ping_wait)
{
	struct rpc_server_config config = { .ping_after = 10 * NSEC_PER_MSEC,
					    .ping_wait = ping_wait };
	struct seen seen = { .n_ends = 0 };
	int silent, mute;
	bool stays;

	server_begin_as(config);
	CHECK_INT(rpc_client_new(&nodes[0].client, loop, echo_connect(&address)), 0);
	wait_for(&seen, NULL, 100000, NSEC_NEVER);
	mute = echo_connect(&address);
	CHECK_INT(write(mute, PREFACE, sizeof(PREFACE) - 1), sizeof(PREFACE) - 1);
	silent = echo_connect(&address);
	CHECK(hears_the_end(silent));
	CHECK(hears_the_end(mute));
	/* A client of ours has answered, again and again, and its call goes on. */
	stays = rpc_client_connected(nodes[0].client) && seen.n_ends == 0 &&
		nodes[0].echo.n_cancelled == 0;
	fd_close(silent);
	fd_close(mute);
	nodes[0].client = rpc_client_free(nodes[0].client);
	end();
	return stays;
}

static void who_does_not_answer_is_dropped(void)
{
	nsec_t ping_wait = NSEC_PER_SEC;

	/* Where the machine stands still for so long nobody can answer. */
	while (!only_who_answers_stays(ping_wait) && ping_wait < 20 * NSEC_PER_SEC)
		ping_wait *= 4;
	CHECK(ping_wait < 20 * NSEC_PER_SEC);
}

/* ---- frames that are none, on their way to another server ---- */

static int route_down(void *userdata, const char *target, struct rpc_client **ret_client,
		      const char **ret_rest, struct error *err)
{
	*ret_client = nodes[1].client;
	*ret_rest = "";
	return 0;
}

static void a_call_passed_on_ends_in_both_places(void)
{
	static const struct {
		const char *body;
		size_t len;
		const char *grpc_status;
		bool ends;
	} table[] = {
#define ONE "\0\0\0\0\4\x12\2hi"
#define CASE(s, status, ends) { ONE s, sizeof(ONE s) - 1, status, ends }
		CASE("\1\0\0\0\0", "13", false),
		CASE("\2\0\0\0\0", "13", false),
		CASE("\0\xff\xff\xff\xff", "8", false),
		CASE("\0\0", "13", true),
#undef CASE
#undef ONE
	};
	static const struct http_field fields[] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", "/nacre.test.v1.Test/Talk" },
		{ ":authority", "x" },
		{ "content-type", GRPC },
		{ "nacre-target", "a" },
	};

	CHECK_INT(loop_new(&loop), 0);
	n_nodes = 2;
	node_listen(&nodes[1], (struct rpc_server_config){ 0 });
	CHECK_INT(rpc_client_new(&nodes[1].client, loop, echo_connect(&address)), 0);
	node_listen(&nodes[0], (struct rpc_server_config){ .route = route_down });
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		peer_begin();
		/* One message is answered, so that the handler below has the call. */
		peer_call(fields, ARRAY_SIZE(fields), table[i].body, 9, false);
		CHECK_STR(peer.status, "200");
		peer_send(table[i].body + 9, table[i].len - 9, table[i].ends);
		CHECK_STR(peer.grpc_status, table[i].grpc_status);
		CHECK_INT(peer.n_closed, 1);
		turns(20);
		CHECK_INT(nodes[1].echo.n_cancelled, i + 1);
		peer_end();
	}
	end();
}

static bool admit_nobody(void *userdata, const struct rpc_peer *p)
{
	CHECK_INT(p->uid, geteuid());
	CHECK_INT(p->pid, getpid());
	return false;
}

static void who_is_not_admitted_is_sent_away(void)
{
	struct rpc_server_config config = { .admit = admit_nobody };
	char byte;
	int fd;

	CHECK_INT(loop_new(&loop), 0);
	config.loop = loop;
	CHECK_INT(rpc_server_new(&nodes[0].server, &config), 0);
	CHECK_INT(rpc_server_listen(nodes[0].server, echo_listen(&address)), 0);
	fd = echo_connect(&address);
	turns(5);
	CHECK_INT(read(fd, &byte, 1), 0);
	fd_close(fd);
	end();
}

/* Without a descriptor to spare the server waits, and does not spin meanwhile. */
static void out_of_descriptors(void)
{
	struct rlimit was, tight;
	struct seen seen = { .n_ends = 0 };
	nsec_t until;
	unsigned n = 0;
	int fd;

	server_begin();
	fd = echo_connect(&address);
	CHECK(fd >= 0);
	CHECK_INT(rpc_client_new(&nodes[0].client, loop, fd), 0);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &was), 0);
	tight = (struct rlimit){ .rlim_cur = (rlim_t)fd + 1, .rlim_max = was.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &tight), 0);
	wait_for(&seen, NULL, 1, 100 * NSEC_PER_SEC);
	until = clock_mono() + 350 * NSEC_PER_MSEC;
	while (clock_mono() < until) {
		loop_turn(loop, true);
		n++;
	}
	CHECK(n < 20);
	CHECK_INT(seen.n_ends, 0);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), 0);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	end();
}

#define CROWD (RPC_CALLS_MAX / HTTP_STREAMS_MAX + 1)

static struct seen crowd[CROWD * HTTP_STREAMS_MAX];

/* Calls that are not refused are RPC_CALLS_MAX for a server with one client, else its share. */
static void calls_of_a_peer(bool undivided, size_t expected)
{
	struct rpc_client *clients[CROWD];
	size_t refused = 0;

	server_begin_as((struct rpc_server_config){ .undivided = undivided });
	memset(crowd, 0, sizeof(crowd));
	for (size_t i = 0; i < CROWD; i++) {
		CHECK_INT(rpc_client_new(&clients[i], loop, echo_connect(&address)), 0);
		nodes[0].client = clients[i];
		turns(5); /* until the server's settings have come */
		for (size_t k = 0; k < HTTP_STREAMS_MAX; k++)
			wait_for(&crowd[i * HTTP_STREAMS_MAX + k], NULL, 100000, NSEC_NEVER);
		turns(20);
	}
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		if (crowd[i].n_ends > 0 && crowd[i].code == RPC_RESOURCE_EXHAUSTED)
			refused++;
	CHECK_INT(refused, CROWD * HTTP_STREAMS_MAX - expected);
	nodes[0].client = NULL;
	for (size_t i = 0; i < CROWD; i++)
		clients[i] = rpc_client_free(clients[i]);
	turns(20);
	CHECK_INT(nodes[0].echo.n_cancelled, expected);
	end();
}

static void calls_have_a_limit(void)
{
	calls_of_a_peer(true, RPC_CALLS_MAX);
}

static void calls_of_a_peer_have_a_limit(void)
{
	calls_of_a_peer(false, RPC_CALLS_MAX / 2);
}

#define IDLE 40

/* A server with room for 40 connections, of which a peer has half. */
static void idle_connections_have_a_limit(void)
{
	struct rlimit was, tight;
	struct seen seen = { .n_ends = 0 };
	int fds[IDLE];

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &was), 0);
	tight = (struct rlimit){ .rlim_cur = 2UL * IDLE, .rlim_max = was.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &tight), 0);
	server_begin();
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), 0);
	for (size_t i = 0; i < IDLE; i++) {
		fds[i] = echo_connect(&address);
		CHECK(fds[i] >= 0);
	}
	turns(5);
	CHECK_INT(rpc_client_new(&nodes[0].client, loop, echo_connect(&address)), 0);
	wait_for(&seen, NULL, 1, 100 * NSEC_PER_SEC);
	finish(&seen);
	CHECK_INT(seen.code, RPC_RESOURCE_EXHAUSTED);
	CHECK(strstr(error_text(&seen.err), "has 20 of the 40 for all clients") != NULL);
	nodes[0].client = rpc_client_free(nodes[0].client);
	fds[0] = fd_close(fds[0]);
	turns(5);
	seen = (struct seen){ .n_ends = 0 };
	CHECK_INT(rpc_client_new(&nodes[0].client, loop, echo_connect(&address)), 0);
	wait_for(&seen, NULL, 1, 100 * NSEC_PER_SEC);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	for (size_t i = 1; i < IDLE; i++)
		fds[i] = fd_close(fds[i]);
	end();
}

/* Where the whole is in use, the oldest connection without a call makes room. */
static void idle_connections_make_room(void)
{
	struct rlimit was, tight;
	struct seen seen = { .n_ends = 0 };
	int fds[IDLE];

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &was), 0);
	tight = (struct rlimit){ .rlim_cur = 2UL * IDLE, .rlim_max = was.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &tight), 0);
	server_begin_as((struct rpc_server_config){ .undivided = true });
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), 0);
	for (size_t i = 0; i < IDLE; i++) {
		fds[i] = echo_connect(&address);
		CHECK(fds[i] >= 0);
	}
	turns(5);
	CHECK_INT(rpc_client_new(&nodes[0].client, loop, echo_connect(&address)), 0);
	wait_for(&seen, NULL, 1, 100 * NSEC_PER_SEC);
	finish(&seen);
	CHECK_INT(seen.code, RPC_OK);
	for (size_t i = 0; i < IDLE; i++)
		fds[i] = fd_close(fds[i]);
	end();
}

UNIT_MAIN({ "heads", heads }, { "bodies", bodies }, { "compressed bodies", compressed_bodies },
	  { "compressed answers", compressed_answers },
	  { "the server watches deadlines", the_server_watches_deadlines },
	  { "noise ends a connection only", noise_ends_a_connection_only },
	  { "a flood ends its connection only", a_flood_ends_its_connection_only },
	  { "who does not answer is dropped", who_does_not_answer_is_dropped },
	  { "a call passed on ends in both places", a_call_passed_on_ends_in_both_places },
	  { "who is not admitted is sent away", who_is_not_admitted_is_sent_away },
	  { "out of descriptors", out_of_descriptors },
	  { "calls have a limit", calls_have_a_limit },
	  { "calls of a peer have a limit", calls_of_a_peer_have_a_limit },
	  { "idle connections have a limit", idle_connections_have_a_limit },
	  { "idle connections make room", idle_connections_make_room })
