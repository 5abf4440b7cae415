/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_GROUPS_H
#define NACRE_KEEPER_GROUPS_H

#include "api/instance.pb-c.h"
#include "base/log/error.h"
#include "base/memory/list.h"
#include "loop/loop.h"

/*
 * The calls about the groups of a keeper's layer, for a parent without access to them, since they
 * are another kernel's: Limit, Usage and Processes of nacre.instance.v1. The files are read and
 * written on a thread: the kernel may take its time for them.
 */

#define GROUPS_PROCESSES_MAX ((size_t)10000)

struct keeper;
struct pool;
struct rpc_call;

struct groups {
	struct loop *loop;
	struct pool *pool; /* made when it is needed */
	struct keeper *keeper;
	int cgroup_fd; /* of the layer; not owned */
	struct list jobs;
};

void groups_init(struct groups *all, struct loop *loop, struct keeper *keeper, int cgroup_fd);
/* Behind the end of all calls; waits for a thread that reads. */
void groups_done(struct groups *all);

/* Each ends the call, now or later. */
void groups_limit(struct groups *all, struct rpc_call *call,
		  const Nacre__Instance__V1__LimitRequest *request);
void groups_usage(struct groups *all, struct rpc_call *call);
void groups_processes(struct groups *all, struct rpc_call *call);

#endif
