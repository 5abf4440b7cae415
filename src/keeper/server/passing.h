/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_PASSING_H
#define NACRE_KEEPER_PASSING_H

#include <protobuf-c/protobuf-c.h>

#include "base/log/error.h"
#include "base/memory/list.h"

/*
 * Calls whose messages a keeper takes and gives undecoded: exec, attach, standard input.
 */

struct connection;
struct keeper_client;
struct peer;
struct rpc_call;

/* Ends the call with what the keeper answers (rpc_call_forward()). While the keeper goes on as
 * another program, the call waits for that; the message is copied then. Where nothing may be asked
 * of the keeper, the call fails with the reason. Once it was passed on it outlives the peer: all
 * that the keeper has said before its end arrives, at the pace of who reads it. */
void passing_begin(struct peer *p, struct rpc_call *call, const char *method,
		   const ProtobufCMessage *message);

/* For a caller that calls the keeper itself (keeper_client_rpc()): a value inside its owner. */
struct passing_turn {
	struct list link; /* of the connection */
	struct keeper_client *client;
	void (*fn)(struct passing_turn *t);
};

void passing_turn_init(struct passing_turn *t, void (*fn)(struct passing_turn *t));
/* 1: the keeper may be asked now. 0: it goes on as another program, and fn is called once when
 * asking again makes sense; not any more after passing_turn_done(), nor where the peer is freed
 * before. A negative errno: nothing may be asked of it, err says why. */
int passing_queue(struct peer *p, struct passing_turn *t, struct error *err);
void passing_turn_done(struct passing_turn *t);

/* For the units behind client.h: what waits goes on; what waits for a peer that is freed fails. */
void passing_go_on(struct connection *c);
void passing_forget(struct keeper_client *client);

#endif
