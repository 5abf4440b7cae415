/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_STATS_CALL_H
#define NACRE_CRI_STATS_CALL_H

#include <protobuf-c/protobuf-c.h>

/* Methods that tell how much sandboxes and containers use, read on a thread. Members of a table of
 * methods: userdata is the struct cri_runtime_service. */

struct rpc_call;

void cri_container_stats(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_list_container_stats(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata);
void cri_stream_container_stats(struct rpc_call *call, const ProtobufCMessage *request,
				void *userdata);
void cri_pod_sandbox_stats(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_list_pod_sandbox_stats(struct rpc_call *call, const ProtobufCMessage *request,
				void *userdata);
void cri_stream_pod_sandbox_stats(struct rpc_call *call, const ProtobufCMessage *request,
				  void *userdata);

#endif
