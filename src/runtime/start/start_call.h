/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_START_CALL_H
#define NACRE_RUNTIME_START_CALL_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/time/clock.h"

/*
 * WorkloadService.Start and Restart, and the restarts that a policy wants (pod/restart/restart.h).
 * Each waits until the workload is down, reads the request that it was made for, opens what it
 * mounts anew, and starts it (pod/restart/again.h). Nobody who goes away ends that. The same for
 * one container of a workload that runs (pod/restart/container_again.h).
 */

struct copies;
struct pod_container;
struct rpc_call;
struct runtime_service;
struct workload;
struct workload_service;

/* A value: those under way. */
struct starts {
	struct runtime_service *runtime;
	const struct copies *copies;
	struct list list;
};

void starts_init(struct starts *all, struct runtime_service *runtime, const struct copies *copies);
/* Behind volumes_calls_done() and before workloads_free(): tells those that wait for volumes that
 * the daemon ends. */
void starts_done(struct starts *all);

/* Both end the call later, or return an error. */
int start_call_start(struct rpc_call *call, struct workload_service *s,
		     const Nacre__V1__StartRequest *q, struct error *err);
int start_call_restart(struct rpc_call *call, struct workload_service *s,
		       const Nacre__V1__RestartRequest *q, struct error *err);
/* workloads_config.restart; userdata: struct starts. */
void starts_restart(void *userdata, struct workload *w);
/* workloads_config.restart_container, likewise. */
void starts_restart_container(void *userdata, struct pod_container *c);
/* Stops it and starts it again, unless somebody stops it meanwhile. How that went is its state. */
void starts_begin_anew(struct starts *all, struct workload *w, nsec_t grace);

#endif
