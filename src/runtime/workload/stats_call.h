/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_STATS_CALL_H
#define NACRE_RUNTIME_STATS_CALL_H

#include "base/log/error.h"

struct rpc_call;
struct workload_service;

#define STATS_TARGETS_MAX 4096

/* WorkloadService.Stats: ends the call later, or returns an error. */
int stats_call_start(struct rpc_call *call, struct workload_service *s, char *const *targets,
		     size_t n_targets, struct error *err);

#endif
