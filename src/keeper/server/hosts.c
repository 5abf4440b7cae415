/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/hosts.h"

#include <errno.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "cell/layer/keeper.h"
#include "isolate/mount/hosts_block.h"
#include "loop/pool.h"
#include "rpc/server/server.h"

struct hosts_putting {
	struct pool_work work;
	struct list link;
	struct rpc_call *call;
	int root_fd;
	const char *block;
	int r;
};

static void hosts_put_run(struct pool_work *work)
{
	struct hosts_putting *p = container_of(work, struct hosts_putting, work);

	p->r = hosts_block_put(p->root_fd, p->block);
}

static void hosts_forget(struct hosts_putting *p)
{
	list_remove(&p->link);
	p->root_fd = fd_close(p->root_fd);
}

static void hosts_put_done(struct pool_work *work)
{
	struct hosts_putting *p = container_of(work, struct hosts_putting, work);
	Nacre__Instance__V1__PutHostsResponse response;
	struct error err = ERROR_INIT;

	hosts_forget(p);
	if (p->r >= 0) {
		nacre__instance__v1__put_hosts_response__init(&response);
		rpc_call_reply(p->call, &response.base);
		return;
	}
	if (p->r == -EROFS)
		(void)error_refuse(&err, ERROR_PRECONDITION,
				   "the root of the container is read-only");
	else
		(void)error_set(&err, p->r, "write names of pods to /etc/hosts");
	rpc_call_fail(p->call, &err);
}

static int hosts_begin(struct hosts *h, struct rpc_call *call,
		       const Nacre__Instance__V1__PutHostsRequest *q, struct error *err)
{
	struct hosts_putting *p;
	const char *name;
	int r;

	if (strlen(q->block) > HOSTS_MAX)
		return error_field(err, ERROR_INVALID, "block",
				   "longer than the limit of %zu bytes", HOSTS_MAX);
	r = h->pool ? 0 : pool_new(&h->pool, h->loop, 1);
	if (r < 0)
		return error_set(err, r, "make a thread for names");
	p = arena_zalloc(rpc_call_arena(call), 1, sizeof(*p));
	if (p)
		p->block = arena_strdup(rpc_call_arena(call), q->block);
	if (!p || !p->block)
		return error_set(err, -ENOMEM, "names of pods");
	p->work = (struct pool_work){ .run = hosts_put_run, .done = hosts_put_done };
	p->call = call;
	p->root_fd = keeper_open_root(h->keeper, q->id, &name, err);
	if (p->root_fd < 0)
		return p->root_fd;
	list_init(&p->link);
	list_add_tail(&h->puttings, &p->link);
	pool_submit(h->pool, &p->work);
	return 0;
}

void hosts_put(struct hosts *h, struct rpc_call *call,
	       const Nacre__Instance__V1__PutHostsRequest *request)
{
	struct error err = ERROR_INIT;

	if (hosts_begin(h, call, request, &err) < 0)
		rpc_call_fail(call, &err);
}

void hosts_init(struct hosts *h, struct loop *loop, struct keeper *keeper)
{
	*h = (struct hosts){ .loop = loop, .keeper = keeper };
	list_init(&h->puttings);
}

void hosts_done(struct hosts *h)
{
	struct hosts_putting *p;

	if (!h->loop)
		return;
	h->pool = pool_free(h->pool);
	/* Those that have not begun. */
	list_for_each (p, &h->puttings, struct hosts_putting, link)
		hosts_forget(p);
	h->loop = NULL;
}
