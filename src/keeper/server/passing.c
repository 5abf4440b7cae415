/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/passing.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "keeper/client/client_model.h"
#include "keeper/client/client_reopen.h"
#include "rpc/exchange/client.h"
#include "rpc/server/server.h"

/* Lies in the arena of its call. */
struct passing {
	struct list link; /* of the connection */
	struct rpc_call *call;
	struct keeper_client *client;
	const char *method;
	const ProtobufCMessageDescriptor *type;
	uint8_t *data;
	size_t len;
};

static void passing_end(struct passing *p, enum error_kind kind, const char *why)
{
	struct error err = ERROR_INIT;

	list_remove(&p->link);
	rpc_call_on_cancel(p->call, NULL, NULL);
	(void)error_refuse(&err, kind, "%s", why);
	rpc_call_fail(p->call, &err);
}

static void passing_on_cancel(struct rpc_call *call, void *data)
{
	(void)call;
	passing_end(data, ERROR_CANCELLED, "nobody waits for the answer any more");
}

static int passing_wait(struct keeper_client *client, struct rpc_call *call, const char *method,
			const ProtobufCMessage *message)
{
	struct arena *arena = rpc_call_arena(call);
	struct passing *p = arena_zalloc(arena, 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->call = call;
	p->client = client;
	p->method = method;
	p->type = message->descriptor;
	p->len = protobuf_c_message_get_packed_size(message);
	p->data = arena_alloc(arena, p->len + 1);
	if (!p->data)
		return -ENOMEM;
	(void)protobuf_c_message_pack(message, p->data);
	list_init(&p->link);
	list_add_tail(&client->connection->passing, &p->link);
	rpc_call_on_cancel(call, passing_on_cancel, p);
	return 0;
}

static void passing_send(struct keeper_client *client, struct rpc_call *call, const char *method,
			 const ProtobufCMessage *message)
{
	if (client->refusal.code)
		rpc_call_fail(call, &client->refusal);
	else
		rpc_call_forward(call, client->connection->rpc, method, client->target, message);
}

void passing_begin(struct peer *p, struct rpc_call *call, const char *method,
		   const ProtobufCMessage *message)
{
	struct keeper_client *client = container_of(p, struct keeper_client, peer);
	struct error err = ERROR_INIT;
	int r;

	if (!reopen_holds(client) || rpc_call_cancelled(call)) {
		passing_send(client, call, method, message);
		return;
	}
	r = passing_wait(client, call, method, message);
	if (r < 0) {
		(void)error_set(&err, r, "let the call wait for its keeper");
		rpc_call_fail(call, &err);
	}
}

void passing_turn_init(struct passing_turn *t, void (*fn)(struct passing_turn *t))
{
	list_init(&t->link);
	t->fn = fn;
}

int passing_queue(struct peer *p, struct passing_turn *t, struct error *err)
{
	struct keeper_client *client = container_of(p, struct keeper_client, peer);

	if (client->refusal.code)
		return error_copy(err, &client->refusal);
	if (!reopen_holds(client))
		return 1;
	list_remove(&t->link);
	list_add_tail(&client->connection->turns, &t->link);
	t->client = client;
	return 0;
}

void passing_turn_done(struct passing_turn *t)
{
	list_remove(&t->link);
}

static struct passing_turn *passing_next_turn(struct connection *c)
{
	struct passing_turn *t;

	list_for_each (t, &c->turns, struct passing_turn, link)
		if (!reopen_holds(t->client))
			return t;
	return NULL;
}

/* From the front each time: one that has his turn may take others back. */
static void passing_give_turns(struct connection *c)
{
	for (;;) {
		struct passing_turn *t = passing_next_turn(c);

		if (!t)
			return;
		list_remove(&t->link);
		t->fn(t);
	}
}

void passing_go_on(struct connection *c)
{
	struct passing *p;

	list_for_each (p, &c->passing, struct passing, link) {
		ProtobufCMessage *message;

		if (reopen_holds(p->client))
			continue;
		message = protobuf_c_message_unpack(p->type, NULL, p->len, p->data);
		if (!message) {
			passing_end(p, ERROR_EXHAUSTED, "no memory to pass the call on");
			continue;
		}
		list_remove(&p->link);
		rpc_call_on_cancel(p->call, NULL, NULL);
		passing_send(p->client, p->call, p->method, message);
		protobuf_c_message_free_unpacked(message, NULL);
	}
	passing_give_turns(c);
}

void passing_forget(struct keeper_client *client)
{
	struct passing_turn *t;
	struct passing *p;

	list_for_each (t, &client->connection->turns, struct passing_turn, link)
		if (t->client == client)
			list_remove(&t->link);
	list_for_each (p, &client->connection->passing, struct passing, link)
		if (p->client == client)
			passing_end(p, ERROR_UNAVAILABLE, "its keeper has ended");
}
