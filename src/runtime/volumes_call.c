/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/volumes_call.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "loop/pool.h"
#include "pod/make.h"
#include "rpc/server.h"

struct volumes_item {
	char *path;
	char *log_name; /* it is the log of a container, below `path`; NULL: it is a mount */
	char field[ERROR_FIELD_MAX];
	struct pod_mount_spec mount;
};

struct volumes_call {
	struct pool_work work;
	struct loop_timer timer;
	struct list member;
	struct volumes_calls *all;
	struct volume_guard guard;
	bool waits;            /* somebody waits for it: */
	struct rpc_call *call; /* NULL: no call, but who is told by `fail` */
	void (*go_on)(void *userdata, const struct volumes *opened);
	void (*fail)(void *userdata, const struct error *err);
	void *userdata;
	struct volumes_item *items;
	int *fds;
	size_t n;
	atomic_size_t at; /* the item that the thread has in hand */
	struct error err;
};

static int volumes_open(const struct volumes_call *v, const struct volumes_item *item,
			struct error *err)
{
	struct pod_mount_spec m = item->mount;

	if (item->log_name)
		return volume_open_log(item->field, item->path, item->log_name, err);
	m.field = item->field;
	m.source = item->path;
	return m.follow ? volume_open_through(&v->guard, &m, err) : volume_open(&v->guard, &m, err);
}

/* On the thread. */
static void volumes_run(struct pool_work *work)
{
	struct volumes_call *v = container_of(work, struct volumes_call, work);

	for (size_t i = 0; i < v->n && v->err.code == 0; i++) {
		const struct volumes_item *item = &v->items[i];

		atomic_store(&v->at, i);
		v->fds[i] = volumes_open(v, item, &v->err);
	}
}

static void volumes_free(struct volumes_call *v)
{
	list_remove(&v->member);
	v->all->n--;
	loop_timer_done(&v->timer);
	for (size_t i = 0; i < v->n; i++) {
		(void)fd_close(v->fds ? v->fds[i] : -1);
		if (v->items) {
			free(v->items[i].path);
			free(v->items[i].log_name);
		}
	}
	free(v->fds);
	free(v->items);
	free(v);
}

/* Whether somebody waited, who does so no more. */
static bool volumes_end_wait(struct volumes_call *v)
{
	bool waited = v->waits;

	v->waits = false;
	loop_timer_stop(&v->timer);
	if (waited && v->call)
		rpc_call_on_cancel(v->call, NULL, NULL);
	return waited;
}

static void volumes_fail(struct volumes_call *v, const struct error *err)
{
	if (v->call)
		rpc_call_fail(v->call, err);
	else
		v->fail(v->userdata, err);
}

static void volumes_done(struct pool_work *work)
{
	struct volumes_call *v = container_of(work, struct volumes_call, work);
	const struct volumes opened = { v->fds, v->n };
	bool waited = volumes_end_wait(v);

	if (waited && v->err.code)
		volumes_fail(v, &v->err);
	else if (waited)
		v->go_on(v->userdata, &opened);
	volumes_free(v);
}

static void volumes_on_timer(struct loop_timer *t)
{
	struct volumes_call *v = container_of(t, struct volumes_call, timer);
	const struct volumes_item *item = &v->items[atomic_load(&v->at)];
	struct error err = ERROR_INIT;

	(void)volumes_end_wait(v);
	(void)error_field(&err, ERROR_UNAVAILABLE, item->field,
			  "%.200s could not be opened within %d s", item->path,
			  (int)(VOLUMES_PATIENCE / NSEC_PER_SEC));
	volumes_fail(v, &err);
}

static void volumes_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)volumes_end_wait(data);
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_fail(call, &err);
}

static size_t volumes_count(const struct workload_spec *spec)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_containers; i++) {
		for (size_t k = 0; k < spec->containers[i].n_mounts; k++)
			n += spec->containers[i].mounts[k].source != NULL;
		n += spec->containers[i].log_dir != NULL;
	}
	return n;
}

static int volumes_copy_mount(struct volumes_item *item, const struct pod_mount_spec *m)
{
	(void)str_copy(item->field, sizeof(item->field), m->field);
	item->mount = *m; /* but for what it points to */
	item->path = strdup(m->source);
	return item->path ? 0 : -ENOMEM;
}

static int volumes_copy_log(struct volumes_item *item, const struct pod_container_spec *c)
{
	(void)str_copy(item->field, sizeof(item->field), c->log_field);
	item->path = strdup(c->log_dir);
	item->log_name = strdup(c->log_name);
	return item->path && item->log_name ? 0 : -ENOMEM;
}

