/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_CONTAINER_CALL_H
#define NACRE_CRI_CONTAINER_CALL_H

#include <protobuf-c/protobuf-c.h>

/* Methods that make, start and end containers. Members of a table of methods: userdata is the
 * struct cri_runtime_service. */

struct rpc_call;

void cri_create_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_start_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_stop_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_remove_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
