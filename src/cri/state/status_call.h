/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_STATUS_CALL_H
#define NACRE_CRI_STATUS_CALL_H

#include <protobuf-c/protobuf-c.h>

/* Version, Status, RuntimeConfig, UpdateRuntimeConfig of the CRI. */

struct rpc_call;

void cri_version(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_status(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_runtime_config(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_update_runtime_config(struct rpc_call *call, const ProtobufCMessage *request,
			       void *userdata);

#endif
