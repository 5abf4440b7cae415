/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/memory/list.h"
#include "io/unix.h"
#include "keeper/client/client_fd.h"
#include "keeper/client/client_reopen.h"
#include "keeper/message/convert.h"
#include "keeper/server/passing.h"
#include "keeper/server/tokens.h"
#include "rpc/exchange/client.h"

/*
 * Theory of operation. A Start that carries descriptors sends them over the second socket first,
 * except for those that are made while it is on its way (late.h). The keeper must never have to
 * drop a descriptor (keeper/server/tokens.h): the calls under way on a connection carry at most
 * START_FDS_MAX together, and the others wait here, in order.
 */

/* Room for what another connection may have left. */
#define START_FDS_MAX (TOKENS_HELD_MAX - 24)
_Static_assert(START_FDS + 1 + CONTAINER_MOUNTS_MAX <= START_FDS_MAX, "one start at least fits");

/* Takes the call out of all lists. */
static void client_call_unlink(struct client_call *call)
{
	struct connection *c = call->client->connection;

	if (call->counted) {
		c->n_calls--;
		c->n_start_fds -= call->is_start ? call->n_fds : 0;
	}
	call->counted = false;
	list_remove(&call->link);
	list_remove(&call->waiting);
	for (size_t i = 0; i < ARRAY_SIZE(call->fds); i++)
		call->fds[i] = fd_close(call->fds[i]);
	container_fds_close(&call->mounts);
	free(call->mount_tokens);
	call->mount_tokens = NULL;
	free(call->data);
	call->data = NULL;
}

void client_call_free(struct client_call *call)
{
	client_call_unlink(call);
	unary_done(&call->unary);
	free(call);
}

static int client_call_send_list(const struct client_call *call, const uint64_t *tokens,
				 const int *fds, size_t n)
{
	const struct keeper_client *client = call->client;

	return fdchan_send_all(client->connection->channel_fd, tokens, client->target, fds, n);
}

static int client_call_send_fds(const struct client_call *call)
{
	int r = client_call_send_list(call, call->tokens, call->fds, ARRAY_SIZE(call->fds));

	if (r == 0 && call->mounts.network >= 0)
		r = client_call_send_list(call, &call->network_token, &call->mounts.network, 1);
	return r < 0 ? r
		     : client_call_send_list(call, call->mount_tokens, call->mounts.mounts,
					     call->mounts.n_mounts);
}

/* fn is given by the caller, so that what follows upon an answer can start the next one. */
static void client_call_begin_start(struct client_call *call, unary_fn fn)
{
	struct connection *c = call->client->connection;
	struct error err = ERROR_INIT;
	int r;

	c->n_calls++;
	c->n_start_fds += call->n_fds;
	call->is_start = true;
	call->counted = true;
	r = client_call_send_fds(call);
	if (r < 0) {
		client_passing_error(r, &err);
		unary_fail(&call->unary, c->loop, &err, fn);
		return;
	}
	unary_start(&call->unary, c->loop, c->rpc,
		    &(struct unary_request){
			    .method = KEEPER_METHOD("Start"),
			    .target = call->client->target,
			    .data = call->data,
			    .len = call->len,
			    .output = &nacre__instance__v1__start_response__descriptor,
			    .timeout = NSEC_NEVER,
		    },
		    fn);
}

static void connection_pump_with(struct connection *c, unary_fn fn)
{
	struct client_call *call;

	list_for_each (call, &c->starts, struct client_call, waiting) {
		if (reopen_holds(call->client))
			continue;
		if (c->n_start_fds + call->n_fds > START_FDS_MAX)
			return;
		list_remove(&call->waiting);
		client_call_begin_start(call, fn);
		for (size_t i = 0; i < ARRAY_SIZE(call->fds); i++)
			call->fds[i] = fd_close(call->fds[i]);
		container_fds_close(&call->mounts);
	}
}

static void client_call_on_answer(struct unary *u, const ProtobufCMessage *response,
				  const struct error *err)
{
	struct client_call *call = container_of(u, struct client_call, unary);
	struct connection *c = connection_enter(call->client->connection);

	/* Out of all lists before it tells: whom it tells may free the peer. */
	client_call_unlink(call);
	connection_pump_with(c, client_call_on_answer);
	call->finish(call, response, err);
	free(call);
	connection_leave(c);
}

void connection_pump(struct connection *c)
{
	connection_pump_with(c, client_call_on_answer);
}

static void client_finish_plain(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	call->done(call->userdata, err);
}

