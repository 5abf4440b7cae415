/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/exec.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/arena.h"
#include "cell/layer/keeper.h"
#include "keeper/message/convert.h"
#include "keeper/server/typing.h"
#include "rpc/server/server.h"

/* Lives in the arena of its call. */
struct exec {
	struct typing typing;
	struct rpc_call *call;
	struct keeper_exec *program;    /* NULL once it has ended */
	bool failed;                    /* a message could not be sent */
	struct exec_detached *detached; /* NULL: the call lasts as long as the program */
};

/* A program that its call does not wait for; freed at its end. */
struct exec_detached {
	struct exec *exec; /* NULL once its call is over */
};

static void exec_on_writable(struct rpc_call *call, void *data)
{
	struct exec *x = data;

	if (x->program)
		keeper_exec_pause(x->program, false);
}

static void exec_send(struct exec *x, const Nacre__Instance__V1__ExecResponse *message)
{
	if (x->failed)
		return;
	if (rpc_call_send(x->call, &message->base) < 0) {
		x->failed = true;
		return;
	}
	if (x->program && !rpc_call_writable(x->call)) {
		keeper_exec_pause(x->program, true);
		rpc_call_on_writable(x->call, exec_on_writable, x);
	}
}

static void exec_on_output(void *userdata, int stream, const void *data, size_t len)
{
	Nacre__Instance__V1__ExecResponse message;
	ProtobufCBinaryData bytes = { .len = len, .data = (uint8_t *)(uintptr_t)data };

	nacre__instance__v1__exec_response__init(&message);
	if (stream == 1)
		message.stdout = bytes;
	else
		message.stderr = bytes;
	exec_send(userdata, &message);
}

/* Ends the call; x is gone afterwards. */
static void exec_end(struct exec *x)
{
	struct error err = ERROR_INIT;

	rpc_call_on_cancel(x->call, NULL, NULL);
	rpc_call_on_writable(x->call, NULL, NULL);
	typing_stop(&x->typing);
	if (x->failed) {
		(void)error_set(&err, -ENOMEM, "pass the output of a program on");
		rpc_call_fail(x->call, &err);
		return;
	}
	rpc_call_finish(x->call);
}

static void exec_on_exit(void *userdata, int exit_code, int sig, const char *reason)
{
	Nacre__Instance__V1__ExecResponse message;
	Nacre__Instance__V1__ExecExit end;
	struct exec *x = userdata;

	nacre__instance__v1__exec_response__init(&message);
	nacre__instance__v1__exec_exit__init(&end);
	x->program = NULL;
	end.exit_code = exit_code;
	end.signal = sig;
	end.reason = convert_str(reason);
	message.exit = &end;
	exec_send(x, &message);
	exec_end(x);
}

static const struct keeper_exec_ops exec_ops = {
	.on_output = exec_on_output,
	.on_exit = exec_on_exit,
};

/* ---- detached ---- */

static void detached_on_output(void *userdata, int stream, const void *data, size_t len)
{
	(void)userdata;
}

static void detached_on_start(void *userdata)
{
	struct exec_detached *d = userdata;

	exec_end(TAKE_PTR(d->exec));
}

static void detached_on_exit(void *userdata, int exit_code, int sig, const char *reason)
{
	struct exec_detached *d = userdata;
	struct exec *x = d->exec;

	free(d);
	if (!x)
		return;
	x->program = NULL;
	/* It was over before anybody saw it begin, or it could not be executed. */
	if (*reason)
		exec_on_exit(x, exit_code, sig, reason);
	else
		exec_end(x);
}

static const struct keeper_exec_ops exec_detached_ops = {
	.on_output = detached_on_output,
	.on_exit = detached_on_exit,
	.on_start = detached_on_start,
};

/* ---- the end of the call ---- */

static void exec_kill(struct exec *x)
{
	if (!x->program)
		return;
	keeper_exec_cancel(TAKE_PTR(x->program));
	free(TAKE_PTR(x->detached));
}

