/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/call.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "rpc/message/frame.h"
#include "rpc/message/status_detail.h"
#include "rpc/server/share.h"

static const enum call_state call_edges[CALL_STATE_COUNT][CALL_EVENT_COUNT] = {
	[CALL_NEW] = {
		[CALL_EVENT_OPENED] = CALL_OPEN,
		[CALL_EVENT_LOST] = CALL_ENDED,
		[CALL_EVENT_END] = CALL_ENDED,
	},
	[CALL_OPEN] = {
		[CALL_EVENT_ANSWERED] = CALL_ANSWERING,
		[CALL_EVENT_LOST] = CALL_GONE,
		[CALL_EVENT_END] = CALL_ENDED,
	},
	[CALL_ANSWERING] = {
		[CALL_EVENT_LOST] = CALL_GONE,
		[CALL_EVENT_END] = CALL_ENDED,
	},
	[CALL_GONE] = {
		[CALL_EVENT_END] = CALL_ENDED,
	},
};

static const struct {
	const char *name;
	size_t offset;
} call_fields[] = {
	{ ":method", offsetof(struct call_head, method) },
	{ ":path", offsetof(struct call_head, path) },
	{ "content-type", offsetof(struct call_head, content_type) },
	{ "grpc-timeout", offsetof(struct call_head, timeout) },
	{ "grpc-encoding", offsetof(struct call_head, encoding) },
	{ "grpc-accept-encoding", offsetof(struct call_head, accepts) },
	{ RPC_TARGET_HEADER, offsetof(struct call_head, target) },
};

/* What is told to who does not speak gRPC: a status of HTTP, a sentence to read, and, since some do
 * after all, the status of gRPC. */
struct call_no_grpc {
	const char *http_status;
	enum rpc_code code;
	const char *text;
};

static const struct call_no_grpc call_bad_method = { "405", RPC_UNIMPLEMENTED,
						     "gRPC is POST only" };
static const struct call_no_grpc call_bad_type = { "415", RPC_INVALID_ARGUMENT,
						   "content-type is not application/grpc" };

static void call_leave(struct rpc_call *c)
{
	struct arena arena;

	c->busy--;
	if (c->busy || c->state != CALL_ENDED)
		return;
	(void)rpc_remote_unref(c->peer.remote);
	/* The call itself lies in its arena. */
	arena = c->arena;
	arena_done(&arena);
}

static void call_give_back(struct rpc_call *c)
{
	if (c->share)
		share_give(c->share, SHARE_CALLS, 1);
	c->share = share_unref(c->share);
}

static void call_enter(struct rpc_call *c, enum call_event event)
{
	struct call_host *h = c->host;

	c->state = call_edges[c->state][event];
	assert(c->state != CALL_NO_STATE);
	if (c->state != CALL_GONE && c->state != CALL_ENDED)
		return;
	exchange_release(&c->x);
	if (c->timed)
		loop_timer_done(&c->timer);
	c->timed = false;
	if (c->state == CALL_GONE) {
		c->input->lost(c);
		return;
	}
	c->host = NULL;
	list_remove(&c->member);
	call_give_back(c);
	if (h) {
		h->n_calls--;
		h->ended(h, c);
	}
}

/* ---- answers ---- */

#define CALL_HEAD_FIELDS 4

static size_t call_answer_head(const struct rpc_call *c, struct http_field *fields)
{
	fields[0] = (struct http_field){ ":status", "200" };
	fields[1] = (struct http_field){ "content-type", "application/grpc" };
	fields[2] = (struct http_field){ "grpc-accept-encoding", FRAME_ENCODINGS };
	fields[3] = (struct http_field){ "grpc-encoding", FRAME_GZIP };
	return c->x.gzip_out ? CALL_HEAD_FIELDS : CALL_HEAD_FIELDS - 1;
}

static int call_answer(struct rpc_call *c)
{
	struct http_field fields[CALL_HEAD_FIELDS];
	size_t n;
	int r;

	if (c->state != CALL_OPEN)
		return 0;
	n = call_answer_head(c, fields);
	r = http_stream_respond(c->x.http, fields, n, false);
	if (r < 0)
		return r;
	call_enter(c, CALL_EVENT_ANSWERED);
	return 0;
}

