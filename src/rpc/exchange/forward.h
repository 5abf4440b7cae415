/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_FORWARD_H
#define NACRE_RPC_FORWARD_H

#include <protobuf-c/protobuf-c.h>

#include "http/session.h"

/*
 * A call whose answer another server gives: every message is passed on as it came, in both
 * directions, each hop with its own windows. A side that does not read stops the reading from the
 * other one.
 */

/* Calls that may be passed on over one connection at a time; the rest of its streams is for what
 * this process asks itself. No peer has all of them (rpc/server/share.h): RESOURCE_EXHAUSTED. */
#define FORWARD_STREAMS_MAX (HTTP_STREAMS_MAX - 100)

struct rpc_call;
struct rpc_client;

/* Instead of an input, in call_host.open: the client's messages go on too. target: what is left of
 * the path, or "". Ends the call where the stream cannot be opened. */
void forward_open(struct rpc_call *c, struct rpc_client *client, const char *method,
		  const char *target);
/* The same once the call has a handler, with one message of ours (NULL: none) in front of those
 * that the client may still send. */
void forward_message(struct rpc_call *c, struct rpc_client *client, const char *method,
		     const char *target, const ProtobufCMessage *message);

#endif
