/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/copying.h"

#include "cell/layer/keeper.h"
#include "loop/pool.h"
#include "rpc/server/server.h"

#define COPYING_THREADS_MAX 4

static int copying_open(struct copying *c, const char *id, const char *path, const char **ret_name,
			struct error *err)
{
	int r = copies_check(&c->copies, path, err);

	if (r == 0 && !c->copies.pool) {
		r = pool_new(&c->copies.pool, c->loop, COPYING_THREADS_MAX);
		if (r < 0)
			(void)error_set(err, r, "make threads for copies");
	}
	return r < 0 ? r : keeper_open_root(c->keeper, id, ret_name, err);
}

void copying_from(struct copying *c, struct rpc_call *call, const Nacre__V1__CopyFromRequest *q)
{
	struct error err = ERROR_INIT;
	const char *name;
	int r = copying_open(c, q->target, q->path, &name, &err);

	if (r >= 0)
		r = copy_from_begin(&c->copies, call, r, q->target, NULL, q, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

void copying_to(struct copying *c, struct rpc_call *call, const Nacre__V1__CopyToRequest *first)
{
	struct error err = ERROR_INIT;
	const char *name;
	int r;

	if (first)
		r = copying_open(c, first->target, first->path, &name, &err);
	else
		r = error_refuse(&err, ERROR_INVALID, "the first message is missing");
	if (r >= 0)
		r = copy_to_begin(&c->copies, call, r, first->target, NULL, first, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

void copying_done(struct copying *c)
{
	c->copies.pool = pool_free(c->copies.pool);
	copies_done(&c->copies);
}
