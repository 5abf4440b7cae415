/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CLOUD_LOGS_H
#define NACRE_RUNTIME_CLOUD_LOGS_H

#include "api/nacre.pb-c.h"

struct rpc_call;
struct workload;
struct workload_service;

/* Logs of a machine in a cloud: what the cloud keeps of its console, as it is now. Without times,
 * so that `since`, `until` and `follow` are UNIMPLEMENTED. */
void cloud_logs_start(struct rpc_call *call, const struct workload_service *service,
		      const Nacre__V1__LogsRequest *q, const struct workload *w);

#endif
