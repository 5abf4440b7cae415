/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_ARENA_H
#define NACRE_BASE_ARENA_H

#include <stddef.h>

#include "base/macros.h"

/*
 * Memory that ends together: what belongs to one call is allocated here and freed as a whole.
 * Nothing in an arena is freed on its own. `limit` bounds the sum of what is handed out.
 */
struct arena {
	struct arena_block *blocks;
	size_t used;  /* bytes handed out */
	size_t limit; /* 0: none */
};

#define ARENA_INIT                                                                                 \
	{                                                                                          \
		.blocks = NULL                                                                     \
	}
#define ARENA_INIT_LIMIT(n)                                                                        \
	{                                                                                          \
		.blocks = NULL, .limit = (n)                                                       \
	}

void arena_done(struct arena *a);

/* Aligned for any type, not cleared. NULL without memory or past the limit. */
void *arena_alloc(struct arena *a, size_t n) _must_check_;
/* Cleared; n * size is checked for overflow. */
void *arena_zalloc(struct arena *a, size_t n, size_t size) _must_check_;
char *arena_strdup(struct arena *a, const char *s) _must_check_;
char *arena_strndup(struct arena *a, const char *s, size_t n) _must_check_;
void *arena_memdup(struct arena *a, const void *p, size_t n) _must_check_;
char *arena_printf(struct arena *a, const char *fmt, ...) _printf_(2, 3) _must_check_;

#endif
