/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/exchange/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "rpc/exchange/exchange.h"
#include "rpc/message/frame.h"
#include "rpc/message/status_detail.h"
#include "rpc/message/walk.h"

/*
 * A stream is open until its end was told (or it was cancelled); then it waits only for the frames
 * of ours that are still in it.
 */
enum stream_state { STREAM_OPEN, STREAM_ENDED };

struct rpc_client {
	struct loop *loop;
	struct conn *conn;
	struct list streams;
	void (*on_close)(struct rpc_client *c, void *data);
	void *close_data;
	bool closing;
	bool retired; /* frees itself once it has no stream */
	bool leaving; /* the server ends: RPC_REST_MAX */
	bool looking; /* a function of ours still needs the struct */
	struct loop_timer look;
};

struct rpc_stream {
	struct exchange x;
	struct list member;
	struct rpc_client *client;
	enum stream_state state;
	unsigned busy;      /* functions of ours that still need the struct */
	struct arena arena; /* the stream itself lies in it */
	const struct rpc_stream_ops *ops;
	void *userdata;
	struct loop_timer timer;
	bool timed;
	nsec_t since;   /* of a retired client: the last that was seen to be taken was seen then */
	size_t waiting; /* that much waited then */
	bool moved;     /* a message was told since */
	bool sent;      /* our end of the stream is closed */
	bool is_grpc;
	unsigned http_status;
	enum rpc_code code;
	bool has_code;
	char *message;
	char *detail; /* of the status, as it came */
};

static void stream_leave(struct rpc_stream *s)
{
	struct arena arena;

	s->busy--;
	if (s->busy || s->state != STREAM_ENDED)
		return;
	arena = s->arena;
	arena_done(&arena);
}

static void client_delete(struct rpc_client *c)
{
	loop_timer_done(&c->look);
	c->conn = conn_free(c->conn);
	free(c);
}

/* The last stream of a retired client takes it along. */
static void client_leave(struct rpc_client *c)
{
	if (c->retired && !c->closing && !c->looking && list_empty(&c->streams))
		client_delete(c);
}

static void stream_close(struct rpc_stream *s)
{
	s->state = STREAM_ENDED;
	/* A peer that has ended its side keeps the stream until ours has ended too. */
	if (s->x.http && (!s->x.ended || !s->sent || http_stream_queued(s->x.http) > 0))
		exchange_reset(&s->x, HTTP_CANCEL);
	else
		exchange_release(&s->x);
	if (s->timed)
		loop_timer_done(&s->timer);
	s->timed = false;
	list_remove(&s->member);
	client_leave(s->client);
}

static void stream_end(struct rpc_stream *s, enum rpc_code code, const char *message)
{
	struct error err = ERROR_INIT;

	if (s->state == STREAM_ENDED)
		return;
	s->busy++;
	(void)rpc_error_of(&err, code, message);
	if (code != RPC_OK && s->detail)
		status_detail_decode(&err, s->detail);
	stream_close(s);
	s->ops->on_end(s, code, &err, s->userdata);
	stream_leave(s);
}

static void stream_timeout(struct loop_timer *t)
{
	stream_end(container_of(t, struct rpc_stream, timer), RPC_DEADLINE_EXCEEDED,
		   "the deadline of the call has passed");
}

/* ---- what the server answers ---- */

static void stream_field_status(struct rpc_stream *s, const char *value)
{
	uint64_t n = 0;

	(void)parse_u64(value, 100, 599, &n);
	s->http_status = (unsigned)n;
}

static void stream_field_type(struct rpc_stream *s, const char *value)
{
	s->is_grpc = frame_content_type(value);
}

static void stream_field_encoding(struct rpc_stream *s, const char *value)
{
	s->x.gzip_in = str_eq(value, FRAME_GZIP);
}

static void stream_field_code(struct rpc_stream *s, const char *value)
{
	uint64_t n = 0;

	s->has_code = true;
	s->code = parse_u64(value, 0, RPC_UNAUTHENTICATED, &n) < 0 ? RPC_UNKNOWN : (enum rpc_code)n;
}

static void stream_field_message(struct rpc_stream *s, const char *value)
{
	char text[ERROR_TEXT_MAX];

	frame_message_decode(text, sizeof(text), value);
	/* Without memory the status stands alone. */
	if (!s->message)
		s->message = arena_strdup(&s->arena, text);
}

