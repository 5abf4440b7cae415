/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "rpc/server/server.h"
#include "runtime/core/check.h"
#include "runtime/core/pool_call.h"
#include "runtime/services.h"
#include "vm/disk/disks.h"

/* Both look at the disk, on a thread. */
struct disk_call {
	struct pool_call pool;
	int root_fd;
	char name[sizeof(((struct disk_kept *)0)->name)];
	struct disk_kept *disks;
	size_t n;
	struct error err;
};

static void disk_call_free(struct pool_call *p)
{
	struct disk_call *c = container_of(p, struct disk_call, pool);

	free(c->disks);
	free(c);
}

static struct disk_call *disk_call_new(const struct disk_service *s, struct rpc_call *call)
{
	struct disk_call *c = calloc(1, sizeof(*c));
	struct error err = ERROR_INIT;

	if (c) {
		c->root_fd = s->root_fd;
		return c;
	}
	(void)error_set(&err, -ENOMEM, "look at disks");
	rpc_call_fail(call, &err);
	return NULL;
}

/* ---- List ---- */

static void disk_list_run(struct pool_call *p)
{
	struct disk_call *c = container_of(p, struct disk_call, pool);

	(void)disks_list(c->root_fd, &c->disks, &c->n, &c->err);
}

static void disk_list_reply(struct pool_call *p, struct rpc_call *call)
{
	Nacre__V1__ListDisksResponse m = NACRE__V1__LIST_DISKS_RESPONSE__INIT;
	struct disk_call *c = container_of(p, struct disk_call, pool);
	Nacre__V1__Disk *all = arena_zalloc(rpc_call_arena(call), c->n + 1, sizeof(*all));
	Nacre__V1__Disk **list =
		arena_zalloc(rpc_call_arena(call), c->n + 1, sizeof(Nacre__V1__Disk *));

	if (!c->err.code && (!all || !list))
		(void)error_set(&c->err, -ENOMEM, "answer");
	if (c->err.code) {
		rpc_call_fail(call, &c->err);
		return;
	}
	for (size_t i = 0; i < c->n; i++) {
		nacre__v1__disk__init(&all[i]);
		all[i].name = c->disks[i].name;
		all[i].image = c->disks[i].base;
		all[i].size = c->disks[i].bytes;
		all[i].used = c->disks[i].used;
		all[i].busy = c->disks[i].busy;
		list[i] = &all[i];
	}
	m.disks = list;
	m.n_disks = c->n;
	rpc_call_reply(call, &m.base);
}

static void disk_list(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct pool_call_ops ops = { disk_list_run, disk_list_reply, disk_call_free };
	const struct disk_service *s = userdata;
	struct disk_call *c = disk_call_new(s, call);

	(void)request;
	if (c)
		pool_call_start(&c->pool, &ops, s->pool, call);
}

/* ---- Remove ---- */

static void disk_remove_run(struct pool_call *p)
{
	struct disk_call *c = container_of(p, struct disk_call, pool);

	(void)disk_remove(c->root_fd, c->name, &c->err);
}

static void disk_remove_reply(struct pool_call *p, struct rpc_call *call)
{
	Nacre__V1__RemoveDiskResponse m = NACRE__V1__REMOVE_DISK_RESPONSE__INIT;
	struct disk_call *c = container_of(p, struct disk_call, pool);

	if (c->err.code)
		rpc_call_fail(call, &c->err);
	else
		rpc_call_reply(call, &m.base);
}

static void disk_remove_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct pool_call_ops ops = { disk_remove_run, disk_remove_reply,
						  disk_call_free };
	const Nacre__V1__RemoveDiskRequest *q =
		(const Nacre__V1__RemoveDiskRequest *)(const void *)request;
	const struct disk_service *s = userdata;
	struct error err = ERROR_INIT;
	struct disk_call *c;
	int r = check_name("name", q->name, &err);

	if (r == 0 && str_empty(q->name))
		r = error_field(&err, ERROR_INVALID, "name", "required");
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	c = disk_call_new(s, call);
	if (!c)
		return;
	(void)str_copy(c->name, sizeof(c->name), q->name);
	pool_call_start(&c->pool, &ops, s->pool, call);
}

static const struct rpc_method disk_methods[] = {
	{ "List", &nacre__v1__list_disks_request__descriptor,
	  &nacre__v1__list_disks_response__descriptor, false, disk_list },
	{ "Remove", &nacre__v1__remove_disk_request__descriptor,
	  &nacre__v1__remove_disk_response__descriptor, false, disk_remove_call },
};

const struct rpc_service disk_service = {
	.name = "nacre.v1.DiskService",
	.methods = disk_methods,
	.n_methods = ARRAY_SIZE(disk_methods),
};
