/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CONSOLE_CALL_H
#define NACRE_RUNTIME_CONSOLE_CALL_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

/* Attach to the console of a machine: bytes that are passed on from and to its relay, and looked at
 * by nobody here. */

struct pod_container;
struct rpc_call;
struct workload_service;

/* Ends the call where it returns 0. */
int console_call_start(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		       const Nacre__V1__AttachRequest *q, struct error *err);

#endif
