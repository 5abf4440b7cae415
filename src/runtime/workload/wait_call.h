/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_WAIT_CALL_H
#define NACRE_RUNTIME_WAIT_CALL_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

struct rpc_call;
struct workload_service;

/* Wait: ends the call later, or returns an error. */
int wait_call_start(struct rpc_call *call, struct workload_service *s,
		    const Nacre__V1__WaitRequest *q, struct error *err);

#endif
