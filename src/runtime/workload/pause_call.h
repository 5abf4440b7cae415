/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_PAUSE_CALL_H
#define NACRE_RUNTIME_PAUSE_CALL_H

#include <protobuf-c/protobuf-c.h>

/* Pause and Unpause of the WorkloadService: all containers of a workload at once. */

struct rpc_call;

void pause_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void unpause_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
