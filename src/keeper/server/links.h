/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_LINKS_H
#define NACRE_KEEPER_LINKS_H

#include "api/instance.pb-c.h"
#include "base/log/error.h"
#include "base/memory/list.h"

struct loop;
struct peer_link;
struct pool;
struct rpc_call;

typedef int (*links_put_fn)(const struct peer_link *link, struct error *err);

/*
 * PutLink of the keeper of a machine: network devices for the networks of its pod. One thread, made
 * when it is needed, configures them one after the other. A value.
 */
struct links {
	struct loop *loop;
	links_put_fn put; /* on the thread; NULL: it is no machine's keeper */
	struct pool *pool;
};

void links_init(struct links *l, struct loop *loop, links_put_fn put);
/* Takes the call over. */
void links_put(struct links *l, struct rpc_call *call,
	       const Nacre__Instance__V1__PutLinkRequest *request);
/* Before the end of all calls. What the thread is at is waited for. */
void links_done(struct links *l);

#endif
