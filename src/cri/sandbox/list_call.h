/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_LIST_CALL_H
#define NACRE_CRI_LIST_CALL_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

/* Methods that list sandboxes and containers and tell their status, from memory. Members of a table
 * of methods: userdata is the struct cri_runtime_service. */

struct rpc_call;
struct workload;

/* Whether a sandbox is told of. */
bool cri_sandbox_is_shown(const struct workload *w);
/* Whether a map of strings has all entries of another one, which may be of another type. */
bool cri_labels_match(const void *map, size_t n, const void *wanted, size_t n_wanted);

void cri_list_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_stream_pod_sandboxes(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata);
void cri_pod_sandbox_status(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_list_containers(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_stream_containers(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void cri_container_status_call(struct rpc_call *call, const ProtobufCMessage *request,
			       void *userdata);

#endif
