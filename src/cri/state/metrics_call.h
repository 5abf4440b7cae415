/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_METRICS_CALL_H
#define NACRE_CRI_METRICS_CALL_H

#include <protobuf-c/protobuf-c.h>

/* Metrics of the sandboxes that are ready and of the containers that run in them, read on a thread.
 * Members of a table of methods: userdata is the struct cri_runtime_service. */

struct rpc_call;

void cri_list_metric_descriptors(struct rpc_call *call, const ProtobufCMessage *request,
				 void *userdata);
void cri_list_pod_sandbox_metrics(struct rpc_call *call, const ProtobufCMessage *request,
				  void *userdata);
void cri_stream_pod_sandbox_metrics(struct rpc_call *call, const ProtobufCMessage *request,
				    void *userdata);

#endif
