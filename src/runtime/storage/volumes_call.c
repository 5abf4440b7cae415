/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/volumes_call.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "image/helper/profile.h"
#include "image/image.h"
#include "isolate/mount/bind.h"
#include "isolate/user/user.h"
#include "loop/pool.h"
#include "pod/storage/volumes.h"
#include "pod/workload/make.h"
#include "rpc/server/server.h"
#include "runtime/start/identity_mount.h"
#include "runtime/storage/profile_file.h"
#include "runtime/storage/secret_item.h"
#include "volumes/fill.h"
#include "volumes/secrets.h"
#include "volumes/volumes.h"

/*
 * Theory of operation. A call first has the volumes made that are missing, and waits until they are
 * recorded. Then it waits until none of its volumes is being filled by another call. Then a thread
 * opens everything in order, and fills those that are empty and that nobody has: what the image has
 * is copied beside the volume's directory, and takes its place (volumes/fill.h). Then seccomp
 * profiles become filters, one after the other (image/helper/profile.h).
 */

struct volumes_item {
	char *path;
	/* It is a seccomp profile, at `path` or, where that is NULL, this text. */
	bool is_profile;
	void *text;
	size_t len;
	uint64_t caps;  /* of its container */
	char *log_name; /* it is the log of a container, below `path`; NULL: it is a mount */
	char field[ERROR_FIELD_MAX];
	struct pod_mount_spec mount; /* what it points to is among the following */
	char *target, *sub_path;
	/* Of the container: what its image has, as one tree; -1: nobody asks. And who it is. */
	size_t container;
	char *user;
	/* Of a mount of secrets; or the variable that gets one, `secret`, which stands in text
	 * then: "NAME=VALUE". Both its own. */
	struct secret_file *secrets;
	char *secret, *variable;
	/* Of the node. */
	struct volumes_call *call;
	struct volume *volume; /* NULL: it is none, or has not been found yet */
	struct volume_waiter made;
	bool awaits, opened, fills, own; /* own: an anonymous one that was made for this call */
	char volume_id[ID_SIZE];
};

struct volumes_view {
	struct image *image; /* held; NULL: it is not looked into */
	int fd;
};

struct volumes_call {
	struct pool_work work;
	struct loop_timer timer;
	struct list member;
	struct volumes_calls *all;
	struct volume_guard guard;
	int dir_fd; /* of all volumes of the node */
	int secrets_fd, sets_fd;
	bool waits;            /* somebody waits for it: */
	struct rpc_call *call; /* NULL: no call, but who is told by `fail` */
	void (*go_on)(void *userdata, const struct volumes_opened *opened);
	void (*fail)(void *userdata, const struct error *err);
	void *userdata;
	struct volumes_item *items;
	const char **ids;
	int *fds;
	struct container_filter *filters;
	char **texts;
	size_t n;
	struct volumes_view *views; /* one for each container */
	size_t n_views;
	bool begun;       /* a thread has it, or has had it */
	atomic_size_t at; /* the item that the thread has in hand, or whose filter is made */
	atomic_bool busy; /* with something that may take as long as it likes */
	struct profile_job *job;
	profile_fn made; /* profile_done() */
	struct error err;
};

/* ---- on the thread ---- */

static int volumes_fill(struct volumes_call *v, const struct volumes_item *item, struct error *err)
{
	int r;

	atomic_store(&v->busy, true);
	r = fill_copy(v->dir_fd, item->volume_id, v->views[item->container].fd, item->target, err);
	atomic_store(&v->busy, false);
	return r < 0 ? error_wrap(err, r, "fill it with what the image has at %.200s", item->target)
		     : 0;
}

static int volumes_bind(const struct volumes_item *item, int fd, struct error *err)
{
	unsigned flags = (item->mount.read_only ? ISOLATE_BIND_READ_ONLY : 0) |
			 (item->mount.no_exec ? ISOLATE_BIND_NO_EXEC : 0);

	return isolate_bind(fd, flags, err);
}