static void exec_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;
	struct exec *x = data;

	exec_kill(x);
	typing_stop(&x->typing);
	rpc_call_on_writable(call, NULL, NULL);
	(void)error_refuse(&err, ERROR_CANCELLED, "the program was killed: nobody waits for it");
	rpc_call_fail(call, &err);
}

/* ---- what is typed ---- */

static struct exec *exec_of(struct typing *t)
{
	return container_of(t, struct exec, typing);
}

static void exec_written(void *userdata, const struct error *err)
{
	struct exec *x = userdata;

	typing_written(&x->typing, err);
}

static int write_(struct typing *t, const void *data, size_t len, bool close, struct error *err)
{
	return keeper_exec_write(exec_of(t)->program, data, len, close, exec_written, err);
}

static int resize(struct typing *t, const struct terminal_size *size, struct error *err)
{
	return keeper_exec_resize(exec_of(t)->program, size, err);
}

static int signal_(struct typing *t, int sig, struct error *err)
{
	return keeper_exec_signal(exec_of(t)->program, sig, err);
}

static void refuse(struct typing *t, const struct error *err)
{
	struct exec *x = exec_of(t);

	exec_kill(x);
	typing_stop(t);
	rpc_call_on_cancel(x->call, NULL, NULL);
	rpc_call_on_writable(x->call, NULL, NULL);
	rpc_call_fail(x->call, err);
}

static const Nacre__Instance__V1__StreamInput *input(const ProtobufCMessage *message)
{
	return ((const Nacre__Instance__V1__ExecRequest *)(const void *)message)->input;
}

static const struct typing_ops exec_typing_ops = {
	.write = write_,
	.resize = resize,
	.signal = signal_,
	.refuse = refuse,
	.input = input,
};

static int exec_begin(struct keeper *k, struct rpc_call *call,
		      const Nacre__Instance__V1__ExecRequest *request, struct error *err)
{
	struct keeper_exec_spec spec;
	struct exec *x;
	int r;

	if (!request)
		return error_refuse(err, ERROR_INVALID, "the first message is missing");
	if (request->input)
		return error_field(err, ERROR_INVALID, "input", "not in the first message");
	r = convert_exec(&spec, request, rpc_call_arena(call), err);
	if (r < 0)
		return r;
	x = arena_zalloc(rpc_call_arena(call), 1, sizeof(*x));
	if (!x)
		return error_set(err, -ENOMEM, "take the request up");
	x->call = call;
	if (request->detach) {
		x->detached = calloc(1, sizeof(*x->detached));
		if (!x->detached)
			return error_set(err, -ENOMEM, "take the request up");
		x->detached->exec = x;
	}
	r = keeper_exec(k, &spec, request->detach ? &exec_detached_ops : &exec_ops,
			request->detach ? (void *)x->detached : x, &x->program, err);
	if (r < 0) {
		free(TAKE_PTR(x->detached));
		return r;
	}
	rpc_call_on_cancel(call, exec_on_cancel, x);
	typing_start(&x->typing, call, &exec_typing_ops, spec.stdin_open);
	return 0;
}

void exec_handle(struct keeper *k, struct rpc_call *call,
		 const Nacre__Instance__V1__ExecRequest *request)
{
	struct error err = ERROR_INIT;

	if (exec_begin(k, call, request, &err) < 0)
		rpc_call_fail(call, &err);
}

static void exec_stdin_written(void *userdata, const struct error *err)
{
	Nacre__Instance__V1__WriteStdinResponse response;

	if (err) {
		rpc_call_fail(userdata, err);
		return;
	}
	nacre__instance__v1__write_stdin_response__init(&response);
	rpc_call_reply(userdata, &response.base);
}

void exec_write_stdin(struct keeper *k, struct rpc_call *call,
		      const Nacre__Instance__V1__WriteStdinRequest *request)
{
	struct error err = ERROR_INIT;

	if (keeper_write_stdin(k, request->id, request->data.data, request->data.len,
			       request->close, exec_stdin_written, call, &err) < 0)
		rpc_call_fail(call, &err);
}
