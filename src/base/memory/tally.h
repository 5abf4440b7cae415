/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_TALLY_H
#define NACRE_BASE_TALLY_H

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
 * Without memory, or past TALLY_ITEMS_MAX, it keeps nothing more and says so in `incomplete`.
 */

#define TALLY_ITEMS_MAX 200000

struct tally {
	struct arena arena;
	struct map items;
	struct list list;   /* in the order in which they were named first */
	struct list faults; /* tally_fault() */
	size_t n;
	bool incomplete;
};

void tally_init(struct tally *t);
void tally_done(struct tally *t);

/* A record allows the thing. */
void tally_may(struct tally *t, const char *kind, const char *thing);
/* And whatever is below it. */
void tally_may_below(struct tally *t, const char *kind, const char *thing);
/* A record (its id and name) cannot be whole without the thing. */
void tally_must(struct tally *t, const char *kind, const char *thing, const char *id,
		const char *name);
/* Whether a record has named the thing. */
bool tally_allows(const struct tally *t, const char *kind, const char *thing);
/* It is there. */
void tally_seen(struct tally *t, const char *kind, const char *thing);
/* Something else that is wrong. */
void tally_fault(struct tally *t, const char *kind, const char *id, const char *name,
		 const char *what);

struct tally_finding {
	const char *kind;
	const char *id;   /* of the record, or "" */
	const char *name; /* of the record, or of what has none */
	const char *what; /* a sentence */
};

/*
 * The findings: entries that are there and may not be (only the topmost, where paths are below each
 * other), entries that must be there and are not, and the faults, each once. The strings live as
 * long as the tally. fn returns false to end the walk.
 */
void tally_each(struct tally *t, bool (*fn)(void *userdata, const struct tally_finding *f),
		void *userdata);

#endif