/* A volume of the node, as a detached mount. */
static int volumes_open_named(struct volumes_call *v, const struct volumes_item *item,
			      struct error *err)
{
	_cleanup_fd_ int data_fd = -1, below_fd = -1;
	int r = item->fills ? volumes_fill(v, item, err) : 0;

	if (r < 0)
		return r;
	data_fd = fill_open(v->dir_fd, item->volume_id, err);
	if (data_fd < 0 || !item->sub_path)
		return data_fd < 0 ? data_fd : volumes_bind(item, data_fd, err);
	below_fd = fill_open_below(data_fd, item->sub_path, err);
	return below_fd < 0 ? below_fd : volumes_bind(item, below_fd, err);
}

/* Without the name of the secret's field, of which there are several. */
static int volumes_open_secrets(struct volumes_call *v, struct volumes_item *item,
				struct error *err)
{
	_cleanup_fd_ int fd = secret_set_make(v->secrets_fd, v->sets_fd, item->path, item->secrets,
					      item->mount.n_secrets, err);
	int r = fd < 0 ? fd : secret_item_path(fd, &item->text, &item->len, err);

	if (r == 0)
		r = volumes_bind(item, fd, err);
	return r < 0 ? error_wrap_field(err, r, item->field) : r;
}

static int volumes_open_mount(struct volumes_call *v, struct volumes_item *item, struct error *err)
{
	struct pod_mount_spec m = item->mount;
	int fd;

	if (m.n_secrets)
		return volumes_open_secrets(v, item, err);
	if (m.is_volume) {
		fd = volumes_open_named(v, item, err);
		if (fd < 0)
			(void)error_wrap(err, fd, "the volume %s", item->path);
		return fd < 0 ? error_wrap_field(err, fd, item->field) : fd;
	}
	fd = m.is_identity ? identity_mount_check(v->guard.identity_fd, item->field, err) : 0;
	if (m.is_identity)
		return fd < 0 ? fd : volumes_bind(item, v->guard.identity_fd, err);
	m.field = item->field;
	m.source = item->path;
	return m.follow ? volume_open_through(&v->guard, &m, err) : volume_open(&v->guard, &m, err);
}

static int volumes_chown(struct volumes_call *v, const struct volumes_item *item, int fd,
			 struct error *err)
{
	struct isolate_user user;
	int r;

	atomic_store(&v->busy, true);
	r = isolate_user_find(v->views[item->container].fd, item->user, &user, err);
	if (r == 0)
		r = fill_chown(fd, user.uid, user.gid, err);
	atomic_store(&v->busy, false);
	return r < 0 ? error_wrap_field(err, r, item->field) : 0;
}

static int volumes_open(struct volumes_call *v, struct volumes_item *item, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (item->variable)
		return secret_item_read(v->secrets_fd, item->secret, item->variable, item->field,
					&item->text, &item->len, err);
	if (item->is_profile)
		return item->path ? profile_file_open(item->path, item->field, err)
				  : profile_file_seal(item->text, item->len, item->field, err);
	if (item->log_name)
		return volume_open_log(item->field, item->path, item->log_name, err);
	fd = volumes_open_mount(v, item, err);
	if (fd < 0 || !item->mount.chown)
		return TAKE_FD(fd);
	r = volumes_chown(v, item, fd, err);
	return r < 0 ? r : TAKE_FD(fd);
}

static void volumes_run(struct pool_work *work)
{
	struct volumes_call *v = container_of(work, struct volumes_call, work);

	for (size_t i = 0; i < v->n && v->err.code == 0; i++) {
		atomic_store(&v->at, i);
		v->fds[i] = volumes_open(v, &v->items[i], &v->err);
	}
}

/* ---- its end ---- */

