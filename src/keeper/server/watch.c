/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/arena.h"
#include "keeper/message/convert.h"
#include "rpc/server/server.h"

struct watcher {
	struct list link;
	struct watchers *all;
	struct rpc_call *call;
	struct list queue;
	size_t n_queued;
	bool taken_up; /* the snapshot is sent: the queue is bounded from here on */
};

struct watch_change {
	struct list link;
	size_t len;
	uint8_t data[];
};

void watchers_init(struct watchers *w)
{
	*w = (struct watchers){ .n = 0 };
	list_init(&w->list);
}

/* Takes the watcher out; its call is still to be ended, and its memory goes with that. */
static struct rpc_call *watcher_detach(struct watcher *w)
{
	struct watch_change *change;

	list_for_each (change, &w->queue, struct watch_change, link) {
		list_remove(&change->link);
		free(change);
	}
	list_remove(&w->link);
	w->all->n--;
	rpc_call_on_cancel(w->call, NULL, NULL);
	rpc_call_on_writable(w->call, NULL, NULL);
	return w->call;
}

static void watcher_fail(struct watcher *w, const struct error *err)
{
	rpc_call_fail(watcher_detach(w), err);
}

static void watcher_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_CANCELLED, "nobody watches any more");
	watcher_fail(data, &err);
}

static void watcher_on_writable(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;
	struct watcher *w = data;
	int r = 0;

	while (r == 0 && !list_empty(&w->queue) && rpc_call_writable(call)) {
		struct watch_change *change = list_entry(w->queue.next, struct watch_change, link);

		list_remove(&change->link);
		w->n_queued--;
		r = rpc_call_send_bytes(call, change->data, change->len);
		free(change);
	}
	if (r < 0) {
		(void)error_set(&err, r, "tell a change");
		watcher_fail(w, &err);
		return;
	}
	if (!list_empty(&w->queue))
		rpc_call_on_writable(call, watcher_on_writable, w);
}

struct watcher *watchers_add(struct watchers *all, struct rpc_call *call)
{
	struct error err = ERROR_INIT;
	struct watcher *w;

	if (all->n == WATCHERS_MAX) {
		(void)error_refuse(&err, ERROR_EXHAUSTED, "%d watch this keeper already",
				   WATCHERS_MAX);
		rpc_call_fail(call, &err);
		return NULL;
	}
	w = arena_zalloc(rpc_call_arena(call), 1, sizeof(*w));
	if (!w) {
		(void)error_set(&err, -ENOMEM, "take a watcher in");
		rpc_call_fail(call, &err);
		return NULL;
	}
	w->all = all;
	w->call = call;
	list_init(&w->link);
	list_init(&w->queue);
	list_add_tail(&all->list, &w->link);
	all->n++;
	rpc_call_on_cancel(call, watcher_on_cancel, w);
	return w;
}

static int watcher_queue(struct watcher *w, const Nacre__Instance__V1__WatchResponse *message,
			 struct error *err)
{
	size_t len = nacre__instance__v1__watch_response__get_packed_size(message);
	struct watch_change *change;

	if (w->n_queued == WATCH_QUEUE_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "watch: %d changes wait and nobody takes them",
				    WATCH_QUEUE_MAX);
	change = malloc(sizeof(*change) + len);
	if (!change)
		return error_set(err, -ENOMEM, "keep a change for a watcher");
	list_init(&change->link);
	change->len = nacre__instance__v1__watch_response__pack(message, change->data);
	list_add_tail(&w->queue, &change->link);
	w->n_queued++;
	return 0;
}

void watcher_tell(struct watcher *w, const Nacre__Instance__V1__WatchResponse *change)
{
	struct error err = ERROR_INIT;
	int r;

	/* A snapshot is as long as what the keeper holds, which has limits of its own. */
	if (!w->taken_up || (list_empty(&w->queue) && rpc_call_writable(w->call))) {
		w->taken_up = w->taken_up || change->synced;
		r = rpc_call_send(w->call, &change->base);
		if (r < 0)
			(void)error_set(&err, r, "tell a change");
	} else {
		rpc_call_on_writable(w->call, watcher_on_writable, w);
		r = watcher_queue(w, change, &err);
	}
	if (r < 0)
		watcher_fail(w, &err);
}

void watchers_tell(struct watchers *all, const Nacre__Instance__V1__WatchResponse *change)
{
	struct watcher *w;

	list_for_each (w, &all->list, struct watcher, link)
		watcher_tell(w, change);
}

/* ---- containers ---- */

struct watch_status {
	Nacre__Instance__V1__WatchResponse change;
	Nacre__Instance__V1__ContainerStatus status;
	Nacre__Instance__V1__ContainerUser user;
	struct process_identity identity;
};

static void watch_convert(const struct watchers *all, struct watch_status *to,
			  const struct container_view *view)
{
	nacre__instance__v1__watch_response__init(&to->change);
	convert_status(&to->status, view);
	to->change.container = &to->status;
	if (!all->with_users || view->status.state != CONTAINER_RUNNING ||
	    process_identity_of_child((pid_t)view->status.pid, &to->identity) < 0)
		return;
	convert_user(&to->user, &to->identity);
	to->status.user = &to->user;
}

void watcher_tell_container(struct watcher *w, const struct container_view *view)
{
	struct watch_status told;

	watch_convert(w->all, &told, view);
	watcher_tell(w, &told.change);
}

void watchers_tell_container(struct watchers *all, const struct container_view *view)
{
	struct watch_status told;

	watch_convert(all, &told, view);
	watchers_tell(all, &told.change);
}

void watchers_finish(struct watchers *all)
{
	struct watcher *w;

	list_for_each (w, &all->list, struct watcher, link) {
		watcher_on_writable(w->call, w);
		if (list_empty(&w->link))
			continue;
		rpc_call_finish(watcher_detach(w));
	}
}
