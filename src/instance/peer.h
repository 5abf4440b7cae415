/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_PEER_H
#define NACRE_INSTANCE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/keeper.h"
#include "cell/spec.h"

/*
 * A keeper as its parent sees it, whatever kind of wall and how many hops stand between: what floor
 * 5 asks, answered by src/keeper over gRPC. All calls are asynchronous; a completion never comes
 * before the call has returned, and comes exactly once, with err NULL for success, also when the
 * connection is lost (ERROR_UNAVAILABLE). peer->ops->free() ends what is open without calling back.
 */

struct peer;

typedef void (*peer_done_fn)(void *userdata, const struct error *err);
/* view NULL: err says why (it never came to the keeper). A program that could not be started is a
 * view in state CONTAINER_FAILED. */
typedef void (*peer_started_fn)(void *userdata, const struct container_view *view,
				const struct error *err);

/* What a peer tells on its own. */
struct peer_events {
	/* A container's state. Before on_synced: what was there before. */
	void (*on_container)(void *userdata, const struct container_view *view);
	/* A nested instance has ended without being told to. */
	void (*on_child_end)(void *userdata, const char *name, const char *reason);
	void (*on_synced)(void *userdata);
	/* The connection (or the watch) is lost; the last event. */
	void (*on_lost)(void *userdata, const struct error *err);
};

struct peer_ops {
	/* Before open(): the path to say in hello, for a keeper that was made before it had one. 0
	 * or -ENOMEM. */
	int (*name)(struct peer *p, const char *path);
	/* Says hello, then watches. done: hello was answered (pid as the keeper sees itself). */
	void (*open)(struct peer *p, const struct peer_events *events, void *userdata,
		     peer_done_fn done);
	/* Descriptors are taken over; tokens in spec are ignored and drawn here. */
	void (*start)(struct peer *p, const struct cell_spec *cell,
		      const struct container_spec *spec, struct container_fds *fds,
		      peer_started_fn done, void *userdata);
	void (*signal)(struct peer *p, const char *id, int sig, bool all, peer_done_fn done,
		       void *userdata);
	void (*remove)(struct peer *p, const char *id, peer_done_fn done, void *userdata);
	void (*remove_cell)(struct peer *p, const char *cell, peer_done_fn done, void *userdata);
	/* A nested instance below this one: done when it answers; then a peer for it works. */
	void (*spawn)(struct peer *p, const char *name, bool host_network,
		      void (*done)(void *userdata, int64_t pid, const struct error *err),
		      void *userdata);
	void (*end)(struct peer *p, const char *name, peer_done_fn done, void *userdata);
	void (*shutdown)(struct peer *p, peer_done_fn done, void *userdata);
	/* A peer for the instance `name` below this one, over the same connection. */
	int (*child)(struct peer *p, const char *name, struct peer **ret);
	struct peer *(*free)(struct peer *p);
};

struct peer {
	const struct peer_ops *ops;
};

#endif