/* A volume that was made for a call that has come to nothing goes again. */
static void volumes_leave_one(struct volumes_calls *all, struct volumes_item *item)
{
	struct volume *volume = item->volume;

	list_remove(&item->made.link);
	if (item->mount.n_secrets && item->path &&
	    !workloads_with_volume(all->workloads, item->path, NULL))
		secret_set_drop(all->sets_fd, item->path);
	if (!volume)
		return;
	volume->n_held--;
	volume->n_opened -= item->opened;
	if (item->fills)
		volume->filling = false;
	volume->unwanted = volume->unwanted || item->own;
	if (volume->unwanted && volume->n_held == 0 &&
	    !workloads_with_volume(all->workloads, volume->id, NULL))
		(void)volume_remove(volume, NULL, NULL);
}

static void volumes_call_free(struct volumes_call *v)
{
	list_remove(&v->member);
	v->all->n--;
	loop_timer_done(&v->timer);
	v->job = profile_job_free(v->job);
	for (size_t i = 0; i < v->n; i++) {
		(void)fd_close(v->fds ? v->fds[i] : -1);
		if (!v->items)
			continue;
		volumes_leave_one(v->all, &v->items[i]);
		free(v->items[i].path);
		free(v->items[i].log_name);
		free(v->items[i].target);
		free(v->items[i].sub_path);
		free(v->items[i].user);
		free(v->items[i].secrets);
		free(v->items[i].secret);
		free(v->items[i].variable);
		if (v->items[i].text)
			explicit_bzero(v->items[i].text, v->items[i].len);
		free(v->items[i].text);
	}
	for (size_t i = 0; v->filters && i < v->n; i++)
		free((void *)(uintptr_t)v->filters[i].insns);
	free(v->filters);
	free(v->texts);
	for (size_t i = 0; v->views && i < v->n_views; i++) {
		(void)fd_close(v->views[i].fd);
		if (v->views[i].image)
			v->views[i].image->n_users--;
	}
	loop_defer_schedule(&v->all->again);
	free(v->views);
	free(v->ids);
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

static void volumes_tell(struct volumes_call *v, const struct error *err)
{
	if (v->call)
		rpc_call_fail(v->call, err);
	else
		v->fail(v->userdata, err);
}

static void volumes_fail(struct volumes_call *v, const struct error *err)
{
	if (volumes_end_wait(v))
		volumes_tell(v, err);
	volumes_call_free(v);
}

static void volumes_finish(struct volumes_call *v)
{
	const struct volumes_opened opened = { v->fds, v->ids, v->filters, v->texts, v->n };
	bool waited = volumes_end_wait(v);

	for (size_t i = 0; i < v->n; i++)
		v->texts[i] = v->items[i].is_profile ? NULL : v->items[i].text;
	if (waited && v->err.code)
		volumes_tell(v, &v->err);
	else if (waited)
		v->go_on(v->userdata, &opened);
	volumes_call_free(v);
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
	if (!v->waits || v->err.code || profile_next(v) == 0)
		volumes_finish(v);
}

/* Nobody waits any more. A thread that works still ends it when it is back. */
static void volumes_give_up(struct volumes_call *v)
{
	if (v->job || !v->begun)
		volumes_call_free(v);
}

static void volumes_on_timer(struct loop_timer *t)
{
	struct volumes_call *v = container_of(t, struct volumes_call, timer);
	const struct volumes_item *item = &v->items[atomic_load(&v->at)];
	struct error err = ERROR_INIT;

	if (atomic_load(&v->busy)) {
		loop_timer_set(&v->timer, VOLUMES_PATIENCE);
		return;
	}
	(void)volumes_end_wait(v);
	(void)error_field(&err, ERROR_UNAVAILABLE, item->field,
			  "%.200s could not be %s within %d s", item->path ? item->path : "it",
			  v->job ? "turned into a filter" : "opened",
			  (int)(VOLUMES_PATIENCE / NSEC_PER_SEC));
	volumes_tell(v, &err);
	volumes_give_up(v);
}

static void volumes_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;
	struct volumes_call *v = data;

	(void)volumes_end_wait(v);
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_fail(call, &err);
	volumes_give_up(v);
}

/* ---- its beginning ---- */

