/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_STOP_CALL_H
#define NACRE_RUNTIME_STOP_CALL_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"
#include "base/time/clock.h"

struct rpc_call;
struct workload_service;

/* Milliseconds between asking and killing, as a time. ERROR_INVALID: more than an hour. */
int stop_call_grace(uint64_t ms, nsec_t *ret, struct error *err);

/*
 * WorkloadService.Stop: ends the call later, or returns an error.
 *
 * An instance is stopped in two steps. First every workload in it, at every depth, is asked to end,
 * all at the same time, and is killed after the grace period. Then the instance itself is ended,
 * with the instances in it. With a grace of 0 the first step is left out: the end of the instance
 * kills what runs in it. A workload that is started during the first step has what is left of the
 * grace period. Where the daemon ends during the first step, the workloads that were asked are
 * still ended by the next daemon, the instance stays, and the caller gets ERROR_UNAVAILABLE.
 */
int stop_call_start(struct rpc_call *call, struct workload_service *s,
		    const Nacre__V1__StopRequest *q, struct error *err);

#endif
