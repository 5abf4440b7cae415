/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_CHANNEL_CALL_H
#define NACRE_CRI_CHANNEL_CALL_H

#include <protobuf-c/protobuf-c.h>

/*
 * Exec and Attach: a URL of the streaming server (stream/server.h), where a client speaks with a
 * command in a container, or with its program. A command that a client leaves behind is killed.
 * Members of a table of methods: userdata is the struct cri_runtime_service.
 */

struct rpc_call;

void cri_exec(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_attach(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