static bool volumes_are_filled(const struct volumes_call *v)
{
	for (size_t i = 0; i < v->n; i++) {
		if (v->items[i].awaits)
			return false;
		if (v->items[i].volume && v->items[i].volume->filling)
			return false;
	}
	return true;
}

/* The first who has an empty volume fills it. */
static void volumes_decide(struct volumes_call *v, struct volumes_item *item)
{
	struct volume *volume = item->volume;

	if (!volume)
		return;
	item->fills = volume->n_opened == 0 && !item->mount.no_copy && !item->sub_path &&
		      v->views[item->container].image &&
		      !workloads_with_volume(v->all->workloads, volume->id, NULL);
	item->opened = true;
	volume->n_opened++;
	volume->filling = volume->filling || item->fills;
	(void)str_copy(item->volume_id, sizeof(item->volume_id), volume->id);
}

static int volumes_look_into(struct volumes_call *v, const struct volumes_item *item,
			     struct error *err)
{
	struct volumes_view *view = &v->views[item->container];
	int r;

	if (view->fd >= 0 || !view->image || !(item->fills || item->mount.chown))
		return 0;
	r = image_view_open(v->all->images, view->image, NULL, err);
	if (r < 0)
		return error_wrap_field(err, r, item->field);
	view->fd = r;
	return 0;
}

/* Hands it to a thread, if nothing has to be waited for. */
static void volumes_go(struct volumes_call *v)
{
	struct error err = ERROR_INIT;
	int r = 0;

	if (v->begun || !volumes_are_filled(v))
		return;
	for (size_t i = 0; i < v->n && r == 0; i++) {
		volumes_decide(v, &v->items[i]);
		r = volumes_look_into(v, &v->items[i], &err);
		if (v->items[i].volume)
			v->ids[i] = v->items[i].volume_id;
		else if (v->items[i].mount.n_secrets)
			v->ids[i] = v->items[i].path;
	}
	if (r < 0) {
		volumes_fail(v, &err);
		return;
	}
	v->begun = true;
	loop_timer_set(&v->timer, VOLUMES_PATIENCE);
	pool_submit(v->all->pool, &v->work);
}

static void volumes_on_again(struct loop_defer *d)
{
	struct volumes_calls *all = container_of(d, struct volumes_calls, again);
	struct volumes_call *v;

	list_for_each (v, &all->list, struct volumes_call, member)
		volumes_go(v);
}

static void volumes_on_made(struct volume_waiter *waiter, struct volume *volume,
			    const struct error *err)
{
	struct volumes_item *item = container_of(waiter, struct volumes_item, made);
	struct volumes_call *v = item->call;
	struct error own = ERROR_INIT;
	const struct volume *gone;

	item->awaits = false;
	if (!err && volume) {
		loop_defer_schedule(&v->all->again);
		return;
	}
	/* It is gone, for all mounts of it. */
	gone = item->volume;
	for (size_t i = 0; i < v->n; i++)
		if (v->items[i].volume == gone)
			v->items[i].volume = NULL;
	(void)error_copy(&own, err);
	(void)error_wrap_field(&own, own.code, item->field);
	volumes_fail(v, &own);
}

/* The volume of a mount, made where it is missing. */
static int volumes_find_one(struct volumes_call *v, struct volumes_item *item, struct error *err)
{
	struct volumes *all = v->all->volumes;
	const struct volume_spec spec = {
		.name = item->mount.anonymous ? NULL : item->path,
		.id = item->mount.anonymous ? item->path : NULL,
		.anonymous = item->mount.anonymous,
	};
	struct volume *volume = volumes_find(all, item->path);
	int r;

	item->call = v;
	item->made.done = volumes_on_made;
	if (!volume && volumes_has_name(all, item->path))
		return error_field(err, ERROR_UNAVAILABLE, item->field,
				   "the volume %.128s is being removed; try again", item->path);
	if (!volume) {
		r = volumes_create(all, &spec, &item->made, &volume, err);
		if (r < 0)
			return error_wrap_field(err, r, item->field);
		item->awaits = true;
		item->own = item->mount.anonymous;
	} else if (volume->state == VOLUME_MAKING) {
		volume_await(volume, &item->made);
		item->awaits = true;
	}
	item->volume = volume;
	volume->n_held++;
	return 0;
}

