/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_EVENTS_CALL_H
#define NACRE_RUNTIME_EVENTS_CALL_H

#include "base/error.h"

struct events;
struct rpc_call;

/* Answers an Events call until the client goes away. below: only what has this path or lies below
 * it; "" for all. A client that does not read while EVENTS_WAITING_MAX bytes of events wait is
 * ended with RESOURCE_EXHAUSTED. */
#define EVENTS_WAITING_MAX ((size_t)256 * 1024)
int events_call_start(struct rpc_call *call, struct events *events, const char *below,
		      struct error *err);

#endif
