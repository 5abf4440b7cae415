/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/pool_call.h"

#include "rpc/server/server.h"

static void pool_call_run(struct pool_work *work)
{
	struct pool_call *p = container_of(work, struct pool_call, work);

	p->ops->run(p);
}

void pool_call_end(struct pool_call *p)
{
	if (p->call) {
		rpc_call_on_cancel(p->call, NULL, NULL);
		p->ops->reply(p, p->call);
	}
	p->ops->free(p);
}

static void pool_call_done(struct pool_work *work)
{
	pool_call_end(container_of(work, struct pool_call, work));
}

static void pool_call_cancelled(struct rpc_call *call, void *data)
{
	struct pool_call *p = data;
	struct error err = ERROR_INIT;

	p->call = NULL;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_fail(call, &err);
}

void pool_call_begin(struct pool_call *p, const struct pool_call_ops *ops, struct rpc_call *call)
{
	p->ops = ops;
	p->call = call;
	rpc_call_on_cancel(call, pool_call_cancelled, p);
}

void pool_call_submit(struct pool_call *p, struct pool *pool)
{
	p->work = (struct pool_work){ .run = pool_call_run, .done = pool_call_done };
	pool_submit(pool, &p->work);
}

void pool_call_start(struct pool_call *p, const struct pool_call_ops *ops, struct pool *pool,
		     struct rpc_call *call)
{
	pool_call_begin(p, ops, call);
	pool_call_submit(p, pool);
}
