/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_POOL_CALL_H
#define NACRE_RUNTIME_POOL_CALL_H

#include "loop/pool.h"

/*
 * A unary call whose answer is looked up on a thread of the pool: a value inside of what its owner
 * allocated. Where the client goes away meanwhile the call ends at once, and what belongs to the
 * work is freed when it comes back.
 */

struct rpc_call;
struct pool_call;

struct pool_call_ops {
	/* On the thread: touches nothing but its own. */
	void (*run)(struct pool_call *p);
	/* On the loop: ends the call. */
	void (*reply)(struct pool_call *p, struct rpc_call *call);
	/* Exactly once. */
	void (*free)(struct pool_call *p);
};

struct pool_call {
	const struct pool_call_ops *ops;
	struct pool_work work;
	struct rpc_call *call; /* NULL: nobody waits any more */
};

/* For one that asks others first: pool_call_begin(), then pool_call_submit() for the thread, or
 * pool_call_end() where there is nothing to do for one. */
void pool_call_begin(struct pool_call *p, const struct pool_call_ops *ops, struct rpc_call *call);
void pool_call_submit(struct pool_call *p, struct pool *pool);
void pool_call_end(struct pool_call *p);
/* The first two. */
void pool_call_start(struct pool_call *p, const struct pool_call_ops *ops, struct pool *pool,
		     struct rpc_call *call);

#endif
