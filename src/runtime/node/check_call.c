/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/check_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "image/content/image_inventory.h"
#include "image/image.h"
#include "image/rootfs/limited.h"
#include "instance/instance_inventory.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "pod/workload/workload_inventory.h"
#include "runtime/node/look.h"
#include "runtime/services.h"
#include "vm/disk/disks.h"

/*
 * Theory of operation. A round looks at the kernel on a thread of the pool, and then, in the loop,
 * at the records: between the two an object may come or go. So a round that finds nothing is the
 * answer, and one that finds something is followed by another: what every one of them found is
 * wrong. A round that meets a write of root.db cannot read that, and is no answer by itself.
 *
 * Keepers are not asked: each tells every change of its containers when it happens (Watch), and
 * that of a container that nobody knows is ended there and then. So what the daemon has in memory
 * is their list, and the cgroups are the kernel's word on the same.
 */

#define CHECK_ROUNDS 8
#define CHECK_INTERVAL (150 * NSEC_PER_MSEC)

struct check_call {
	struct list link;      /* of service->checks */
	struct rpc_call *call; /* NULL: nobody waits any more */
	struct node_service *service;
	struct pool_work work;
	struct loop_timer timer;
	struct inventory inventory;
	struct map found; /* keys of the rounds before, in `memory` */
	struct arena memory;
	unsigned round;
	bool root_read; /* in this round */
	struct error err;
};

struct check_answer {
	struct check_call *check;
	Nacre__V1__CheckResponse message;
	struct map next;
	struct arena memory;
	bool failed;
};

static void check_call_free(struct check_call *c)
{
	if (c->call)
		rpc_call_on_cancel(c->call, NULL, NULL);
	list_remove(&c->link);
	loop_timer_done(&c->timer);
	inventory_done(&c->inventory);
	map_done(&c->found);
	arena_done(&c->memory);
	free(c);
}

static void check_call_fail(struct check_call *c, const struct error *err)
{
	struct rpc_call *call = TAKE_PTR(c->call);

	if (!call)
		return;
	rpc_call_on_cancel(call, NULL, NULL);
	rpc_call_fail(call, err);
}

static void check_call_cancelled(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;
	struct check_call *c = data;

	(void)call;
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	check_call_fail(c, &err);
	if (!c->work.busy)
		check_call_free(c);
}

/* ---- the answer ---- */

static Nacre__V1__Finding *check_finding(struct arena *a, const struct inventory_finding *f)
{
	Nacre__V1__Finding *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__finding__init(m);
	m->object = arena_strdup(a, f->kind);
	m->id = arena_strdup(a, f->id);
	m->name = arena_strdup(a, f->name);
	m->what = arena_strdup(a, f->what);
	return m->object && m->id && m->name && m->what ? m : NULL;
}

/* Keeps what this round has found, and of that answers with what the round before found too. */
static bool check_note(void *userdata, const struct inventory_finding *f)
{
	struct check_answer *answer = userdata;
	struct check_call *c = answer->check;
	char *key =
		arena_printf(&answer->memory, "%s\n%s\n%s\n%s", f->kind, f->id, f->name, f->what);
	int r = key ? map_add(&answer->next, key, key) : -ENOMEM;

	if (r == -EEXIST)
		return true;
	answer->failed = r < 0;
	if (r == 0 && (c->round == 1 || map_get(&c->found, key))) {
		Nacre__V1__Finding *m = check_finding(rpc_call_arena(c->call), f);

		answer->message.findings[answer->message.n_findings] = m;
		answer->message.n_findings += m != NULL;
		answer->failed = !m;
	}
	return !answer->failed && answer->message.n_findings < CHECK_FINDINGS_MAX;
}

