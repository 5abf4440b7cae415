/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_EVENTS_H
#define NACRE_POD_EVENTS_H

#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/text/id.h"

/*
 * Changes of state, in order. The last EVENTS_KEPT of them are kept in memory. A listener is told
 * of each, and reads it here whenever it has room for it: it has a place in the row and no queue of
 * its own, so a slow one costs nothing, and finds out by events_get() that it was too slow.
 */

#define EVENTS_KEPT 4096

struct event {
	uint64_t sequence;  /* from 1 in the life of this daemon */
	uint64_t time;      /* wall clock, nanoseconds */
	const char *object; /* "workload", "container", "instance", "image", "cloud" */
	const char *kind;   /* these three are words that live for ever */
	const char *state;  /* the new one, or "removed" */
	const char *id;
	const char *name;     /* path; of a container the path of its workload, '/' and its name */
	const char *workload; /* id of the workload that a container is of; else NULL */
	const char *reason;
	int exit_code;
};

struct events {
	struct list listeners;
	uint64_t sequence; /* of the last one */
	char life[ID_SIZE];
	struct event_kept *
		*kept; /* EVENTS_KEPT of them, by sequence; NULL: none, or no memory for it */
};

struct event_listener {
	struct list link;
	void (*fn)(struct event_listener *l, const struct event *e);
};

/* 0, -ENOMEM, or a negative errno where the kernel has no random bytes to give. */
int events_init(struct events *all);
void events_done(struct events *all);
void events_add(struct events *all, struct event_listener *l);
/* May be called from fn, and twice. */
void events_remove(struct event_listener *l);
/* Fills in sequence and time; copies the texts. */
void events_publish(struct events *all, struct event *e);

/* The event of that number, until the next one is published. NULL: it is not kept any more, or is
 * yet to come. */
const struct event *events_get(const struct events *all, uint64_t sequence);

/* A token that names a position in the row of events for clients: behind the event `sequence`, in
 * this life of the daemon. */
#define EVENTS_TOKEN_SIZE 40
void events_token(const struct events *all, uint64_t sequence, char ret[EVENTS_TOKEN_SIZE]);
/* *ret: the number of the event that comes next. ERROR_INVALID: that is no token. ERROR_RANGE: it
 * is of another daemon, or what comes next is not kept any more. Both name the field resume_token.
 */
int events_resume(const struct events *all, const char *token, uint64_t *ret, struct error *err);

#endif
