/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_HEALTH_CALL_H
#define NACRE_RUNTIME_HEALTH_CALL_H

#include "api/nacre.pb-c.h"
#include "pod/workload/health.h"

struct rpc_call;
struct workload_service;

/* For workloads_config, whose userdata is a struct starts. */
extern const struct health_ops health_call_ops;

/* Ends the call later, or returns an error. */
int health_call_run(struct rpc_call *call, struct workload_service *s,
		    const Nacre__V1__HealthCheckRequest *q, struct error *err);

#endif
