/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_UPDATE_CALL_H
#define NACRE_RUNTIME_UPDATE_CALL_H

#include "api/nacre.pb-c.h"
#include "base/error.h"

struct rpc_call;
struct workload_service;

/* WorkloadService.Update: the limits are written on a thread, since a lower one of memory may wait
 * for the kernel; then the record has them. Ends the call, or an error. */
int update_call_start(struct rpc_call *call, struct workload_service *s,
		      const Nacre__V1__UpdateRequest *request, struct error *err);

#endif
