/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_LOGS_CALL_H
#define NACRE_RUNTIME_LOGS_CALL_H

#include "api/nacre.pb-c.h"
#include "base/error.h"

struct pod_container;
struct rpc_call;
struct workload_service;

/* Answers a Logs call from the container's log. */
int logs_call_start(struct rpc_call *call, struct workload_service *service,
		    const Nacre__V1__LogsRequest *request, struct pod_container *container,
		    struct error *err);

#endif