static size_t volumes_count_items(const struct workload_spec *spec)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_containers; i++) {
		for (size_t k = 0; k < spec->containers[i].n_mounts; k++)
			n += spec->containers[i].mounts[k].source != NULL;
		n += spec->containers[i].log_dir != NULL;
		n += spec->containers[i].profile_field != NULL;
		n += spec->containers[i].n_secret_env;
	}
	return n;
}

static int volumes_copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static int volumes_copy_mount(struct volumes_item *item, const struct pod_mount_spec *m)
{
	(void)str_copy(item->field, sizeof(item->field), m->field);
	item->mount = *m; /* but for what it points to */
	if (volumes_copy_text(&item->path, m->source) < 0 ||
	    volumes_copy_text(&item->target, m->mount.target) < 0 ||
	    volumes_copy_text(&item->sub_path, m->sub_path) < 0)
		return -ENOMEM;
	return m->n_secrets ? secret_item_copy(m, &item->secrets) : 0;
}

static int volumes_copy_variable(struct volumes_item *item, const struct pod_secret_env *e)
{
	(void)str_copy(item->field, sizeof(item->field), e->field);
	item->secret = strdup(e->secret);
	item->variable = strdup(e->variable);
	return item->secret && item->variable ? 0 : -ENOMEM;
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

/* What is needed of its image: only where something is to be filled, or given to its user. */
static int volumes_copy_container(struct volumes_call *v, struct volumes_item *item,
				  const struct pod_container_spec *c, size_t container)
{
	struct volumes_view *view = &v->views[container];
	const char *user;

	item->container = container;
	if (!item->mount.chown && (!item->mount.is_volume || item->mount.no_copy))
		return 0;
	if (!view->image) {
		view->image = image_store_find(v->all->images, c->image, NULL);
		if (!view->image)
			return -ENOENT;
		view->image->n_users++;
	}
	user = str_empty(c->user) ? view->image->config.user : c->user;
	return volumes_copy_text(&item->user, user ? user : "");
}

static int volumes_alloc(struct volumes_call *v, const struct workload_spec *spec, size_t n)
{
	v->items = calloc(n, sizeof(*v->items));
	v->fds = calloc(n, sizeof(*v->fds));
	v->ids = (const char **)calloc(n, sizeof(*v->ids));
	v->filters = calloc(n, sizeof(*v->filters));
	v->texts = calloc(n, sizeof(*v->texts));
	v->views = calloc(spec->n_containers, sizeof(*v->views));
	if (!v->items || !v->fds || !v->ids || !v->filters || !v->texts || !v->views)
		return -ENOMEM;
	v->n_views = spec->n_containers;
	for (size_t i = 0; i < v->n_views; i++)
		v->views[i].fd = -1;
	for (size_t i = 0; i < n; i++) {
		v->fds[i] = -1;
		list_init(&v->items[i].made.link);
	}
	return 0;
}

/* The mounts of a container, behind them its log, its profile and its secret variables. */
static int volumes_copy(struct volumes_call *v, const struct workload_spec *spec, size_t n)
{
	int r = volumes_alloc(v, spec, n);

	for (size_t i = 0; i < spec->n_containers && r == 0; i++) {
		const struct pod_container_spec *c = &spec->containers[i];

		for (size_t k = 0; k < c->n_mounts && r == 0; k++) {
			struct volumes_item *item = &v->items[v->n];

			if (!c->mounts[k].source)
				continue;
			v->n++;
			r = volumes_copy_mount(item, &c->mounts[k]);
			if (r == 0)
				r = volumes_copy_container(v, item, c, i);
		}
		if (r == 0 && c->log_dir)
			r = volumes_copy_log(&v->items[v->n++], c);
		if (r == 0 && c->profile_field)
			r = volumes_copy_profile(&v->items[v->n++], c);
		for (size_t k = 0; k < c->n_secret_env && r == 0; k++)
			r = volumes_copy_variable(&v->items[v->n++], &c->secret_env[k]);
	}
	return r;
}

static int volumes_find_all(struct volumes_call *v, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < v->n && r == 0; i++)
		if (v->items[i].mount.is_volume)
			r = volumes_find_one(v, &v->items[i], err);
	return r;
}