/* The status, as trailers or, where nothing was sent, as the whole answer. */
static void call_say(struct rpc_call *c, enum rpc_code code, const struct error *err)
{
	struct http_field fields[CALL_HEAD_FIELDS + 3];
	char number[12], text[3 * ERROR_TEXT_MAX + 1], detail[STATUS_DETAIL_SIZE];
	size_t head, n;
	int r;

	if (!c->x.http)
		return;
	head = call_answer_head(c, fields);
	n = head;
	(void)snprintf(number, sizeof(number), "%d", (int)code);
	fields[n++] = (struct http_field){ "grpc-status", number };
	if (code != RPC_OK) {
		frame_message_encode(text, sizeof(text), error_text(err));
		fields[n++] = (struct http_field){ "grpc-message", text };
		/* Without memory the status stands alone. */
		if (status_detail_encode(detail, sizeof(detail), code, err) == 0)
			fields[n++] = (struct http_field){ STATUS_DETAIL_FIELD, detail };
	}
	if (c->state == CALL_ANSWERING)
		r = exchange_finish(&c->x, fields + head, n - head);
	else
		r = http_stream_respond(c->x.http, fields, n, true);
	if (r < 0)
		exchange_reset(&c->x, HTTP_INTERNAL_ERROR);
}

int call_send(struct rpc_call *c, const void *data, size_t len)
{
	int r;

	if (!call_is_live(c))
		return 0;
	r = exchange_send(&c->x, data, len);
	return r < 0 ? r : call_answer(c);
}

int call_send_message(struct rpc_call *c, const ProtobufCMessage *message)
{
	int r;

	if (!call_is_live(c))
		return 0;
	r = exchange_send_message(&c->x, message);
	return r < 0 ? r : call_answer(c);
}

void call_end_error(struct rpc_call *c, enum rpc_code code, const struct error *err)
{
	c->busy++;
	c->code = code;
	/* An empty stream that ends well has a head like any other. */
	if (code == RPC_OK && c->state == CALL_OPEN && call_answer(c) < 0)
		exchange_reset(&c->x, HTTP_INTERNAL_ERROR);
	call_say(c, code, err);
	call_enter(c, CALL_EVENT_END);
	call_leave(c);
}

void call_end(struct rpc_call *c, enum rpc_code code, const char *message)
{
	struct error err = ERROR_INIT;

	(void)rpc_error_of(&err, code, message);
	call_end_error(c, code, &err);
}

void call_fail(struct rpc_call *c, const struct error *err)
{
	enum rpc_code code = rpc_code_of(err);

	if (code == RPC_OK)
		call_end(c, RPC_INTERNAL, "failed without saying why");
	else
		call_end_error(c, code, err);
}

void call_fail_send(struct rpc_call *c, int r)
{
	struct error err = ERROR_INIT;

	if (r == -EMSGSIZE)
		(void)error_refuse(&err, ERROR_EXHAUSTED,
				   "the answer is a message of more than %u bytes",
				   RPC_MESSAGE_MAX);
	else
		(void)error_set(&err, r, "queue the answer");
	call_fail(c, &err);
}

/* In the words of other servers: who asks for what is new looks for them, beside the code. */
void call_fail_unknown(struct rpc_call *c)
{
	const char *path = c->head.path ?: "", *slash = strrchr(path, '/');
	struct error err = ERROR_INIT;

	if (path[0] == '/' && slash > path)
		(void)error_refuse(&err, ERROR_UNSUPPORTED,
				   "unknown method %.100s for service %.*s", slash + 1,
				   (int)MIN(slash - path - 1, (ptrdiff_t)100), path + 1);
	else
		(void)error_refuse(&err, ERROR_UNSUPPORTED, "unknown method %.200s", path);
	call_fail(c, &err);
}

