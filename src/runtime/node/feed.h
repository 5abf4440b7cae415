/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_FEED_H
#define NACRE_RUNTIME_FEED_H

#include <stdint.h>

#include "pod/workload/events.h"
#include "rpc/server/server.h"

/*
 * A stream to a client that is fed from the row of events: a place in the row, moved on as far as
 * the client takes what is sent. A client that falls behind by more than EVENTS_KEPT events gets
 * RESOURCE_EXHAUSTED. A feed frees itself when its call ends.
 */

struct feed;

struct feed_ops {
	/* Sends the messages that come before the events, as long as the call is writable: 1 when
	 * all of them are sent, 0 to go on later. May be NULL. */
	int (*begin)(struct feed *f, struct error *err);
	/* Sends the messages that this client gets for the event, perhaps none. */
	int (*event)(struct feed *f, const struct event *e, struct error *err);
	void (*free)(struct feed *f);
};

/* The first member of what its user allocates. */
struct feed {
	struct event_listener listener;
	struct events *events;
	struct rpc_call *call;
	const struct feed_ops *ops;
	uint64_t next; /* the event to be looked at next */
	bool begun;
};

/* f is zeroed, with its call, events, ops and next set; it may end at once. */
void feed_start(struct feed *f);

#endif