static void stream_field_detail(struct rpc_stream *s, const char *value)
{
	if (!s->detail)
		s->detail = arena_strdup(&s->arena, value);
}

static const struct {
	const char *name;
	void (*take)(struct rpc_stream *s, const char *value);
} stream_fields[] = {
	{ ":status", stream_field_status },         { "content-type", stream_field_type },
	{ "grpc-encoding", stream_field_encoding }, { "grpc-status", stream_field_code },
	{ "grpc-message", stream_field_message },   { STATUS_DETAIL_FIELD, stream_field_detail },
};

static void stream_field(struct exchange *x, const char *name, const char *value)
{
	struct rpc_stream *s = container_of(x, struct rpc_stream, x);

	for (size_t i = 0; i < ARRAY_SIZE(stream_fields); i++)
		if (str_eq(name, stream_fields[i].name))
			stream_fields[i].take(s, value);
}

static enum rpc_code stream_code_of_reset(uint32_t code)
{
	static const struct {
		uint32_t http;
		enum rpc_code code;
	} table[] = {
		{ HTTP_REFUSED_STREAM, RPC_UNAVAILABLE },
		{ HTTP_CANCEL, RPC_CANCELLED },
		{ HTTP_ENHANCE_YOUR_CALM, RPC_RESOURCE_EXHAUSTED },
		{ HTTP_INADEQUATE_SECURITY, RPC_PERMISSION_DENIED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].http == code)
			return table[i].code;
	return RPC_INTERNAL;
}

static enum rpc_code stream_code_of_http(unsigned status)
{
	static const struct {
		unsigned http;
		enum rpc_code code;
	} table[] = {
		{ 400, RPC_INTERNAL },          { 401, RPC_UNAUTHENTICATED },
		{ 403, RPC_PERMISSION_DENIED }, { 404, RPC_UNIMPLEMENTED },
		{ 429, RPC_UNAVAILABLE },       { 502, RPC_UNAVAILABLE },
		{ 503, RPC_UNAVAILABLE },       { 504, RPC_UNAVAILABLE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].http == status)
			return table[i].code;
	return RPC_UNKNOWN;
}

static void stream_conclude(struct rpc_stream *s)
{
	if (!s->x.ended && !conn_http(s->x.conn))
		return stream_end(s, RPC_UNAVAILABLE, "the connection was lost");
	if (s->has_code && s->code == RPC_OK && exchange_has_rest(&s->x))
		return stream_end(s, RPC_INTERNAL, "the answer ends in the middle of a message");
	if (s->has_code)
		return stream_end(s, s->code, s->message);
	if (!s->x.ended)
		return stream_end(s, stream_code_of_reset(s->x.close_code),
				  "the server reset the stream");
	stream_end(s, stream_code_of_http(s->http_status),
		   "the server's answer has no grpc-status");
}

/* What the paused streams hold. */
static size_t client_rest(const struct rpc_client *c)
{
	const struct rpc_stream *s;
	size_t n = 0;

	list_for_each (s, (struct list *)(uintptr_t)&c->streams, struct rpc_stream, member)
		n += s->x.paused ? s->x.rx.len : 0;
	return n;
}

static void stream_read(struct rpc_stream *s)
{
	struct error err = ERROR_INIT;
	const uint8_t *data;
	size_t len;
	int r;

	for (;;) {
		r = exchange_next(&s->x, &data, &len, &err);
		if (r < 0)
			return stream_end(s, rpc_code_of(&err), error_text(&err));
		if (r == 0)
			break;
		if (!s->is_grpc)
			return stream_end(s, stream_code_of_http(s->http_status),
					  "the server's answer is not gRPC");
		s->moved = true;
		s->ops->on_message(s, data, len, s->userdata);
		if (s->state == STREAM_ENDED)
			return;
		exchange_drop(&s->x);
	}
	s->x.flushed = s->client->leaving && s->x.paused && client_rest(s->client) < RPC_REST_MAX;
	exchange_give_back(&s->x);
	if ((s->x.ended || s->x.closed) && !s->x.paused)
		stream_conclude(s);
}

static void stream_ready(struct exchange *x)
{
	struct rpc_stream *s = container_of(x, struct rpc_stream, x);

	s->busy++;
	if (x->drained && s->ops->on_writable) {
		x->drained = false;
		s->ops->on_writable(s, s->userdata);
	}
	if (s->state == STREAM_OPEN)
		stream_read(s);
	stream_leave(s);
}

/* ---- calls ---- */

