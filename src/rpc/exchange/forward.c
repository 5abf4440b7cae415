/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/exchange/forward.h"

#include "base/log/error.h"
#include "rpc/exchange/client.h"
#include "rpc/server/call.h"
#include "rpc/server/handler.h"
#include "rpc/server/share.h"

static struct rpc_stream *forward_stream(const struct rpc_call *c)
{
	return c->input_data;
}

/* ---- from the client ---- */

static void forward_from_client(struct rpc_call *c, const uint8_t *data, size_t len)
{
	struct rpc_stream *s = forward_stream(c);
	struct error err = ERROR_INIT;
	int r;

	if (c->handed && handler_check_later(c->method, data, len, &err) < 0) {
		c->input_data = NULL;
		rpc_stream_cancel(s);
		call_fail(c, &err);
		return;
	}
	r = rpc_stream_send(s, data, len);
	if (r < 0) {
		c->input_data = NULL;
		rpc_stream_cancel(s);
		call_fail_send(c, r);
		return;
	}
	if (!rpc_stream_writable(s))
		exchange_pause(&c->x, true);
}

static void forward_client_end(struct rpc_call *c)
{
	rpc_stream_close_send(forward_stream(c));
}

static void forward_lost(struct rpc_call *c)
{
	struct rpc_stream *s = forward_stream(c);

	c->input_data = NULL;
	if (s)
		rpc_stream_cancel(s);
	call_end(c, RPC_CANCELLED, NULL);
}

static const struct call_input forward_input = {
	.message = forward_from_client,
	.end = forward_client_end,
	.lost = forward_lost,
};

static void forward_client_writable(struct rpc_call *c, void *data)
{
	struct rpc_stream *s = forward_stream(c);

	if (s)
		rpc_stream_pause(s, false);
}

/* ---- from the server behind us ---- */

static void forward_from_server(struct rpc_stream *s, const uint8_t *data, size_t len,
				void *userdata)
{
	struct rpc_call *c = userdata;
	int r = call_send(c, data, len);

	if (r < 0) {
		c->input_data = NULL;
		rpc_stream_cancel(s);
		call_fail_send(c, r);
		return;
	}
	if (!exchange_writable(&c->x))
		rpc_stream_pause(s, true);
}

static void forward_server_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			       void *userdata)
{
	struct rpc_call *c = userdata;

	c->input_data = NULL;
	call_end_error(c, code, err);
}

static void forward_server_writable(struct rpc_stream *s, void *userdata)
{
	struct rpc_call *c = userdata;

	exchange_pause(&c->x, false);
}

static size_t forward_waiting(struct rpc_stream *s, void *userdata)
{
	const struct rpc_call *c = userdata;

	return c->x.http ? http_stream_queued(c->x.http) : 0;
}

static const struct rpc_stream_ops forward_ops = {
	.on_message = forward_from_server,
	.on_end = forward_server_end,
	.on_writable = forward_server_writable,
	.waiting = forward_waiting,
};

/* ---- how many ---- */

struct forward_count {
	const struct share *share;
	size_t all, mine;
};

static void forward_count_stream(void *data, const struct rpc_stream_ops *stream_ops,
				 const void *userdata)
{
	struct forward_count *n = data;
	const struct rpc_call *c = userdata;

	if (stream_ops != &forward_ops)
		return;
	n->all++;
	n->mine += c->share == n->share;
}

/* Past its streams a connection would hold calls back, the ones of this process too. */
static int forward_admit(const struct rpc_call *c, const struct rpc_client *client,
			 struct error *err)
{
	struct forward_count n = { .share = c->share };

	if (!c->share || c->share->pool->undivided)
		return 0;
	rpc_client_each_stream(client, forward_count_stream, &n);
	if (share_left(FORWARD_STREAMS_MAX, n.all, n.mine) > 0)
		return 0;
	return error_refuse(err, ERROR_EXHAUSTED,
			    "calls: this client has %zu of the %d that one instance can have from "
			    "all clients, its share (end some first)",
			    n.mine, FORWARD_STREAMS_MAX);
}

static void forward_start(struct rpc_call *c, struct rpc_client *client,
			  const struct rpc_request *request)
{
	struct error err = ERROR_INIT;
	struct rpc_stream *s;
	int r;

	if (forward_admit(c, client, &err) < 0) {
		call_fail(c, &err);
		return;
	}
	r = rpc_client_call(client, request, &forward_ops, c, &s);
	if (r < 0) {
		(void)error_set(&err, r, "pass the call on");
		call_fail(c, &err);
		return;
	}
	c->on_cancel = NULL;
	c->on_writable = forward_client_writable;
	c->input = &forward_input;
	c->input_data = s;
	c->passed_on = true;
	/* Half-closed without a message. */
	if (c->input_done && request->more)
		rpc_stream_close_send(s);
	exchange_pause(&c->x, !c->input_done && !rpc_stream_writable(s));
}

static nsec_t forward_timeout(const struct rpc_call *c)
{
	nsec_t now = clock_mono();

	if (c->deadline == NSEC_NEVER)
		return NSEC_NEVER;
	return c->deadline > now ? c->deadline - now : 0;
}

void forward_open(struct rpc_call *c, struct rpc_client *client, const char *method,
		  const char *target)
{
	struct rpc_request request = {
		.method = method,
		.target = target,
		.timeout = forward_timeout(c),
		.more = true,
	};

	forward_start(c, client, &request);
}

void forward_message(struct rpc_call *c, struct rpc_client *client, const char *method,
		     const char *target, const ProtobufCMessage *message)
{
	struct rpc_request request = {
		.method = method,
		.target = target,
		.message = message,
		.timeout = forward_timeout(c),
		.more = !c->input_done || !message,
	};

	if (call_is_live(c))
		forward_start(c, client, &request);
	else
		call_end(c, RPC_CANCELLED, NULL);
}
