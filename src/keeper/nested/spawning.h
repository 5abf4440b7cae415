/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_SPAWNING_H
#define NACRE_KEEPER_SPAWNING_H

#include <protobuf-c/protobuf-c.h>

/* Spawn and SpawnMachine: each ends the call. */

struct children;
struct rpc_call;

void spawning_cell(struct children *all, struct rpc_call *call, const ProtobufCMessage *message);
void spawning_machine(struct children *all, struct rpc_call *call, const ProtobufCMessage *message);

#endif
