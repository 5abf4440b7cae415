/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/handler.h"

#include "rpc/message/pb.h"
#include "rpc/message/walk.h"
#include "rpc/server/call.h"
#include "rpc/server/method.h"

static void *handler_alloc(void *data, size_t size)
{
	return arena_alloc(data, size);
}

static void handler_free(void *data, void *p)
{
}

/* The request that lives as long as the call; where it is refused the call has ended. */
static bool handler_take(struct rpc_call *c, const uint8_t *data, size_t len)
{
	const struct rpc_method *m = c->method;
	ProtobufCAllocator allocator = { .alloc = handler_alloc,
					 .free = handler_free,
					 .allocator_data = &c->arena };
	struct error err = ERROR_INIT;

	c->input_data = walk_decode(m->input, data, len, &allocator, &err);
	if (!c->input_data) {
		call_fail(c, &err);
		return false;
	}
	if (exchange_charge(&c->x, c->arena.used))
		return true;
	call_end(c, RPC_RESOURCE_EXHAUSTED, "too much memory is held by requests in hand");
	return false;
}

static void handler_run(struct rpc_call *c, const ProtobufCMessage *request)
{
	const struct rpc_method *m = c->method;

	c->handed = true;
	m->handle(c, request, c->userdata);
}

static void handler_lost(struct rpc_call *c)
{
	void (*fn)(struct rpc_call * c, void *data) = c->on_cancel;

	if (!c->handed)
		return call_end(c, RPC_CANCELLED, NULL);
	c->on_cancel = NULL;
	if (fn)
		fn(c, c->cancel_data);
}

/* ---- exactly one message ---- */

static void handler_one_message(struct rpc_call *c, const uint8_t *data, size_t len)
{
	if (c->input_data)
		return call_end(c, RPC_UNIMPLEMENTED, "one message was expected, two came");
	(void)handler_take(c, data, len);
}

static void handler_one_end(struct rpc_call *c)
{
	if (!c->input_data)
		return call_end(c, RPC_UNIMPLEMENTED, "one message was expected, none came");
	handler_run(c, c->input_data);
}

/* ---- a stream of messages ---- */

/* Numbers and texts that say nothing are those of a field that is not set. */
static bool handler_is_set(const struct pb_field *f)
{
	return f->wire == PB_BYTES ? f->len > 0 : f->value != 0;
}

int handler_check_later(const struct rpc_method *m, const uint8_t *data, size_t len,
			struct error *err)
{
	struct pb_reader r = pb_reader(data, len);
	const ProtobufCFieldDescriptor *field;
	struct pb_field f;

	while (m->later_field && pb_next(&r, &f) > 0) {
		if (f.number == m->later_field || !handler_is_set(&f))
			continue;
		field = protobuf_c_message_descriptor_get_field(m->input, f.number);
		if (field)
			return error_field(err, ERROR_INVALID, field->name,
					   "only in the first message");
	}
	return 0;
}

/* The owner of the call may have passed it on meanwhile, then reading is no longer ours to stop. */
static void handler_hold(struct rpc_call *c)
{
	if (call_is_live(c) && !c->passed_on)
		exchange_pause(&c->x, c->paused || (c->handed && !c->on_message));
}

static void handler_next_message(struct rpc_call *c, const uint8_t *data, size_t len)
{
	const struct rpc_method *m = c->method;
	struct error err = ERROR_INIT;
	ProtobufCMessage *message = NULL;

	if (handler_check_later(m, data, len, &err) == 0)
		message = walk_decode(m->input, data, len, NULL, &err);
	if (!message)
		return call_refuse_error(c, &err);
	c->on_message(c, message, c->message_data);
	protobuf_c_message_free_unpacked(message, NULL);
}

static void handler_stream_message(struct rpc_call *c, const uint8_t *data, size_t len)
{
	if (c->handed)
		return handler_next_message(c, data, len);
	if (!handler_take(c, data, len))
		return;
	handler_run(c, c->input_data);
	handler_hold(c);
}

static void handler_stream_end(struct rpc_call *c)
{
	if (!c->handed)
		handler_run(c, NULL);
	else
		c->on_message(c, NULL, c->message_data);
}

void handler_on_message(struct rpc_call *c,
			void (*fn)(struct rpc_call *c, const ProtobufCMessage *message, void *data),
			void *data)
{
	c->on_message = fn;
	c->message_data = data;
	handler_hold(c);
}

void handler_pause(struct rpc_call *c, bool paused)
{
	c->paused = paused;
	handler_hold(c);
}

const struct call_input *handler_input(const struct rpc_method *m)
{
	static const struct call_input one = {
		.message = handler_one_message,
		.end = handler_one_end,
		.lost = handler_lost,
	};
	static const struct call_input stream = {
		.message = handler_stream_message,
		.end = handler_stream_end,
		.lost = handler_lost,
	};

	return m->client_streaming ? &stream : &one;
}
