/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/volumes_call.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "image/profile.h"
#include "loop/pool.h"
#include "pod/make.h"
#include "rpc/server.h"

struct volumes_item {
	char *path;
	/* It is a seccomp profile, at `path` or, where that is NULL, this text. */
	bool is_profile;
	void *text;
	size_t len;
	uint64_t caps;  /* of its container */
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
	struct rpc_call *call; /* NULL: nobody waits any more */
	void (*go_on)(void *userdata, const struct volumes *opened);
	void *userdata;
	struct volumes_item *items;
	int *fds;
	struct container_filter *filters;
	size_t n;
	atomic_size_t at; /* the item that the thread has in hand, or whose filter is made */
	struct profile_job *job;
	profile_fn made; /* profile_done() */
	struct error err;
};

/* A copy in memory, which can be read without waiting. */
static int profile_seal(const void *data, size_t len, const char *field, struct error *err)
{
	_cleanup_fd_ int fd = memfd_create("profile", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_full(fd, data, len);

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "%s", field) : TAKE_FD(fd);
}

static int profile_open(const char *path, const char *field, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	/* No FIFO and no device is waited for. */
	fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0)
		return error_field(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_PRECONDITION,
				   field, "%.200s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_field(err, ERROR_PRECONDITION, field, "%.200s is no regular file",
				   path);
	r = fd_read_all(fd, VOLUMES_PROFILE_MAX, &b);
	if (r == -EFBIG || r == -E2BIG || r == -ENOBUFS)
		return error_field(err, ERROR_INVALID, field,
				   "%.200s is larger than the limit of %zu bytes", path,
				   VOLUMES_PROFILE_MAX);
	if (r < 0)
		return error_field(err, ERROR_PRECONDITION, field, "read %.200s: %s", path,
				   strerror(-r));
	return profile_seal(buf_data(&b), b.len, field, err);
}

static int volumes_open(const struct volumes_call *v, const struct volumes_item *item,
			struct error *err)
{
	struct pod_mount_spec m = item->mount;

	if (item->is_profile)
		return item->path ? profile_open(item->path, item->field, err)
				  : profile_seal(item->text, item->len, item->field, err);
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
	v->job = profile_job_free(v->job);
	for (size_t i = 0; i < v->n; i++) {
		(void)fd_close(v->fds ? v->fds[i] : -1);
		if (v->items) {
			free(v->items[i].path);
			free(v->items[i].log_name);
			free(v->items[i].text);
		}
	}
	for (size_t i = 0; v->filters && i < v->n; i++)
		free((void *)(uintptr_t)v->filters[i].insns);
	free(v->filters);
	free(v->fds);
	free(v->items);
	free(v);
}

/* The call, which waits no more. */
static struct rpc_call *volumes_take_call(struct volumes_call *v)
{
	struct rpc_call *call = TAKE_PTR(v->call);

	loop_timer_stop(&v->timer);
	if (call)
		rpc_call_on_cancel(call, NULL, NULL);
	return call;
}

static void volumes_finish(struct volumes_call *v)
{
	const struct volumes opened = { v->fds, v->filters, v->n };
	struct rpc_call *call = volumes_take_call(v);

	if (call && v->err.code)
		rpc_call_fail(call, &v->err);
	else if (call)
		v->go_on(v->userdata, &opened);
	volumes_free(v);
}

/* ---- profiles ---- */

/* What is wrong is wrong with the field. */
static void profile_blame(struct volumes_call *v, const struct error *err)
{
	const struct volumes_item *item = &v->items[atomic_load(&v->at)];

	(void)error_field(&v->err, err->kind, item->field, "%.300s", error_text(err));
}

/* 1: a filter is being made; 0: there are no more, or v->err says why not. */
static int profile_next(struct volumes_call *v)
{
	size_t at = atomic_load(&v->at);
	struct error err = ERROR_INIT;

	while (at < v->n && !v->items[at].is_profile)
		at++;
	if (at == v->n)
		return 0;
	atomic_store(&v->at, at);
	if (profile_job_start(&v->job, v->all->images, v->fds[at], v->items[at].caps, v->made, v,
			      &err) == 0)
		return 1;
	profile_blame(v, &err);
	return 0;
}

