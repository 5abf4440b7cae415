/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_IDS_H
#define NACRE_ISOLATE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * The ids of a user namespace with one range of users and one of groups, each from id 0 inside:
 * what a pod has. A value; count 0: there is no such namespace, and ids are the same on both sides.
 */
struct isolate_ids {
	uint32_t uid, gid; /* what 0 is outside */
	uint32_t count;
};

static inline bool isolate_ids_are_set(const struct isolate_ids *ids)
{
	return ids->count > 0;
}

/* The id outside that an id inside is mapped to; UINT32_MAX where it is not mapped. */
static inline uint32_t isolate_ids_outside(const struct isolate_ids *ids, uint32_t first,
					   uint32_t id)
{
	if (!ids->count)
		return id;
	return id < ids->count ? first + id : UINT32_MAX;
}

/* The other way; 65534, as the kernel shows it, where it is not mapped. */
static inline uint32_t isolate_ids_inside(const struct isolate_ids *ids, uint32_t first,
					  uint32_t id)
{
	if (!ids->count)
		return id;
	return id >= first && id - first < ids->count ? id - first : 65534;
}

/*
 * From here on, what this thread makes belongs to the root of the namespace (the ids of a file that
 * is made are those of the thread as the file system's): with all privilege that it has. Needed
 * where a file system with mapped ids has no id for the thread's own. Ids that are not set change
 * nothing.
 */
int isolate_ids_enter(const struct isolate_ids *ids, struct error *err);
/* Back to the thread's own ids; cannot fail. */
void isolate_ids_leave(const struct isolate_ids *ids);

#endif
