/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/files.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/tree_list.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "isolate/mount/generations.h"
#include "keeper/message/convert_tree.h"
#include "loop/pool.h"
#include "rpc/server/server.h"

_Static_assert(CONTAINER_SHARE_MAX == GENERATIONS_NAME_MAX, "each name of a volume is one");
_Static_assert(VOLUME_BYTES_MAX * 4 <= GENERATIONS_BYTES, "there is room for some");
_Static_assert((VOLUME_FILES_MAX + 1) * 4 <= GENERATIONS_INODES, "and for their names");

/* Where a volume stands, as far as this program knows. */
struct files_volume {
	struct list link;
	char name[CONTAINER_SHARE_MAX + 1];
	uint64_t current; /* 0: it was never given */
	uint64_t before;  /* that was in force when `grace` was last over */
};

struct files_putting {
	struct pool_work work;
	struct list link;
	struct files *all;
	struct rpc_call *call;
	struct files_volume *volume;
	struct tree_list tree;
	uint64_t generation;
	int r;
	struct error err;
};

struct files_retiring {
	struct pool_work work;
	struct list link;
	int own_fd;
	uint64_t from;
	char name[CONTAINER_SHARE_MAX + 1];
};

/* ---- what is over ---- */

static void files_retire_run(struct pool_work *work)
{
	const struct files_retiring *r = container_of(work, struct files_retiring, work);

	generations_retire(r->own_fd, r->name, r->from);
}

static void files_retire_done(struct pool_work *work)
{
	struct files_retiring *r = container_of(work, struct files_retiring, work);

	list_remove(&r->link);
	free(r);
}

/* Without memory it is for the next time. */
static bool files_retire(struct files *f, struct files_volume *v)
{
	struct files_retiring *r = calloc(1, sizeof(*r));

	if (!r)
		return false;
	r->work = (struct pool_work){ .run = files_retire_run, .done = files_retire_done };
	r->own_fd = f->own_fd;
	r->from = v->before;
	(void)str_copy(r->name, sizeof(r->name), v->name);
	list_init(&r->link);
	list_add_tail(&f->retirings, &r->link);
	pool_submit(f->pool, &r->work);
	v->before = v->current;
	return true;
}

static void files_on_grace(struct loop_timer *t)
{
	struct files *f = container_of(t, struct files, grace);
	struct files_volume *v;
	bool again = false;

	list_for_each (v, &f->volumes, struct files_volume, link) {
		bool due = v->before != v->current;

		/* Once more when the last one has been in force for as long. */
		again = again || due;
		if (v->current > 1)
			again = !files_retire(f, v) || again;
		else
			v->before = v->current;
	}
	f->ticking = again;
	if (again)
		loop_timer_set(&f->grace, FILES_GRACE);
}

/* ---- what is given ---- */

static void files_put_run(struct pool_work *work)
{
	struct files_putting *p = container_of(work, struct files_putting, work);

	p->r = generations_put(p->all->own_fd, p->volume->name, &p->tree, &p->generation, &p->err);
	tree_list_done(&p->tree);
}

static void files_put_done(struct pool_work *work)
{
	struct files_putting *p = container_of(work, struct files_putting, work);
	Nacre__Instance__V1__PutFilesResponse response;
	struct files *f = p->all;

	list_remove(&p->link);
	/* One that is in force without all of its names counts as that. */
	if (p->generation) {
		p->volume->current = p->generation;
		if (!f->ticking)
			loop_timer_set(&f->grace, FILES_GRACE);
		f->ticking = true;
	}
	if (p->r < 0) {
		rpc_call_fail(p->call, &p->err);
		return;
	}
	nacre__instance__v1__put_files_response__init(&response);
	response.generation = p->generation;
	rpc_call_reply(p->call, &response.base);
}

static int files_find(struct files *f, const char *name, struct files_volume **ret,
		      struct error *err)
{
	struct files_volume *v;

	list_for_each (v, &f->volumes, struct files_volume, link)
		if (str_eq(v->name, name)) {
			*ret = v;
			return 0;
		}
	if (f->n_volumes == FILES_VOLUMES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%d volumes have files already",
				    FILES_VOLUMES_MAX);
	v = calloc(1, sizeof(*v));
	if (!v)
		return error_set(err, -ENOMEM, "volume %s", name);
	(void)str_copy(v->name, sizeof(v->name), name);
	list_init(&v->link);
	list_add_tail(&f->volumes, &v->link);
	f->n_volumes++;
	*ret = v;
	return 0;
}

static int files_begin(struct files *f, struct rpc_call *call,
		       const Nacre__Instance__V1__PutFilesRequest *request, struct error *err)
{
	struct files_putting *p;
	int r;

	if (f->own_fd < 0)
		return error_refuse(err, ERROR_PRECONDITION, "this keeper has no place for files");
	if (!f->pool) {
		r = pool_new(&f->pool, f->loop, 1);
		if (r < 0)
			return error_set(err, r, "make a thread for files");
	}
	p = arena_zalloc(rpc_call_arena(call), 1, sizeof(*p));
	if (!p)
		return error_set(err, -ENOMEM, "put files");
	*p = (struct files_putting){ .work = { .run = files_put_run, .done = files_put_done },
				     .all = f,
				     .call = call,
				     .err = ERROR_INIT };
	r = convert_files_back(&p->tree, request, err);
	if (r == 0)
		r = files_find(f, request->volume, &p->volume, err);
	if (r < 0) {
		tree_list_done(&p->tree);
		return r;
	}
	list_init(&p->link);
	list_add_tail(&f->puttings, &p->link);
	pool_submit(f->pool, &p->work);
	return 0;
}

void files_put(struct files *f, struct rpc_call *call,
	       const Nacre__Instance__V1__PutFilesRequest *request)
{
	struct error err = ERROR_INIT;

	if (files_begin(f, call, request, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- the object ---- */

void files_init(struct files *f, struct loop *loop, int own_fd)
{
	*f = (struct files){ .loop = loop, .own_fd = own_fd };
	list_init(&f->volumes);
	list_init(&f->puttings);
	list_init(&f->retirings);
	loop_timer_init(&f->grace, loop, files_on_grace);
}

void files_done(struct files *f)
{
	struct files_retiring *r;
	struct files_putting *p;
	struct files_volume *v;

	if (!f->loop)
		return;
	f->pool = pool_free(f->pool);
	/* Those that have not begun. */
	list_for_each (p, &f->puttings, struct files_putting, link)
		tree_list_done(&p->tree);
	list_for_each (r, &f->retirings, struct files_retiring, link)
		free(r);
	list_for_each (v, &f->volumes, struct files_volume, link)
		free(v);
	loop_timer_done(&f->grace);
	f->loop = NULL;
}
