/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_HOSTS_H
#define NACRE_KEEPER_HOSTS_H

#include "api/instance.pb-c.h"
#include "base/memory/list.h"

struct keeper;
struct loop;
struct pool;
struct rpc_call;

/*
 * PutHosts of a keeper: names of pods in containers that run (isolate/mount/hosts_block.h). One
 * thread, made when it is needed, writes them one after the other. A value.
 */
struct hosts {
	struct loop *loop; /* NULL: it has ended */
	struct keeper *keeper;
	struct pool *pool;
	struct list puttings; /* struct hosts_putting: for the thread, or on it */
};

void hosts_init(struct hosts *h, struct loop *loop, struct keeper *keeper);
/* Takes the call over. */
void hosts_put(struct hosts *h, struct rpc_call *call,
	       const Nacre__Instance__V1__PutHostsRequest *request);
/* Before the end of all calls. What the thread is at is waited for. */
void hosts_done(struct hosts *h);

#endif