void call_refuse_error(struct rpc_call *c, const struct error *err)
{
	c->busy++;
	call_say(c, rpc_code_of(err), err);
	call_enter(c, CALL_EVENT_LOST);
	call_leave(c);
}

void call_refuse(struct rpc_call *c, enum rpc_code code, const char *message)
{
	struct error err = ERROR_INIT;

	(void)rpc_error_of(&err, code, message);
	call_refuse_error(c, &err);
}

/* ---- requests ---- */

static void call_field(struct exchange *x, const char *name, const char *value)
{
	struct rpc_call *c = container_of(x, struct rpc_call, x);
	char **to;

	if (c->host->mark && str_eq(name, c->host->mark))
		c->n_marks += str_eq(value, "true") ? 1 : 2;
	for (size_t i = 0; i < ARRAY_SIZE(call_fields); i++) {
		if (!str_eq(name, call_fields[i].name))
			continue;
		to = (char **)(void *)((char *)&c->head + call_fields[i].offset);
		if (!*to && exchange_charge(&c->x, strlen(value) + 1))
			*to = arena_strdup(&c->arena, value);
		if (!*to)
			c->x.overrun = true;
		return;
	}
}

static void call_timeout(struct loop_timer *t)
{
	struct rpc_call *c = container_of(t, struct rpc_call, timer);

	c->busy++;
	/* A message that was cut in the middle is no message: then nothing but a reset is right. */
	if (c->x.http && http_stream_queued(c->x.http) > 0)
		exchange_reset(&c->x, HTTP_CANCEL);
	call_refuse(c, RPC_DEADLINE_EXCEEDED, "the deadline of the call has passed");
	call_leave(c);
}

static int call_start_timer(struct rpc_call *c)
{
	nsec_t now = clock_mono();
	nsec_t timeout;

	if (!c->head.timeout)
		return 0;
	if (frame_timeout_parse(c->head.timeout, &timeout) < 0)
		return -EINVAL;
	if (timeout >= NSEC_NEVER - now)
		return 0;
	c->deadline = now + timeout;
	c->timed = true;
	loop_timer_init(&c->timer, c->host->loop, call_timeout);
	loop_timer_set(&c->timer, timeout);
	return 0;
}

/* An answer is compressed where the request was, unless its client said that it cannot read that.
 */
static bool call_take_encoding(struct rpc_call *c)
{
	const struct call_head *head = &c->head;

	if (!head->encoding || str_eq(head->encoding, FRAME_IDENTITY))
		return true;
	if (!str_eq(head->encoding, FRAME_GZIP))
		return false;
	c->x.gzip_in = true;
	c->x.gzip_out = !head->accepts || frame_list_has(head->accepts, FRAME_GZIP);
	return true;
}

static void call_no_grpc_lost(struct rpc_call *c)
{
	call_end(c, RPC_CANCELLED, NULL);
}

static void call_open_no_grpc(struct rpc_call *c, const struct call_no_grpc *what)
{
	static const struct call_input none = { .lost = call_no_grpc_lost };

	c->no_grpc = what;
	c->input = &none;
	call_enter(c, CALL_EVENT_OPENED);
}

/* Answered at the end of the request, which is thrown away: other clients of HTTP than those of
 * gRPC do not expect an answer before. */
static void call_read_no_grpc(struct rpc_call *c)
{
	const struct http_field fields[] = { { ":status", c->no_grpc->http_status },
					     { "content-type", "text/plain" } };
	int r;

	exchange_skip(&c->x);
	exchange_give_back(&c->x);
	if (!c->x.ended)
		return;
	r = http_stream_respond(c->x.http, fields, ARRAY_SIZE(fields), false);
	if (r == 0)
		r = exchange_send_text(&c->x, c->no_grpc->text);
	call_enter(c, CALL_EVENT_ANSWERED);
	if (r < 0)
		exchange_reset(&c->x, HTTP_INTERNAL_ERROR);
	call_end(c, c->no_grpc->code, c->no_grpc->text);
}

