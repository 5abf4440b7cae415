/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_log.h"

#include <errno.h>
#include <stdlib.h>

#include "keeper/client/client_reopen.h"
#include "keeper/message/convert.h"
#include "rpc/exchange/client.h"

/*
 * A stream of its own for each log, which does not wait where its keeper is not to be asked now: it
 * ends at once as one that was lost, and whoever reads opens it again. What the keeper has kept is
 * still there then.
 */

struct peer_log {
	struct list link; /* of the client */
	struct keeper_client *client;
	struct rpc_stream *stream; /* NULL: never begun, or over */
	const struct peer_log_ops *ops;
	void *userdata;
	struct loop_defer defer;
	struct error err; /* that `defer` tells */
};

static void client_log_free(struct peer_log *log)
{
	if (log->stream)
		rpc_stream_cancel(log->stream);
	list_remove(&log->link);
	loop_defer_done(&log->defer);
	free(log);
}

static void client_log_end(struct peer_log *log, const struct error *err)
{
	const struct peer_log_ops *ops = log->ops;
	void *userdata = log->userdata;

	client_log_free(log);
	ops->on_end(userdata, err);
}

static void client_log_on_defer(struct loop_defer *d)
{
	struct peer_log *log = container_of(d, struct peer_log, defer);
	struct connection *c = connection_enter(log->client->connection);
	struct error err = log->err;

	client_log_end(log, &err);
	connection_leave(c);
}

/* A message says one thing: after an op the log may be closed. */
static void client_log_tell(const struct peer_log *log,
			    const Nacre__Instance__V1__LogsResponse *message)
{
	if (message->eof)
		log->ops->on_eof(log->userdata, message->offset);
	else
		log->ops->on_lines(log->userdata, message->offset, message->data.data,
				   message->data.len);
}

static void client_log_on_message(struct rpc_stream *stream, const uint8_t *data, size_t len,
				  void *userdata)
{
	struct peer_log *log = userdata;
	struct connection *c = connection_enter(log->client->connection);
	ProtobufCMessage *message;

	message = rpc_decode(&nacre__instance__v1__logs_response__descriptor, data, len, NULL,
			     &log->err);
	if (message) {
		client_log_tell(log, (const void *)message);
		protobuf_c_message_free_unpacked(message, NULL);
	} else {
		/* What was lost here is asked for again. */
		log->err.kind = ERROR_UNAVAILABLE;
		rpc_stream_cancel(stream);
		log->stream = NULL;
		loop_defer_schedule(&log->defer);
	}
	connection_leave(c);
}

static void client_log_on_end(struct rpc_stream *stream, enum rpc_code code,
			      const struct error *err, void *userdata)
{
	struct peer_log *log = userdata;
	struct connection *c = connection_enter(log->client->connection);

	log->stream = NULL;
	client_log_end(log, err && err->code ? err : NULL);
	connection_leave(c);
}

static const struct rpc_stream_ops client_log_ops = {
	.on_message = client_log_on_message,
	.on_end = client_log_on_end,
};

static int client_log_begin(struct peer_log *log, const char *id, uint64_t from)
{
	struct keeper_client *client = log->client;
	Nacre__Instance__V1__LogsRequest request;
	struct rpc_request call = {
		.method = KEEPER_METHOD("Logs"),
		.target = client->target,
		.message = &request.base,
		.timeout = NSEC_NEVER,
		.more = true,
	};

	nacre__instance__v1__logs_request__init(&request);
	request.id = convert_str(id);
	request.from = from;
	if (client->refusal.code)
		log->err = client->refusal;
	else if (reopen_holds(client))
		(void)error_refuse(&log->err, ERROR_UNAVAILABLE, "its keeper cannot be asked now");
	else if (!client->logs)
		(void)error_refuse(&log->err, ERROR_PRECONDITION, "its keeper keeps no logs");
	else
		return rpc_client_call(client->connection->rpc, &call, &client_log_ops, log,
				       &log->stream);
	loop_defer_schedule(&log->defer);
	return 0;
}

int client_log_open(struct keeper_client *client, const char *id, uint64_t from,
		    const struct peer_log_ops *ops, void *userdata, struct peer_log **ret)
{
	struct peer_log *log = calloc(1, sizeof(*log));
	int r;

	if (!log)
		return -ENOMEM;
	*log = (struct peer_log){
		.client = client, .ops = ops, .userdata = userdata, .err = ERROR_INIT
	};
	list_init(&log->link);
	list_add_tail(&client->logs_open, &log->link);
	loop_defer_init(&log->defer, client->connection->loop, client_log_on_defer);
	r = client_log_begin(log, id, from);
	if (r < 0) {
		client_log_free(log);
		return r;
	}
	*ret = log;
	return 0;
}

int client_log_take(struct peer_log *log, uint64_t at)
{
	Nacre__Instance__V1__LogsRequest request;
	uint8_t data[32];
	size_t len;

	if (!log->stream)
		return 0;
	nacre__instance__v1__logs_request__init(&request);
	request.ack = at;
	len = nacre__instance__v1__logs_request__pack(&request, data);
	return rpc_stream_send(log->stream, data, len);
}

void client_log_pause(struct peer_log *log, bool paused)
{
	if (log->stream)
		rpc_stream_pause(log->stream, paused);
}

void client_log_close(struct peer_log *log)
{
	client_log_free(log);
}

void client_log_forget(struct keeper_client *client)
{
	struct peer_log *log;

	list_for_each (log, &client->logs_open, struct peer_log, link)
		client_log_free(log);
}
