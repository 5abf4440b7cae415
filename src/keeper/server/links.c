/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/links.h"

#include <errno.h>
#include <string.h>

#include "base/memory/arena.h"
#include "instance/peer.h"
#include "loop/pool.h"
#include "rpc/server/server.h"

#define LINKS_MAC_LEN 6
#define LINKS_NAME_MAX 15
#define LINKS_SETTINGS_MAX ((size_t)32 << 10)

struct links_putting {
	struct pool_work work;
	struct rpc_call *call;
	struct peer_link link;
	links_put_fn put;
	struct error err;
};

static void links_put_run(struct pool_work *work)
{
	struct links_putting *p = container_of(work, struct links_putting, work);

	(void)p->put(&p->link, &p->err);
}

static void links_put_done(struct pool_work *work)
{
	struct links_putting *p = container_of(work, struct links_putting, work);
	Nacre__Instance__V1__PutLinkResponse response;

	if (p->err.code) {
		rpc_call_fail(p->call, &p->err);
		return;
	}
	nacre__instance__v1__put_link_response__init(&response);
	rpc_call_reply(p->call, &response.base);
}

static int links_check(const Nacre__Instance__V1__PutLinkRequest *q, struct error *err)
{
	const size_t name_len = strlen(q->name);

	if (q->device.len != LINKS_MAC_LEN)
		return error_field(err, ERROR_INVALID, "device", "required: a MAC of %d bytes",
				   LINKS_MAC_LEN);
	if (name_len == 0 || name_len > LINKS_NAME_MAX)
		return error_field(err, ERROR_INVALID, "name", "required: 1 to %d bytes",
				   LINKS_NAME_MAX);
	if (!q->gone && q->mac.len != LINKS_MAC_LEN)
		return error_field(err, ERROR_INVALID, "mac", "required: a MAC of %d bytes",
				   LINKS_MAC_LEN);
	if (strlen(q->settings) > LINKS_SETTINGS_MAX)
		return error_field(err, ERROR_INVALID, "settings",
				   "longer than the limit of %zu bytes", LINKS_SETTINGS_MAX);
	return 0;
}

/* What the thread reads lives as long as the call. */
static struct links_putting *links_keep(struct arena *a,
					const Nacre__Instance__V1__PutLinkRequest *q)
{
	struct links_putting *p = arena_zalloc(a, 1, sizeof(*p));
	uint8_t *macs = arena_zalloc(a, 2, LINKS_MAC_LEN);

	if (!p || !macs)
		return NULL;
	memcpy(macs, q->device.data, LINKS_MAC_LEN);
	if (q->mac.len == LINKS_MAC_LEN)
		memcpy(macs + LINKS_MAC_LEN, q->mac.data, LINKS_MAC_LEN);
	p->link = (struct peer_link){ .device = macs,
				      .gone = q->gone,
				      .name = arena_strdup(a, q->name),
				      .mac = macs + LINKS_MAC_LEN,
				      .mtu = q->mtu,
				      .settings = arena_strdup(a, q->settings) };
	p->err = (struct error)ERROR_INIT;
	return p->link.name && p->link.settings ? p : NULL;
}

static int links_begin(struct links *l, struct rpc_call *call,
		       const Nacre__Instance__V1__PutLinkRequest *q, struct error *err)
{
	struct links_putting *p;
	int r = links_check(q, err);

	if (r < 0)
		return r;
	if (!l->put)
		return error_refuse(err, ERROR_PRECONDITION,
				    "this keeper is not that of a machine");
	r = l->pool ? 0 : pool_new(&l->pool, l->loop, 1);
	if (r < 0)
		return error_set(err, r, "make a thread for network devices");
	p = links_keep(rpc_call_arena(call), q);
	if (!p)
		return error_set(err, -ENOMEM, "a network device");
	p->work = (struct pool_work){ .run = links_put_run, .done = links_put_done };
	p->call = call;
	p->put = l->put;
	pool_submit(l->pool, &p->work);
	return 0;
}

void links_put(struct links *l, struct rpc_call *call,
	       const Nacre__Instance__V1__PutLinkRequest *request)
{
	struct error err = ERROR_INIT;

	if (links_begin(l, call, request, &err) < 0)
		rpc_call_fail(call, &err);
}

void links_init(struct links *l, struct loop *loop, links_put_fn put)
{
	*l = (struct links){ .loop = loop, .put = put };
}

void links_done(struct links *l)
{
	l->pool = pool_free(l->pool);
}
