/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_EVENTS_H
#define NACRE_POD_EVENTS_H

#include <stdint.h>

#include "base/list.h"

/*
 * Changes of state, told to whoever listens, in order. Nothing is kept: a listener sees what comes
 * after it was added.
 */

struct event {
	uint64_t sequence;  /* from 1 in the life of this daemon */
	uint64_t time;      /* wall clock, nanoseconds */
	const char *object; /* "workload", "container", "instance", "image" */
	const char *id;
	const char *name; /* path; of a container the path of its workload, '/' and its name */
	const char *kind;
	const char *state;
	const char *reason;
	int exit_code;
};

struct events {
	struct list listeners;
	uint64_t sequence;
};

struct event_listener {
	struct list link;
	void (*fn)(struct event_listener *l, const struct event *e);
};

void events_init(struct events *all);
void events_add(struct events *all, struct event_listener *l);
/* May be called from fn, and twice. */
void events_remove(struct event_listener *l);
/* Fills in sequence and time. */
void events_publish(struct events *all, struct event *e);

#endif
