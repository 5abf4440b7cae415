/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/logs.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "cell/layer/keeper.h"
#include "cell/output/kept.h"
#include "rpc/server/server.h"

/* Lives in the arena of its call. */
struct logs {
	struct rpc_call *call;
	struct keeper_log *log; /* NULL once it is told no more */
};

/* Before the call is ended. */
static void logs_release(struct logs *g)
{
	struct keeper_log *log = TAKE_PTR(g->log);

	if (log)
		kept_close(log);
	rpc_call_on_cancel(g->call, NULL, NULL);
	rpc_call_on_message(g->call, NULL, NULL);
	rpc_call_on_writable(g->call, NULL, NULL);
}

static void logs_fail(struct logs *g, const struct error *err)
{
	logs_release(g);
	rpc_call_fail(g->call, err);
}

/* ---- what is told ---- */

static void logs_on_writable(struct rpc_call *call, void *data)
{
	struct logs *g = data;

	if (g->log)
		kept_pause(g->log, false);
}

static void logs_send(struct logs *g, const Nacre__Instance__V1__LogsResponse *message)
{
	struct error err = ERROR_INIT;
	int r = rpc_call_send(g->call, &message->base);

	if (r < 0) {
		(void)error_set(&err, r, "pass the log of a container on");
		logs_fail(g, &err);
	} else if (g->log && !rpc_call_writable(g->call)) {
		kept_pause(g->log, true);
		rpc_call_on_writable(g->call, logs_on_writable, g);
	}
}

static void logs_on_lines(void *userdata, uint64_t at, const void *lines, size_t len)
{
	Nacre__Instance__V1__LogsResponse message;

	nacre__instance__v1__logs_response__init(&message);
	message.offset = at;
	message.data.data = (uint8_t *)(uintptr_t)lines;
	message.data.len = len;
	logs_send(userdata, &message);
}

static void logs_on_eof(void *userdata, uint64_t at)
{
	Nacre__Instance__V1__LogsResponse message;

	nacre__instance__v1__logs_response__init(&message);
	message.offset = at;
	message.eof = true;
	logs_send(userdata, &message);
}

static void logs_on_end(void *userdata, const struct error *err)
{
	struct logs *g = userdata;

	g->log = NULL;
	if (err) {
		logs_fail(g, err);
		return;
	}
	logs_release(g);
	rpc_call_finish(g->call);
}

static const struct keeper_log_ops logs_ops = {
	.on_lines = logs_on_lines,
	.on_eof = logs_on_eof,
	.on_end = logs_on_end,
};

/* ---- what is taken ---- */

static void logs_on_message(struct rpc_call *call, const ProtobufCMessage *message, void *data)
{
	const Nacre__Instance__V1__LogsRequest *request = (const void *)message;
	struct error err = ERROR_INIT;
	struct logs *g = data;

	/* A client that takes nothing more may still listen. */
	if (request && g->log && kept_take(g->log, request->ack, &err) < 0)
		logs_fail(g, &err);
}

/* ---- the call ---- */

static void logs_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_CANCELLED, "the reader has left");
	logs_fail(data, &err);
}

static int logs_begin(struct keeper *k, struct rpc_call *call,
		      const Nacre__Instance__V1__LogsRequest *request, struct error *err)
{
	struct logs *g;
	int r;

	if (!request)
		return error_refuse(err, ERROR_INVALID, "the first message is missing");
	if (request->ack)
		return error_field(err, ERROR_INVALID, "ack", "not in the first message");
	g = arena_zalloc(rpc_call_arena(call), 1, sizeof(*g));
	if (!g)
		return error_set(err, -ENOMEM, "take the request up");
	g->call = call;
	r = keeper_log_open(k, request->id, request->from, &logs_ops, g, &g->log, err);
	if (r < 0)
		return r;
	rpc_call_on_cancel(call, logs_on_cancel, g);
	rpc_call_on_message(call, logs_on_message, g);
	return 0;
}

void logs_handle(struct keeper *k, struct rpc_call *call,
		 const Nacre__Instance__V1__LogsRequest *request)
{
	struct error err = ERROR_INIT;

	if (logs_begin(k, call, request, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- another file ---- */

static void logs_changed(void *call)
{
	Nacre__Instance__V1__ChangeLogResponse m = NACRE__INSTANCE__V1__CHANGE_LOG_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

void logs_change(struct keeper *k, struct rpc_call *call, const char *id, int fd)
{
	struct error err = ERROR_INIT;
	int r;

	if (fd < 0)
		r = error_field(&err, ERROR_INVALID, "log_token", "required");
	else
		r = keeper_change_log(k, id, fd, logs_changed, call, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}