static int volumes_start(struct volumes_calls *all, const struct workload_spec *spec,
			 const struct volumes_call *what, struct volumes_call **ret,
			 struct error *err)
{
	size_t n = volumes_count_items(spec);
	struct volumes_call *v;
	int r;

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
	v->dir_fd = all->volumes ? volumes_dir(all->volumes) : -1;
	v->secrets_fd = all->secrets_fd;
	v->sets_fd = all->sets_fd;
	v->go_on = what->go_on;
	v->fail = what->fail;
	v->userdata = what->userdata;
	v->work = (struct pool_work){ .run = volumes_run, .done = volumes_done };
	list_init(&v->member);
	list_add_tail(&all->list, &v->member);
	all->n++;
	loop_timer_init(&v->timer, all->loop, volumes_on_timer);
	r = volumes_copy(v, spec, n);
	if (r < 0)
		(void)error_set(err, r, "open volumes");
	else
		r = volumes_find_all(v, err);
	if (r < 0) {
		volumes_call_free(v);
		return r;
	}
	v->waits = true;
	*ret = v;
	return 0;
}

int volumes_call_start(struct volumes_calls *all, struct rpc_call *call,
		       const struct workload_spec *spec,
		       void (*go_on)(void *userdata, const struct volumes_opened *opened),
		       void *userdata, struct error *err)
{
	const struct volumes_call what = { .go_on = go_on, .userdata = userdata };
	struct volumes_call *v;
	int r = volumes_start(all, spec, &what, &v, err);

	if (r != 0)
		return r;
	v->call = call;
	rpc_call_on_cancel(call, volumes_on_cancel, v);
	volumes_go(v);
	return 0;
}

int volumes_open_start(struct volumes_calls *all, const struct workload_spec *spec,
		       void (*go_on)(void *userdata, const struct volumes_opened *opened),
		       void (*fail)(void *userdata, const struct error *err), void *userdata,
		       struct error *err)
{
	const struct volumes_call what = { .go_on = go_on, .fail = fail, .userdata = userdata };
	struct volumes_call *v;
	int r = volumes_start(all, spec, &what, &v, err);

	/* Nobody is told before this has returned. */
	if (r == 0)
		loop_defer_schedule(&all->again);
	return r;
}

int volumes_calls_init(struct volumes_calls *all, struct loop *l, const struct volume_guard *guard)
{
	*all = (struct volumes_calls){ .loop = l, .guard = *guard };
	list_init(&all->list);
	loop_defer_init(&all->again, l, volumes_on_again);
	return pool_new(&all->pool, l, VOLUMES_THREADS);
}

void volumes_calls_know(struct volumes_calls *all, struct volumes *volumes,
			struct image_store *images, struct workloads *workloads, int secrets_fd,
			int sets_fd)
{
	all->secrets_fd = secrets_fd;
	all->sets_fd = sets_fd;
	all->volumes = volumes;
	all->images = images;
	all->workloads = workloads;
}

void volumes_calls_done(struct volumes_calls *all)
{
	struct volumes_call *v;

	if (!all->pool)
		return;
	/* What comes back now starts nothing: starts_done() tells who waits. */
	list_for_each (v, &all->list, struct volumes_call, member)
		v->waits = false;
	all->pool = pool_leave(all->pool);
	/* A thread that is not back has its own for as long as this process lives. */
	list_for_each (v, &all->list, struct volumes_call, member) {
		loop_timer_done(&v->timer);
		v->job = profile_job_free(v->job);
		if (!v->work.busy)
			volumes_call_free(v);
	}
	loop_defer_done(&all->again);
}