static void profile_done(void *userdata, const void *insns, size_t len, unsigned flags,
			 const struct error *err)
{
	struct volumes_call *v = userdata;
	size_t at = atomic_load(&v->at);

	v->job = NULL;
	if (err) {
		profile_blame(v, err);
	} else {
		void *copy = malloc(len);

		if (copy) {
			memcpy(copy, insns, len);
			v->filters[at] = (struct container_filter){ copy, len, flags };
		} else {
			(void)error_set(&v->err, -ENOMEM, "keep a filter");
		}
		atomic_store(&v->at, at + 1);
	}
	if (v->err.code || profile_next(v) == 0)
		volumes_finish(v);
}

static void volumes_done(struct pool_work *work)
{
	struct volumes_call *v = container_of(work, struct volumes_call, work);

	v->made = profile_done;
	atomic_store(&v->at, 0);
	if (!v->call || v->err.code || profile_next(v) == 0)
		volumes_finish(v);
}

/* Nobody waits any more. A thread that works still ends it when it is back. */
static void volumes_give_up(struct volumes_call *v)
{
	if (v->job)
		volumes_free(v);
}

static void volumes_on_timer(struct loop_timer *t)
{
	struct volumes_call *v = container_of(t, struct volumes_call, timer);
	const struct volumes_item *item = &v->items[atomic_load(&v->at)];
	struct rpc_call *call = volumes_take_call(v);
	struct error err = ERROR_INIT;

	(void)error_field(&err, ERROR_UNAVAILABLE, item->field,
			  "%.200s could not be %s within %d s", item->path ? item->path : "it",
			  v->job ? "turned into a filter" : "opened",
			  (int)(VOLUMES_PATIENCE / NSEC_PER_SEC));
	rpc_call_fail(call, &err);
	volumes_give_up(v);
}

static void volumes_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)volumes_take_call(data);
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_fail(call, &err);
	volumes_give_up(data);
}

static size_t volumes_count(const struct workload_spec *spec)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_containers; i++) {
		for (size_t k = 0; k < spec->containers[i].n_mounts; k++)
			n += spec->containers[i].mounts[k].source != NULL;
		n += spec->containers[i].log_dir != NULL;
		n += spec->containers[i].profile_field != NULL;
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

static int volumes_copy_profile(struct volumes_item *item, const struct pod_container_spec *c)
{
	(void)str_copy(item->field, sizeof(item->field), c->profile_field);
	item->is_profile = true;
	item->caps = c->security.has_caps ? c->security.caps : isolate_caps_default;
	if (c->profile_path) {
		item->path = strdup(c->profile_path);
		return item->path ? 0 : -ENOMEM;
	}
	item->len = c->profile_len;
	item->text = malloc(c->profile_len + 1);
	if (!item->text)
		return -ENOMEM;
	memcpy(item->text, c->profile, c->profile_len);
	return 0;
}

/* The mounts of a container, behind them its log and its profile. */
static int volumes_copy(struct volumes_call *v, const struct workload_spec *spec, size_t n)
{
	int r = 0;

	v->items = calloc(n, sizeof(*v->items));
	v->fds = calloc(n, sizeof(*v->fds));
	v->filters = calloc(n, sizeof(*v->filters));
	if (!v->items || !v->fds || !v->filters)
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
		if (r == 0 && c->profile_field)
			r = volumes_copy_profile(&v->items[v->n++], c);
	}
	return r;
}

int volumes_call_start(struct volumes_calls *all, struct rpc_call *call,
		       const struct workload_spec *spec,
		       void (*go_on)(void *userdata, const struct volumes *opened), void *userdata,
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
	v->go_on = go_on;
	v->userdata = userdata;
	v->work = (struct pool_work){ .run = volumes_run, .done = volumes_done };
	list_init(&v->member);
	list_add_tail(&all->list, &v->member);
	all->n++;
	loop_timer_init(&v->timer, all->loop, volumes_on_timer);
	if (volumes_copy(v, spec, n) < 0) {
		volumes_free(v);
		return error_set(err, -ENOMEM, "open volumes");
	}
	v->call = call;
	rpc_call_on_cancel(call, volumes_on_cancel, v);
	loop_timer_set(&v->timer, VOLUMES_PATIENCE);
	pool_submit(all->pool, &v->work);
	return 0;
}

int volumes_calls_init(struct volumes_calls *all, struct loop *l, struct image_store *images,
		       const struct volume_guard *guard)
{
	*all = (struct volumes_calls){ .loop = l, .images = images, .guard = *guard };
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
		v->job = profile_job_free(v->job);
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
		c->security.own_filter = c->profile_field != NULL;
		if (c->profile_field)
			c->filter = opened->filters[n++];
	}
	assert(n == opened->n);
}