static void call_open(struct rpc_call *c)
{
	const struct call_head *head = &c->head;

	if (c->x.oversized)
		return call_end(c, RPC_RESOURCE_EXHAUSTED,
				"the metadata takes more than 65536 bytes");
	if (c->x.overrun)
		return call_end(c, RPC_RESOURCE_EXHAUSTED, "out of memory");
	if (!head->method || !str_eq(head->method, "POST"))
		return call_open_no_grpc(c, &call_bad_method);
	if (!head->content_type || !frame_content_type(head->content_type))
		return call_open_no_grpc(c, &call_bad_type);
	if (!call_take_encoding(c))
		return call_end(c, RPC_UNIMPLEMENTED,
				"grpc-encoding: only identity and gzip are understood");
	if (call_start_timer(c) < 0)
		return call_end(c, RPC_INVALID_ARGUMENT,
				"grpc-timeout: not at most 8 digits and one of H M S m u n");
	if (c->host->mark && c->n_marks != 1) {
		struct error err = ERROR_INIT;

		(void)error_refuse(&err, ERROR_INVALID,
				   "metadata: \"%s: true\" must be there, and once", c->host->mark);
		return call_fail(c, &err);
	}
	c->asked = true;
	c->host->open(c->host, c);
	if (c->state != CALL_NEW)
		return;
	call_enter(c, CALL_EVENT_OPENED);
	if (c->input->open)
		c->input->open(c);
}

static void call_read(struct rpc_call *c)
{
	struct error err = ERROR_INIT;
	const uint8_t *data;
	size_t len;
	int r;

	for (;;) {
		r = exchange_next(&c->x, &data, &len, &err);
		if (r < 0)
			return call_refuse_error(c, &err);
		if (r == 0)
			break;
		c->input->message(c, data, len);
		if (!call_is_live(c))
			return;
		exchange_drop(&c->x);
	}
	exchange_give_back(&c->x);
	if (!c->x.ended || c->x.paused || c->input_done)
		return;
	c->input_done = true;
	if (exchange_has_rest(&c->x))
		return call_refuse(c, RPC_INTERNAL, "the request ends in the middle of a message");
	c->input->end(c);
}

static void call_ready(struct exchange *x)
{
	struct rpc_call *c = container_of(x, struct rpc_call, x);

	c->busy++;
	if (x->closed) {
		call_enter(c, CALL_EVENT_LOST);
		call_leave(c);
		return;
	}
	if (c->state == CALL_NEW && x->headers)
		call_open(c);
	if (call_is_live(c) && c->no_grpc)
		call_read_no_grpc(c);
	else if (call_is_live(c))
		call_read(c);
	if (call_is_live(c) && x->drained) {
		x->drained = false;
		if (c->on_writable)
			c->on_writable(c, c->writable_data);
	}
	call_leave(c);
}

int call_new(struct call_host *h, struct conn *conn, struct http_stream *s,
	     const struct rpc_peer *peer, struct share *share)
{
	struct arena arena = ARENA_INIT_LIMIT(CALL_ARENA_MAX);
	struct rpc_call *c = arena_alloc(&arena, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct rpc_call){
		.host = h,
		.state = CALL_NEW,
		.arena = arena,
		.peer = *peer,
		.code = RPC_CANCELLED, /* until it is answered */
		.deadline = NSEC_NEVER,
	};
	(void)rpc_remote_ref(c->peer.remote);
	exchange_init(&c->x, conn, call_field, call_ready);
	c->x.http = s;
	c->share = share ? share_ref(share) : NULL;
	c->x.share = share;
	list_init(&c->member);
	list_add_tail(&h->calls, &c->member);
	h->n_calls++;
	http_stream_attach(s, c);
	return 0;
}

void call_abandon(struct rpc_call *c)
{
	c->busy++;
	list_remove(&c->member);
	c->host->n_calls--;
	if (c->state == CALL_GONE)
		exchange_release(&c->x);
	c->host = NULL;
	if (c->state != CALL_GONE && c->state != CALL_ENDED)
		call_enter(c, CALL_EVENT_LOST);
	/* The pool goes with the server, the call may stay with its handler. */
	call_give_back(c);
	call_leave(c);
}
