/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_MACHINE_CALL_H
#define NACRE_RUNTIME_MACHINE_CALL_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "pod/workload/workload.h"

struct rpc_call;
struct runtime_service;
struct volume_guard;

/* RunVirtualMachine: what it names is opened, and its disks are made, on a thread. userdata: struct
 * runtime_service. */
void machine_call_run(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

/* The same for a request that another method has made of its own; done as of workload_run(), its
 * userdata the call. drops_failed: it
 * goes where it cannot be started. An image "disk://NAME" is that of the kept disk of this name. */
void machine_call_run_as(struct rpc_call *call,
			 const Aurae__Runtime__V0__RunVirtualMachineRequest *request,
			 bool drops_failed, workload_fn done, struct runtime_service *service);

/* A kernel that a machine may boot, by its path; the error names the field. ERROR_INVALID,
 * ERROR_NOT_FOUND, ERROR_PRECONDITION. It may block: for a thread. */
int machine_kernel_open(const struct volume_guard *guard, const char *field, const char *path,
			struct error *err);

#endif
