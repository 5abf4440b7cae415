/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_INVENTORY_H
#define NACRE_BASE_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/arena.h"
#include "base/memory/list.h"
#include "base/memory/map.h"

/*
 * Compares what is there with what there should be: who keeps records names what may and what must
 * be there, who looks names what is. Things have a kind ("cgroup") and a name within it; a name can
 * be a path, and then belongs to what is above it. A value; all strings are copied.
 *
 * Without memory, or past INVENTORY_ITEMS_MAX, it keeps nothing more and says so in `incomplete`.
 */

#define INVENTORY_ITEMS_MAX 200000

struct inventory {
	struct arena arena;
	struct map items;
	struct list list;   /* in the order in which they were named first */
	struct list faults; /* inventory_fault() */
	size_t n;
	bool incomplete;
};

void inventory_init(struct inventory *t);
void inventory_done(struct inventory *t);

/* A record allows the thing. */
void inventory_may(struct inventory *t, const char *kind, const char *thing);
/* And whatever is below it. */
void inventory_may_below(struct inventory *t, const char *kind, const char *thing);
/* A record (its id and name) cannot be whole without the thing. */
void inventory_must(struct inventory *t, const char *kind, const char *thing, const char *id,
		    const char *name);
/* Whether a record has named the thing. */
bool inventory_allows(const struct inventory *t, const char *kind, const char *thing);
/* It is there. */
void inventory_seen(struct inventory *t, const char *kind, const char *thing);
/* Something else that is wrong. */
void inventory_fault(struct inventory *t, const char *kind, const char *id, const char *name,
		     const char *what);

struct inventory_finding {
	const char *kind;
	const char *id;   /* of the record, or "" */
	const char *name; /* of the record, or of what has none */
	const char *what; /* a sentence */
};

/*
 * The findings: entries that are there and may not be (only the topmost, where paths are below each
 * other), entries that must be there and are not, and the faults, each once. The strings live as
 * long as the inventory. fn returns false to end the walk.
 */
void inventory_each(struct inventory *t,
		    bool (*fn)(void *userdata, const struct inventory_finding *f), void *userdata);

#endif