/* True where the call is answered. */
static bool check_judge(struct check_call *c, struct error *err)
{
	struct check_answer answer = { .check = c, .next = MAP_INIT, .memory = ARENA_INIT };
	bool over;

	nacre__v1__check_response__init(&answer.message);
	answer.message.findings = arena_zalloc(rpc_call_arena(c->call), CHECK_FINDINGS_MAX,
					       sizeof(*answer.message.findings));
	answer.failed = !answer.message.findings;
	if (!answer.failed)
		inventory_each(&c->inventory, check_note, &answer);
	if (answer.failed || c->inventory.incomplete)
		(void)error_set(err, -ENOMEM, "compare the records with the kernel");
	map_done(&c->found);
	arena_done(&c->memory);
	c->found = answer.next;
	c->memory = answer.memory;
	if (err->code)
		return false;
	over = (answer.message.n_findings == 0 && c->root_read) || c->round == CHECK_ROUNDS;
	if (over) {
		rpc_call_on_cancel(c->call, NULL, NULL);
		rpc_call_reply(TAKE_PTR(c->call), &answer.message.base);
	}
	return over;
}

/* ---- the rounds ---- */

/* A disk has no record: it is whole, or nobody's. */
static void check_disks(struct check_call *c)
{
	_cleanup_strv_ char **names = NULL;

	if (c->err.code || disks_strangers(c->service->root_fd, &names, &c->err) < 0)
		return;
	for (size_t i = 0; names && names[i]; i++)
		inventory_fault(&c->inventory, "disk", "", names[i],
				"it is there, and is no whole disk");
}

static void check_run(struct pool_work *work)
{
	struct check_call *c = container_of(work, struct check_call, work);
	const struct node_service *s = c->service;
	const struct look look = {
		.root_fd = s->root_fd,
		.run_fd = s->run_fd,
		.cgroup_fd = s->cgroup_fd,
	};

	(void)look_take(&look, &c->inventory, &c->err);
	check_disks(c);
	limited_inventory(image_containers_fd(s->images), &c->inventory);
}

static void check_done(struct pool_work *work)
{
	struct check_call *c = container_of(work, struct check_call, work);
	struct node_service *s = c->service;
	struct error err = c->err;

	if (!c->call) {
		check_call_free(c);
		return;
	}
	c->round++;
	if (!err.code) {
		instances_inventory(s->instances, &c->inventory);
		c->root_read = image_store_inventory(s->images, &c->inventory, &err) > 0;
		if (!err.code)
			(void)workloads_inventory(s->workloads, &c->inventory, &err);
	}
	if (!err.code && !check_judge(c, &err) && !err.code) {
		inventory_done(&c->inventory);
		loop_timer_set(&c->timer, CHECK_INTERVAL);
		return;
	}
	if (err.code)
		check_call_fail(c, &err);
	check_call_free(c);
}

static void check_again(struct loop_timer *timer)
{
	struct check_call *c = container_of(timer, struct check_call, timer);

	pool_submit(c->service->pool, &c->work);
}

void check_call_start(struct rpc_call *call, struct node_service *service)
{
	struct error err = ERROR_INIT;
	struct check_call *c;
	size_t n = 0;

	list_for_each (c, &service->checks, struct check_call, link)
		n++;
	c = n < CHECK_CALLS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		if (n < CHECK_CALLS_MAX)
			(void)error_set(&err, -ENOMEM, "check the node");
		else
			(void)error_refuse(&err, ERROR_EXHAUSTED,
					   "%zu checks run already, the limit", n);
		rpc_call_fail(call, &err);
		return;
	}
	*c = (struct check_call){
		.call = call,
		.service = service,
		.work = { .run = check_run, .done = check_done },
		.found = MAP_INIT,
		.memory = ARENA_INIT,
		.err = ERROR_INIT,
	};
	list_init(&c->link);
	list_add_tail(&service->checks, &c->link);
	inventory_init(&c->inventory);
	loop_timer_init(&c->timer, service->loop, check_again);
	rpc_call_on_cancel(call, check_call_cancelled, c);
	pool_submit(service->pool, &c->work);
}

void check_calls_free(struct node_service *service)
{
	struct check_call *c;

	list_for_each (c, &service->checks, struct check_call, link)
		check_call_free(c);
}
