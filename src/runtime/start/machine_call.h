/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_MACHINE_CALL_H
#define NACRE_RUNTIME_MACHINE_CALL_H

#include <protobuf-c/protobuf-c.h>

#include "base/log/error.h"

struct rpc_call;
struct volume_guard;

/* RunVirtualMachine: what it names is opened, and its disks are made, on a thread. userdata: struct
 * runtime_service. */
void machine_call_run(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

/* A kernel that a machine may boot, by its path; the error names the field. ERROR_INVALID,
 * ERROR_NOT_FOUND, ERROR_PRECONDITION. It may block: for a thread. */
int machine_kernel_open(const struct volume_guard *guard, const char *field, const char *path,
			struct error *err);

#endif
