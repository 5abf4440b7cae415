/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_WATCH_H
#define NACRE_KEEPER_WATCH_H

#include <stdbool.h>

#include "api/instance.pb-c.h"
#include "base/memory/list.h"

/*
 * Those who called Watch. What a watcher does not take at once waits here, in order, up to
 * WATCH_QUEUE_MAX changes; one that is slower than that is ended with RESOURCE_EXHAUSTED and has to
 * watch anew.
 */

#define WATCH_QUEUE_MAX 256
#define WATCHERS_MAX 16

struct container_view;
struct rpc_call;
struct watcher;

struct watchers {
	struct list list;
	size_t n;
	bool with_users; /* who watches cannot see for itself whom a container runs as */
};

void watchers_init(struct watchers *w);
/* A watcher that gets everything from now on, or NULL where the call was ended with an error. The
 * snapshot is sent by watcher_tell() before anything else happens. */
struct watcher *watchers_add(struct watchers *all, struct rpc_call *call);
void watcher_tell(struct watcher *w, const Nacre__Instance__V1__WatchResponse *change);
void watchers_tell(struct watchers *all, const Nacre__Instance__V1__WatchResponse *change);
/* The state of a container, to one or to all. */
void watcher_tell_container(struct watcher *w, const struct container_view *view);
void watchers_tell_container(struct watchers *all, const struct container_view *view);
/* Ends every stream with OK. */
void watchers_finish(struct watchers *all);

#endif
