/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_DIFF_CALL_H
#define NACRE_RUNTIME_DIFF_CALL_H

#include <protobuf-c/protobuf-c.h>

struct rpc_call;

/* WorkloadService.Diff; userdata: struct workload_service. */
void diff_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
