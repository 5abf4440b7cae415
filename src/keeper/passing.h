/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_PASSING_H
#define NACRE_KEEPER_PASSING_H

#include <protobuf-c/protobuf-c.h>

/*
 * Calls whose messages a keeper takes and gives undecoded: exec, attach, standard input.
 */

struct connection;
struct keeper_client;
struct peer;
struct rpc_call;

/* Ends the call with what the keeper answers (rpc_call_forward()). While the keeper goes on as
 * another program, the call waits for that; the message is copied then. Where nothing may be asked
 * of the keeper, the call fails with the reason. */
void passing_begin(struct peer *p, struct rpc_call *call, const char *method,
		   const ProtobufCMessage *message);

/* For the units behind client.h: what waits goes on; what waits for a peer that is freed fails. */
void passing_go_on(struct connection *c);
void passing_forget(struct keeper_client *client);

#endif
