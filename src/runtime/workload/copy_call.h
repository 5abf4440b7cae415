/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_COPY_CALL_H
#define NACRE_RUNTIME_COPY_CALL_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

struct pod_container;
struct rpc_call;
struct workload_service;

/* WorkloadService.CopyFrom and CopyTo: end the call later, or return an error. `first` is the first
 * message of the stream. */
int copy_from_start(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		    const Nacre__V1__CopyFromRequest *q, struct error *err);
int copy_to_start(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		  const Nacre__V1__CopyToRequest *first, struct error *err);

#endif
