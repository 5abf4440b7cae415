/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_DEBUG_CALL_H
#define NACRE_RUNTIME_DEBUG_CALL_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

/*
 * WorkloadService.Debug: one container more in a pod or cell that runs, with the processes of
 * another one (pod/workload/sandbox.h). It is specified as that one was, by the request of its
 * workload; what it mounts is opened, its files are made, and it is started.
 */

struct rpc_call;
struct workload_service;

/* Ends the call later, or returns an error. */
int debug_call_start(struct rpc_call *call, struct workload_service *s,
		     const Nacre__V1__DebugRequest *q, struct error *err);

#endif
