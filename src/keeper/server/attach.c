/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/attach.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "cell/layer/keeper.h"
#include "keeper/message/convert.h"
#include "keeper/server/typing.h"
#include "rpc/server/server.h"

/* Lives in the arena of its call. */
struct attach {
	struct typing typing;
	struct rpc_call *call;
	struct keeper_attach *seat; /* NULL once it is told no more */
};

static struct attach *attach_of(struct typing *t)
{
	return container_of(t, struct attach, typing);
}

/* Before the call is ended. */
static void attach_release(struct attach *a)
{
	struct keeper_attach *seat = TAKE_PTR(a->seat);

	if (seat)
		keeper_attach_leave(seat);
	typing_stop(&a->typing);
	rpc_call_on_cancel(a->call, NULL, NULL);
	rpc_call_on_writable(a->call, NULL, NULL);
}

static void attach_fail(struct attach *a, const struct error *err)
{
	attach_release(a);
	rpc_call_fail(a->call, err);
}

/* ---- its output ---- */

static void attach_on_writable(struct rpc_call *call, void *data)
{
	struct attach *a = data;

	if (a->seat)
		keeper_attach_pause(a->seat, false);
}

/* False where the call has failed. */
static bool attach_send(struct attach *a, const Nacre__Instance__V1__AttachResponse *message)
{
	struct error err = ERROR_INIT;
	int r = rpc_call_send(a->call, &message->base);

	if (r < 0) {
		(void)error_set(&err, r, "pass the output of a container on");
		attach_fail(a, &err);
		return false;
	}
	if (a->seat && !rpc_call_writable(a->call)) {
		keeper_attach_pause(a->seat, true);
		rpc_call_on_writable(a->call, attach_on_writable, a);
	}
	return true;
}

static void attach_on_output(void *userdata, int stream, const void *data, size_t len)
{
	Nacre__Instance__V1__AttachResponse message;
	ProtobufCBinaryData bytes = { .len = len, .data = (uint8_t *)(uintptr_t)data };

	nacre__instance__v1__attach_response__init(&message);
	if (stream == 1)
		message.stdout = bytes;
	else
		message.stderr = bytes;
	(void)attach_send(userdata, &message);
}

static void attach_on_skipped(void *userdata, uint64_t n)
{
	Nacre__Instance__V1__AttachResponse message;

	nacre__instance__v1__attach_response__init(&message);
	message.skipped = n;
	(void)attach_send(userdata, &message);
}

static void attach_on_exit(void *userdata, const struct container_status *status)
{
	Nacre__Instance__V1__AttachResponse message;
	Nacre__Instance__V1__ExecExit end;
	struct attach *a = userdata;

	nacre__instance__v1__attach_response__init(&message);
	nacre__instance__v1__exec_exit__init(&end);
	a->seat = NULL;
	end.exit_code = status->exit_code;
	end.signal = status->signal;
	end.reason = convert_str(status->reason);
	message.exit = &end;
	if (!attach_send(a, &message))
		return;
	attach_release(a);
	rpc_call_finish(a->call);
}

static void attach_on_error(void *userdata, const struct error *err)
{
	struct attach *a = userdata;

	a->seat = NULL;
	attach_fail(a, err);
}

static const struct keeper_attach_ops attach_ops = {
	.on_output = attach_on_output,
	.on_skipped = attach_on_skipped,
	.on_exit = attach_on_exit,
	.on_error = attach_on_error,
};

/* ---- what is typed ---- */

static void attach_written(void *userdata, const struct error *err)
{
	struct attach *a = userdata;

	typing_written(&a->typing, err);
}

static int write_(struct typing *t, const void *data, size_t len, bool close, struct error *err)
{
	return keeper_attach_write(attach_of(t)->seat, data, len, close, attach_written, err);
}

static int resize(struct typing *t, const struct terminal_size *size, struct error *err)
{
	return keeper_attach_resize(attach_of(t)->seat, size, err);
}

static int signal_(struct typing *t, int sig, struct error *err)
{
	return keeper_attach_signal(attach_of(t)->seat, sig, err);
}

static void refuse(struct typing *t, const struct error *err)
{
	attach_fail(attach_of(t), err);
}

static const Nacre__Instance__V1__StreamInput *input(const ProtobufCMessage *message)
{
	return ((const Nacre__Instance__V1__AttachRequest *)(const void *)message)->input;
}

static const struct typing_ops attach_typing_ops = {
	.write = write_,
	.resize = resize,
	.signal = signal_,
	.refuse = refuse,
	.input = input,
};

/* ---- the call ---- */

static void attach_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_CANCELLED, "the client has left");
	attach_fail(data, &err);
}

static int attach_begin(struct keeper *k, struct rpc_call *call,
			const Nacre__Instance__V1__AttachRequest *request, struct error *err)
{
	struct keeper_attach_spec spec;
	struct attach *a;
	int r;

	if (!request)
		return error_refuse(err, ERROR_INVALID, "the first message is missing");
	if (request->input)
		return error_field(err, ERROR_INVALID, "input", "not in the first message");
	r = convert_attach(&spec, request, err);
	if (r < 0)
		return r;
	a = arena_zalloc(rpc_call_arena(call), 1, sizeof(*a));
	if (!a)
		return error_set(err, -ENOMEM, "take the request up");
	a->call = call;
	r = keeper_attach(k, &spec, &attach_ops, a, &a->seat, err);
	if (r < 0)
		return r;
	rpc_call_on_cancel(call, attach_on_cancel, a);
	typing_start(&a->typing, call, &attach_typing_ops, spec.stdin_open);
	return 0;
}

void attach_handle(struct keeper *k, struct rpc_call *call,
		   const Nacre__Instance__V1__AttachRequest *request)
{
	struct error err = ERROR_INIT;

	if (attach_begin(k, call, request, &err) < 0)
		rpc_call_fail(call, &err);
}