struct client_call *client_call_new(struct keeper_client *client, client_finish_fn finish,
				    void *userdata)
{
	struct client_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->client = client;
	call->finish = finish;
	call->userdata = userdata;
	for (size_t i = 0; i < START_FDS; i++)
		call->fds[i] = -1;
	call->mounts = (struct container_fds)CONTAINER_FDS_NONE;
	list_init(&call->link);
	list_init(&call->waiting);
	list_add_tail(&client->calls, &call->link);
	return call;
}

static void client_call_send(struct client_call *call, const ProtobufCMessage *message)
{
	struct connection *c = call->client->connection;

	c->n_calls++;
	call->counted = true;
	unary_start(&call->unary, c->loop, c->rpc,
		    &(struct unary_request){
			    .method = call->method,
			    .target = call->client->target,
			    .message = message,
			    .data = call->data,
			    .len = call->len,
			    .output = call->output,
			    .timeout = call->timeout,
		    },
		    client_call_on_answer);
}

/* Keeps the request until `reopen` is over. */
static int client_call_hold(struct client_call *call, const ProtobufCMessage *message)
{
	call->len = protobuf_c_message_get_packed_size(message);
	call->data = malloc(call->len + 1);
	if (!call->data)
		return -ENOMEM;
	(void)protobuf_c_message_pack(message, call->data);
	list_add_tail(&call->client->connection->held, &call->waiting);
	return 0;
}

void client_call_refuse(struct client_call *call, const struct error *err)
{
	unary_fail(&call->unary, call->client->connection->loop, err, client_call_on_answer);
}

void client_call_ask(struct client_call *call, const char *method, const ProtobufCMessage *message,
		     const ProtobufCMessageDescriptor *output, nsec_t timeout)
{
	struct keeper_client *client = call->client;
	struct error err = ERROR_INIT;
	int r;

	call->method = method;
	call->output = output;
	call->timeout = timeout;
	if (client->refusal.code) {
		client_call_refuse(call, &client->refusal);
	} else if (!reopen_holds(client)) {
		client_call_send(call, message);
	} else {
		r = client_call_hold(call, message);
		if (r < 0) {
			(void)error_set(&err, r, "call the keeper");
			client_call_refuse(call, &err);
		}
	}
}

/* The keeper has said hello again, or never will: what waits is sent. */
void connection_go_on(struct connection *c)
{
	struct client_call *call;

	list_for_each (call, &c->held, struct client_call, waiting) {
		if (reopen_holds(call->client))
			continue;
		list_remove(&call->waiting);
		if (call->client->refusal.code)
			client_call_refuse(call, &call->client->refusal);
		else
			client_call_send(call, NULL);
	}
	connection_pump_with(c, client_call_on_answer);
	passing_go_on(c);
}

/* Without memory for the call there is no later either: the one completion that comes at once. */
void client_no_memory(struct error *err)
{
	*err = (struct error)ERROR_INIT;
	(void)error_set(err, -ENOMEM, "call the keeper");
}

void client_call_give(struct client_call *call)
{
	struct error err = ERROR_INIT;
	int r = client_call_send_list(call, call->tokens, call->fds, ARRAY_SIZE(call->fds));

	for (size_t i = 0; i < ARRAY_SIZE(call->fds); i++)
		call->fds[i] = fd_close(call->fds[i]);
	if (r == 0)
		return;
	client_passing_error(r, &err);
	unary_done(&call->unary);
	client_call_refuse(call, &err);
}

/* A call whose answer carries nothing but success. */
void client_call_plain(struct keeper_client *client, const char *method,
		       const ProtobufCMessage *message, const ProtobufCMessageDescriptor *output,
		       nsec_t timeout, peer_done_fn done, void *userdata)
{
	struct client_call *call = client_call_new(client, client_finish_plain, userdata);
	struct error err;

	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	call->done = done;
	client_call_ask(call, method, message, output, timeout);
}

void client_change_log(struct keeper_client *client, const char *id, int fd, peer_done_fn done,
		       void *userdata)
{
	Nacre__Instance__V1__ChangeLogRequest request;
	struct client_call *call = client_call_new(client, client_finish_plain, userdata);
	_cleanup_fd_ int own = fd;
	struct error err = ERROR_INIT;
	int r = 0;

	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	call->done = done;
	nacre__instance__v1__change_log_request__init(&request);
	request.id = convert_str(id);
	if (!client->changes_log || client->connection->channel_fd < 0)
		r = error_refuse(&err, ERROR_PRECONDITION,
				 "its keeper cannot change the log of a container");
	else
		r = client_send_fd(client, own, &request.log_token, &err);
	if (r < 0)
		client_call_refuse(call, &err);
	else
		client_call_ask(call, KEEPER_METHOD("ChangeLog"), &request.base,
				&nacre__instance__v1__change_log_response__descriptor, NSEC_NEVER);
}