static int stream_request(struct rpc_stream *s, const struct rpc_request *request)
{
	char timeout[FRAME_TIMEOUT_SIZE];
	struct http_field fields[HTTP_FIELDS_OUT_MAX] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", request->method },
		{ ":authority", "localhost" },
		{ "te", "trailers" },
		{ "content-type", "application/grpc" },
		{ "grpc-accept-encoding", FRAME_ENCODINGS },
		{ "user-agent", "nacre/" NACRE_VERSION },
	};
	size_t n = 8;

	if (request->timeout != NSEC_NEVER) {
		frame_timeout_format(timeout, request->timeout);
		fields[n++] = (struct http_field){ "grpc-timeout", timeout };
	}
	if (!str_empty(request->target))
		fields[n++] = (struct http_field){ RPC_TARGET_HEADER, request->target };
	return http_session_request(conn_http(s->x.conn), fields, n, &s->x, &s->x.http);
}

static int stream_start(struct rpc_stream *s, const struct rpc_request *request)
{
	int r = conn_http(s->x.conn) ? stream_request(s, request) : -EPIPE;

	/* No connection, or one that says goodbye: told by on_end, later. */
	if (r == -EPIPE) {
		s->x.closed = true;
		s->x.close_code = HTTP_REFUSED_STREAM;
		exchange_again(&s->x);
		return 0;
	}
	if (r < 0)
		return r;
	if (request->message)
		r = exchange_send_message(&s->x, request->message);
	else if (request->len > 0 || !request->more)
		r = exchange_send(&s->x, request->data, request->len);
	if (r < 0)
		return r;
	if (!request->more)
		rpc_stream_close_send(s);
	conn_touch(s->x.conn);
	return 0;
}

int rpc_client_call(struct rpc_client *c, const struct rpc_request *request,
		    const struct rpc_stream_ops *ops, void *userdata, struct rpc_stream **ret)
{
	struct arena arena = ARENA_INIT;
	struct rpc_stream *s;
	int r;

	if (c->closing || c->retired)
		return -EPIPE;
	s = arena_alloc(&arena, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct rpc_stream){ .client = c, .arena = arena, .ops = ops, .userdata = userdata };
	exchange_init(&s->x, c->conn, stream_field, stream_ready);
	list_init(&s->member);
	list_add_tail(&c->streams, &s->member);
	if (request->timeout != NSEC_NEVER) {
		s->timed = true;
		loop_timer_init(&s->timer, c->loop, stream_timeout);
		loop_timer_set(&s->timer, request->timeout);
	}
	r = stream_start(s, request);
	if (r < 0) {
		rpc_stream_cancel(s);
		return r;
	}
	if (ret)
		*ret = s;
	return 0;
}

void rpc_stream_cancel(struct rpc_stream *s)
{
	s->busy++;
	if (s->state == STREAM_OPEN)
		stream_close(s);
	stream_leave(s);
}

void rpc_stream_pause(struct rpc_stream *s, bool paused)
{
	exchange_pause(&s->x, paused);
}

int rpc_stream_send(struct rpc_stream *s, const void *data, size_t len)
{
	assert(!s->sent);
	return exchange_send(&s->x, data, len);
}

bool rpc_stream_writable(const struct rpc_stream *s)
{
	return exchange_writable(&s->x);
}

void rpc_stream_close_send(struct rpc_stream *s)
{
	int r;

	assert(!s->sent);
	s->sent = true;
	r = exchange_finish(&s->x, NULL, 0);
	/* Without trailers there is nothing to allocate. */
	assert(r == 0);
}

/* ---- clients ---- */

static void client_flush(struct rpc_client *c)
{
	struct rpc_stream *s;

	c->leaving = true;
	list_for_each (s, &c->streams, struct rpc_stream, member)
		exchange_again(&s->x);
}

static void client_goaway(struct http_session *http)
{
	client_flush(conn_owner(http_session_userdata(http)));
}

static const struct http_ops client_http_ops = {
	.field = exchange_on_field,
	.headers = exchange_on_headers,
	.data = exchange_on_data,
	.end = exchange_on_end,
	.close = exchange_on_close,
	.drain = exchange_on_drain,
	.goaway = client_goaway,
};

static void client_lost(struct conn *conn, void *owner)
{
	struct rpc_client *c = owner;

	if (c->on_close)
		c->on_close(c, c->close_data);
}

/* ---- without an owner ---- */

