/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message/unary.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "rpc/exchange/client.h"

static void unary_on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	struct unary *u = userdata;

	/* A second message, or one that cannot be read, leaves no response: unary_on_end() tells.
	 */
	if (u->response) {
		protobuf_c_message_free_unpacked(u->response, NULL);
		u->response = NULL;
		u->output = NULL;
	}
	if (u->output)
		u->response = rpc_decode(u->output, data, len, NULL, NULL);
}

static void unary_finish(struct unary *u, const struct error *err)
{
	ProtobufCMessage *response = TAKE_PTR(u->response);
	unary_fn fn = TAKE_PTR(u->fn);

	u->stream = NULL;
	fn(u, err ? NULL : response, err);
	if (response)
		protobuf_c_message_free_unpacked(response, NULL);
}

static void unary_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			 void *userdata)
{
	struct error wrong = ERROR_INIT;
	struct unary *u = userdata;

	if (err && err->code) {
		unary_finish(u, err);
		return;
	}
	if (!u->response) {
		(void)error_set(&wrong, -EPROTO, "read the answer of a keeper");
		unary_finish(u, &wrong);
		return;
	}
	unary_finish(u, NULL);
}

static const struct rpc_stream_ops unary_ops = {
	.on_message = unary_on_message,
	.on_end = unary_on_end,
};

static void unary_on_defer(struct loop_defer *d)
{
	struct unary *u = container_of(d, struct unary, defer);
	struct error *late = TAKE_PTR(u->late);
	struct error none = ERROR_INIT;

	if (!late)
		(void)error_set(&none, -ENOMEM, "call a keeper");
	unary_finish(u, late ? late : &none);
	free(late);
}

void unary_fail(struct unary *u, struct loop *l, const struct error *err, unary_fn fn)
{
	assert(!unary_active(u));
	*u = (struct unary){ .fn = fn };
	u->late = malloc(sizeof(*u->late));
	if (u->late)
		*u->late = *err;
	loop_defer_init(&u->defer, l, unary_on_defer);
	loop_defer_schedule(&u->defer);
}

void unary_start(struct unary *u, struct loop *l, struct rpc_client *rpc,
		 const struct unary_request *request, unary_fn fn)
{
	struct error err = ERROR_INIT;
	struct rpc_request call = {
		.method = request->method,
		.target = request->target,
		.message = request->message,
		.data = request->data,
		.len = request->len,
		.timeout = request->timeout,
	};
	int r;

	assert(!unary_active(u));
	*u = (struct unary){ .output = request->output, .fn = fn };
	r = rpc_client_call(rpc, &call, &unary_ops, u, &u->stream);
	if (r < 0) {
		*u = (struct unary){ .fn = NULL };
		(void)error_set(&err, r, "call a keeper");
		unary_fail(u, l, &err, fn);
	}
}

void unary_done(struct unary *u)
{
	if (!unary_active(u))
		return;
	if (u->stream)
		rpc_stream_cancel(u->stream);
	loop_defer_done(&u->defer);
	if (u->response)
		protobuf_c_message_free_unpacked(u->response, NULL);
	free(u->late);
	*u = (struct unary){ .fn = NULL };
}
