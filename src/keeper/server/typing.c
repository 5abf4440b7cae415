/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/typing.h"

#include "keeper/message/convert.h"
#include "rpc/server/server.h"

/* 0 also where the program has closed its input: what it does not read is dropped. */
static int typing_write(struct typing *t, const void *data, size_t len, bool close,
			struct error *err)
{
	int r;

	if (t->closed)
		return 0;
	/* Before the write, whose completion lets the next message come. */
	rpc_call_pause(t->call, true);
	t->closed = close;
	r = t->ops->write(t, data, len, close, err);
	if (r == 0)
		return 0;
	rpc_call_pause(t->call, false);
	if (err->kind != ERROR_PRECONDITION)
		return r;
	t->closed = true;
	*err = (struct error)ERROR_INIT;
	return 0;
}

static int typing_take(struct typing *t, const Nacre__Instance__V1__StreamInput *input,
		       struct error *err)
{
	struct terminal_size size;
	int r = 0;

	if (!input)
		return error_field(err, ERROR_INVALID, "input", "missing behind the first message");
	if (!t->wanted && (input->data.len > 0 || input->close))
		return error_field(err, ERROR_INVALID, "input.data", "stdin was not asked for");
	if (input->data.len > CONTAINER_STDIN_MAX)
		return error_field(err, ERROR_EXHAUSTED, "input.data",
				   "%zu bytes are more than %zu", input->data.len,
				   CONTAINER_STDIN_MAX);
	if (input->signal > 64)
		return error_field(err, ERROR_INVALID, "input.signal", "%u is none", input->signal);
	if (input->terminal) {
		r = convert_size(&size, input->terminal, err);
		if (r == 0)
			r = t->ops->resize(t, &size, err);
	}
	if (r == 0 && input->signal)
		r = t->ops->signal(t, (int)input->signal, err);
	if (r == 0 && (input->data.len > 0 || input->close))
		r = typing_write(t, input->data.data, input->data.len, input->close, err);
	return r;
}

static void typing_on_message(struct rpc_call *call, const ProtobufCMessage *message, void *data)
{
	struct typing *t = data;
	struct error err = ERROR_INIT;
	int r = 0;

	if (t->stopped)
		return;
	if (message)
		r = typing_take(t, t->ops->input(message), &err);
	else if (t->wanted)
		r = typing_write(t, NULL, 0, true, &err);
	if (r < 0)
		t->ops->refuse(t, &err);
}

void typing_start(struct typing *t, struct rpc_call *call, const struct typing_ops *ops,
		  bool wanted)
{
	*t = (struct typing){ .call = call, .ops = ops, .wanted = wanted };
	rpc_call_on_message(call, typing_on_message, t);
}

void typing_written(struct typing *t, const struct error *err)
{
	t->closed = t->closed || err;
	if (!t->stopped)
		rpc_call_pause(t->call, false);
}

void typing_stop(struct typing *t)
{
	t->stopped = true;
}