#define CLIENT_LOOK (1 * NSEC_PER_SEC)

/* Whether its patience is over. */
static bool stream_is_stuck(struct rpc_stream *s, nsec_t now)
{
	size_t waiting = s->ops->waiting ? s->ops->waiting(s, s->userdata) : 0;
	bool moved = s->moved || waiting < s->waiting;

	s->waiting = waiting;
	s->moved = false;
	if (moved)
		s->since = now;
	return now - s->since > RPC_REST_PATIENCE;
}

static struct rpc_stream *client_first_stuck(struct rpc_client *c, nsec_t now)
{
	struct rpc_stream *s;

	list_for_each (s, &c->streams, struct rpc_stream, member)
		if (stream_is_stuck(s, now))
			return s;
	return NULL;
}

static void stream_put_off(struct rpc_stream *s)
{
	char text[ERROR_TEXT_MAX];

	if (!s->x.paused)
		return stream_end(s, RPC_UNAVAILABLE, "the server has ended without an answer");
	(void)str_printf(text, sizeof(text), "nothing of the answer was taken for %u seconds",
			 (unsigned)(RPC_REST_PATIENCE / NSEC_PER_SEC));
	stream_end(s, RPC_RESOURCE_EXHAUSTED, text);
}

static void client_on_look(struct loop_timer *t)
{
	struct rpc_client *c = container_of(t, struct rpc_client, look);
	nsec_t now = clock_mono();
	struct rpc_stream *s;

	loop_timer_set(&c->look, CLIENT_LOOK);
	c->looking = true;
	for (s = client_first_stuck(c, now); s; s = client_first_stuck(c, now))
		stream_put_off(s);
	c->looking = false;
	client_leave(c);
}

struct rpc_client *rpc_client_retire(struct rpc_client *c)
{
	nsec_t now = clock_mono();
	struct rpc_stream *s;

	if (!c || c->closing || c->retired)
		return NULL;
	if (list_empty(&c->streams))
		return rpc_client_free(c);
	c->on_close = NULL;
	c->retired = true;
	list_for_each (s, &c->streams, struct rpc_stream, member) {
		s->since = now;
		s->moved = false;
	}
	client_flush(c);
	loop_timer_set(&c->look, CLIENT_LOOK);
	return NULL;
}

/* ---- with one ---- */

int rpc_client_new(struct rpc_client **ret, struct loop *l, int fd)
{
	struct rpc_client *c = malloc(sizeof(*c));
	int r;

	if (!c) {
		fd_close(fd);
		return -ENOMEM;
	}
	*c = (struct rpc_client){ .loop = l };
	list_init(&c->streams);
	loop_timer_init(&c->look, l, client_on_look);
	r = conn_new(&c->conn, l, fd, HTTP_CLIENT, &client_http_ops, client_lost, c);
	if (r < 0) {
		loop_timer_done(&c->look);
		free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int rpc_client_widen(struct rpc_client *c)
{
	return conn_http(c->conn) ? http_session_widen(conn_http(c->conn)) : 0;
}

struct rpc_client *rpc_client_free(struct rpc_client *c)
{
	struct rpc_stream *s;

	if (!c || c->closing)
		return NULL;
	c->closing = true;
	for (;;) {
		s = list_first(&c->streams, struct rpc_stream, member);
		if (!s)
			break;
		stream_end(s, RPC_UNAVAILABLE, "the connection was closed");
	}
	client_delete(c);
	return NULL;
}

void rpc_client_on_close(struct rpc_client *c, void (*fn)(struct rpc_client *c, void *data),
			 void *data)
{
	c->on_close = fn;
	c->close_data = data;
}

bool rpc_client_connected(const struct rpc_client *c)
{
	struct http_session *http = conn_http(c->conn);

	return http && http_session_accepts_requests(http);
}

void rpc_client_each_stream(const struct rpc_client *c,
			    void (*fn)(void *data, const struct rpc_stream_ops *ops,
				       const void *userdata),
			    void *data)
{
	const struct rpc_stream *s;

	list_for_each (s, (struct list *)(uintptr_t)&c->streams, struct rpc_stream, member)
		fn(data, s->ops, s->userdata);
}

ProtobufCMessage *rpc_decode(const ProtobufCMessageDescriptor *type, const uint8_t *data,
			     size_t len, ProtobufCAllocator *allocator, struct error *err)
{
	return walk_decode(type, data, len, allocator, err);
}
