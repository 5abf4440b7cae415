/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_MAP_H
#define NACRE_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/*
 * Hash map from strings to pointers, keyed with SipHash-1-3 under a random key, since clients
 * choose the keys. Neither keys nor values are owned: a key must live as long as its entry (usually
 * it is a member of the value).
 */
struct map {
	struct map_slot *slots;
	size_t size;   /* a power of two, or 0 */
	size_t n;      /* live entries */
	size_t n_used; /* live entries and tombstones */
};

#define MAP_INIT                                                                                   \
	{                                                                                          \
		.slots = NULL                                                                      \
	}

void map_done(struct map *m);
/* 0; -EEXIST where the key is there already; -ENOMEM. */
int map_add(struct map *m, const char *key, void *value) _must_check_;
/* Room for n more: the next n of map_add() do not fail for want of memory, whatever map_remove()
 * takes out in between. 0 or -ENOMEM. */
int map_reserve(struct map *m, size_t n) _must_check_;
/* NULL where there is none. */
void *map_get(const struct map *m, const char *key);
/* Returns the value that was removed, or NULL. */
void *map_remove(struct map *m, const char *key);

/* Walks all values in no order: start with *pos = 0, ends with NULL. Removal of the entry that was
 * handed out last is allowed in between, additions are not. */
void *map_next(const struct map *m, size_t *pos);

#endif
