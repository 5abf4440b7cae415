/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_SANDBOX_CALL_H
#define NACRE_CRI_SANDBOX_CALL_H

#include <protobuf-c/protobuf-c.h>

/* Methods that make and end sandboxes. Members of a table of methods: userdata is the struct
 * cri_runtime_service. */

struct rpc_call;

void cri_run_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_stop_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_remove_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
