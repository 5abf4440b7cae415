/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/streams/exec_sync_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/cri.pb-c.h"
#include "api/instance.pb-c.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/services.h"
#include "keeper/client/client.h"
#include "keeper/server/passing.h"
#include "pod/workload/workload.h"
#include "rpc/exchange/client.h"
#include "runtime/core/check.h"

/* A second more would not fit the milliseconds of the keeper. */
#define EXEC_TIMEOUT_MAX ((int64_t)INT32_MAX)

struct exec_sync {
	struct rpc_call *call; /* NULL: it has ended */
	struct cri_runtime_service *service;
	const Runtime__V1__ExecSyncRequest *request;
	char id[ID_SIZE]; /* of the container */
	struct passing_turn turn;
	struct rpc_stream *stream; /* NULL: it was not asked yet, or has ended */
	struct buf out, err;
	bool has_ended, timed_out;
	int exit_code;
	struct error failure;
};

static void exec_free(struct exec_sync *x)
{
	if (x->call)
		rpc_call_on_cancel(x->call, NULL, NULL);
	passing_turn_done(&x->turn);
	if (x->stream)
		rpc_stream_cancel(x->stream);
	buf_done(&x->out);
	buf_done(&x->err);
	free(x);
}

static void exec_fail(struct exec_sync *x, const struct error *err)
{
	struct rpc_call *call = x->call;

	exec_free(x);
	rpc_call_fail(call, err);
}

static void exec_reply(struct exec_sync *x)
{
	Runtime__V1__ExecSyncResponse m = RUNTIME__V1__EXEC_SYNC_RESPONSE__INIT;
	struct rpc_call *call = TAKE_PTR(x->call);
	size_t n_out = x->out.len;
	/* The whole has to fit one message. */
	size_t n_err = MIN(x->err.len, EXEC_SYNC_OUTPUT_MAX - n_out);

	m.stdout = (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t)buf_data(&x->out),
					  .len = n_out };
	m.stderr = (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t)buf_data(&x->err),
					  .len = n_err };
	m.exit_code = x->exit_code;
	rpc_call_on_cancel(call, NULL, NULL);
	rpc_call_reply(call, &m.base);
	exec_free(x);
}

/* ---- what the keeper tells ---- */

static int exec_keep(struct buf *b, const ProtobufCBinaryData *bytes)
{
	size_t room = EXEC_SYNC_OUTPUT_MAX - b->len;

	return buf_add(b, bytes->data, MIN(bytes->len, room));
}

static void exec_take(struct exec_sync *x, const Nacre__Instance__V1__ExecResponse *m)
{
	if (exec_keep(&x->out, &m->stdout) < 0 || exec_keep(&x->err, &m->stderr) < 0)
		(void)error_set(&x->failure, -ENOMEM, "keep the output of a command");
	if (!m->exit)
		return;
	x->has_ended = true;
	x->exit_code = m->exit->exit_code;
	x->timed_out = str_eq(m->exit->reason, KEEPER_EXEC_TIME_OVER);
}

static void exec_on_message(struct rpc_stream *s, const uint8_t *data, size_t len, void *userdata)
{
	struct exec_sync *x = userdata;
	ProtobufCMessage *m = rpc_decode(&nacre__instance__v1__exec_response__descriptor, data, len,
					 NULL, &x->failure);

	(void)s;
	if (!m)
		return;
	exec_take(x, (const Nacre__Instance__V1__ExecResponse *)(const void *)m);
	protobuf_c_message_free_unpacked(m, NULL);
}

static void exec_on_end(struct rpc_stream *s, enum rpc_code code, const struct error *err,
			void *userdata)
{
	struct exec_sync *x = userdata;
	struct error own = x->failure;

	(void)s;
	(void)code;
	x->stream = NULL;
	if (!own.code && err && err->code)
		own = *err;
	if (!own.code && x->timed_out)
		(void)error_refuse(&own, ERROR_DEADLINE,
				   "the command did not end within %lld s and was killed",
				   (long long)x->request->timeout);
	if (!own.code && !x->has_ended)
		(void)error_refuse(&own, ERROR_UNAVAILABLE, "how the command ended is not known");
	if (own.code)
		exec_fail(x, &own);
	else
		exec_reply(x);
}

static const struct rpc_stream_ops exec_ops = {
	.on_message = exec_on_message,
	.on_end = exec_on_end,
};

/* ---- what is asked ---- */

static int exec_ask(struct exec_sync *x, struct error *err)
{
	Nacre__Instance__V1__ExecRequest m = NACRE__INSTANCE__V1__EXEC_REQUEST__INIT;
	struct rpc_request request = {
		.method = "/nacre.instance.v1.InstanceService/Exec",
		.message = &m.base,
		.timeout = NSEC_NEVER,
	};
	struct pod_container *c;
	struct peer *peer;
	int r = cri_find_running(x->service, x->request->container_id, &c, &peer, err);

	if (r == 0)
		r = passing_queue(peer, &x->turn, err);
	if (r <= 0)
		return r;
	m.id = c->id;
	m.argv = x->request->cmd;
	m.n_argv = x->request->n_cmd;
	m.timeout_ms = (uint64_t)x->request->timeout * 1000;
	request.target = keeper_client_target(peer);
	r = rpc_client_call(keeper_client_rpc(peer), &request, &exec_ops, x, &x->stream);
	return r < 0 ? error_set(err, r, "call its keeper") : 0;
}

static void exec_on_turn(struct passing_turn *t)
{
	struct exec_sync *x = container_of(t, struct exec_sync, turn);
	struct error err = ERROR_INIT;

	if (exec_ask(x, &err) < 0)
		exec_fail(x, &err);
}

/* Its keeper kills the command when the stream to it ends. */
static void exec_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled, the command was killed");
	exec_fail(data, &err);
}

static int exec_check(const Runtime__V1__ExecSyncRequest *q, struct error *err)
{
	int r = check_words("cmd", q->cmd, q->n_cmd, err);

	if (r < 0)
		return r;
	if (q->timeout < 0 || q->timeout > EXEC_TIMEOUT_MAX)
		return error_field(err, ERROR_INVALID, "timeout", "%lld s; it is 0 (none) to %lld",
				   (long long)q->timeout, (long long)EXEC_TIMEOUT_MAX);
	return 0;
}

void cri_exec_sync(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__ExecSyncRequest *q =
		(const Runtime__V1__ExecSyncRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct exec_sync *x;

	if (exec_check(q, &err) < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	x = calloc(1, sizeof(*x));
	if (!x) {
		(void)error_set(&err, -ENOMEM, "run a command");
		rpc_call_fail(call, &err);
		return;
	}
	x->call = call;
	x->service = userdata;
	x->request = q;
	passing_turn_init(&x->turn, exec_on_turn);
	if (exec_ask(x, &err) < 0)
		exec_fail(x, &err);
	else
		rpc_call_on_cancel(call, exec_on_cancel, x);
}
