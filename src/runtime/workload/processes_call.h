/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_PROCESSES_CALL_H
#define NACRE_RUNTIME_PROCESSES_CALL_H

#include "base/log/error.h"

struct rpc_call;
struct workload_service;

/* In one answer; what is more is left out, and said so. */
#define PROCESSES_MAX ((size_t)10000)

/* WorkloadService.Processes: ends the call later, or returns an error. */
int processes_call_start(struct rpc_call *call, struct workload_service *s, const char *target,
			 const char *container, struct error *err);

#endif