/* The mounts of a container, behind them its log. */
static int volumes_copy(struct volumes_call *v, const struct workload_spec *spec, size_t n)
{
	int r = 0;

	v->items = calloc(n, sizeof(*v->items));
	v->fds = calloc(n, sizeof(*v->fds));
	if (!v->items || !v->fds)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v->fds[i] = -1;
	for (size_t i = 0; i < spec->n_containers && r == 0; i++) {
		const struct pod_container_spec *c = &spec->containers[i];

		for (size_t k = 0; k < c->n_mounts && r == 0; k++)
			if (c->mounts[k].source)
				r = volumes_copy_mount(&v->items[v->n++], &c->mounts[k]);
		if (r == 0 && c->log_dir)
			r = volumes_copy_log(&v->items[v->n++], c);
	}
	return r;
}

static int volumes_start(struct volumes_calls *all, const struct workload_spec *spec,
			 const struct volumes_call *what, struct volumes_call **ret,
			 struct error *err)
{
	size_t n = volumes_count(spec);
	struct volumes_call *v;

	if (n == 0)
		return 1;
	if (all->n >= VOLUMES_CALLS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%d calls wait for their volumes already, the limit",
				    VOLUMES_CALLS_MAX);
	v = calloc(1, sizeof(*v));
	if (!v)
		return error_set(err, -ENOMEM, "open volumes");
	v->all = all;
	v->guard = all->guard;
	v->go_on = what->go_on;
	v->fail = what->fail;
	v->userdata = what->userdata;
	v->work = (struct pool_work){ .run = volumes_run, .done = volumes_done };
	list_init(&v->member);
	list_add_tail(&all->list, &v->member);
	all->n++;
	loop_timer_init(&v->timer, all->loop, volumes_on_timer);
	if (volumes_copy(v, spec, n) < 0) {
		volumes_free(v);
		return error_set(err, -ENOMEM, "open volumes");
	}
	v->waits = true;
	loop_timer_set(&v->timer, VOLUMES_PATIENCE);
	pool_submit(all->pool, &v->work);
	*ret = v;
	return 0;
}

int volumes_call_start(struct volumes_calls *all, struct rpc_call *call,
		       const struct workload_spec *spec,
		       void (*go_on)(void *userdata, const struct volumes *opened), void *userdata,
		       struct error *err)
{
	const struct volumes_call what = { .go_on = go_on, .userdata = userdata };
	struct volumes_call *v;
	int r = volumes_start(all, spec, &what, &v, err);

	if (r == 0) {
		v->call = call;
		rpc_call_on_cancel(call, volumes_on_cancel, v);
	}
	return r;
}

int volumes_open_start(struct volumes_calls *all, const struct workload_spec *spec,
		       void (*go_on)(void *userdata, const struct volumes *opened),
		       void (*fail)(void *userdata, const struct error *err), void *userdata,
		       struct error *err)
{
	const struct volumes_call what = { .go_on = go_on, .fail = fail, .userdata = userdata };
	struct volumes_call *v;

	return volumes_start(all, spec, &what, &v, err);
}

int volumes_calls_init(struct volumes_calls *all, struct loop *l, const struct volume_guard *guard)
{
	*all = (struct volumes_calls){ .loop = l, .guard = *guard };
	list_init(&all->list);
	return pool_new(&all->pool, l, VOLUMES_THREADS);
}

void volumes_calls_done(struct volumes_calls *all)
{
	struct volumes_call *v;

	if (!all->pool)
		return;
	all->pool = pool_leave(all->pool);
	/* A thread that is not back has its own for as long as this process lives. */
	list_for_each (v, &all->list, struct volumes_call, member) {
		loop_timer_done(&v->timer);
		if (!v->work.busy)
			volumes_free(v);
	}
}

void volumes_call_take(struct workload_spec *spec, const struct volumes *opened)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_containers; i++) {
		struct pod_container_spec *c =
			(struct pod_container_spec *)(uintptr_t)&spec->containers[i];
		struct pod_mount_spec *mounts = (struct pod_mount_spec *)(uintptr_t)c->mounts;

		for (size_t k = 0; k < c->n_mounts; k++)
			if (mounts[k].source)
				mounts[k].fd = opened->fds[n++];
		c->has_log = c->log_dir != NULL;
		if (c->has_log)
			c->log_fd = opened->fds[n++];
	}
	assert(n == opened->n);
}
