/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_LOGS_CALL_H
#define NACRE_RUNTIME_LOGS_CALL_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

struct pod_container;
struct rpc_call;
struct workload_service;

struct log_wish;

/* How a log is told, where not in messages of nacre.v1. Each sends 0 or more messages: 0 or a
 * negative errno, which ends the call. state must live as long as the call. */
struct logs_form {
	void *state;
	int (*data)(void *state, struct rpc_call *call, int stream, uint64_t time, const void *data,
		    size_t len);
	int (*skipped)(void *state, struct rpc_call *call, uint64_t n);
	/* All was told. */
	int (*end)(void *state, struct rpc_call *call);
};

/* Answers a call with a stream of the container's log, as the form tells it; until: wall clock, 0:
 * without an end. */
int logs_call_start_as(struct rpc_call *call, struct workload_service *service,
		       const struct log_wish *wish, uint64_t until, const struct logs_form *form,
		       struct pod_container *container, struct error *err);
/* Answers a Logs call from the container's log. */
int logs_call_start(struct rpc_call *call, struct workload_service *service,
		    const Nacre__V1__LogsRequest *request, struct pod_container *container,
		    struct error *err);

#endif
