/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_MACHINE_CALL_H
#define NACRE_RUNTIME_MACHINE_CALL_H

#include <protobuf-c/protobuf-c.h>

struct rpc_call;

/* RunVirtualMachine: what it names is opened, and its disks are made, on a thread. userdata: struct
 * runtime_service. */
void machine_call_run(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
