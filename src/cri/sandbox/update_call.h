/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_UPDATE_CALL_H
#define NACRE_CRI_UPDATE_CALL_H

#include <protobuf-c/protobuf-c.h>

/* Methods that change the limits of existing containers (runtime/workload/update_call.h). Members
 * of a table of methods: userdata is the struct cri_runtime_service. */

struct rpc_call;

void cri_update_container_resources(struct rpc_call *call, const ProtobufCMessage *request,
				    void *userdata);
/* The group of a pod is the kubelet's, which has changed it already: what is told is kept with the
 * sandbox. */
void cri_update_pod_sandbox_resources(struct rpc_call *call, const ProtobufCMessage *request,
				      void *userdata);

#endif
