/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK 4000

struct arena_block {
	struct arena_block *next;
	size_t size;
	size_t used;
	_Alignas(max_align_t) unsigned char data[];
};

void arena_done(struct arena *a)
{
	struct arena_block *b = a->blocks;

	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
	a->blocks = NULL;
	a->used = 0;
}

static struct arena_block *arena_grow(struct arena *a, size_t n)
{
	size_t size = n > ARENA_BLOCK ? n : ARENA_BLOCK;
	struct arena_block *b = malloc(sizeof(*b) + size);

	if (!b)
		return NULL;
	b->size = size;
	b->used = 0;
	/* A block that is made for a single large piece goes behind the block that still has room.
	 */
	if (a->blocks && n > ARENA_BLOCK) {
		b->next = a->blocks->next;
		a->blocks->next = b;
	} else {
		b->next = a->blocks;
		a->blocks = b;
	}
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->blocks;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
	if (a->limit && (n > a->limit || a->used > a->limit - n))
		return NULL;
	if (!b || b->size - b->used < n)
		b = arena_grow(a, n);
	if (!b)
		return NULL;
	p = b->data + b->used;
	b->used += n;
	a->used += n;
	return p;
}

void *arena_zalloc(struct arena *a, size_t n, size_t size)
{
	size_t total;
	void *p;

	if (__builtin_mul_overflow(n, size, &total))
		return NULL;
	p = arena_alloc(a, total);
	if (p)
		memset(p, 0, total);
	return p;
}

void *arena_memdup(struct arena *a, const void *p, size_t n)
{
	void *to = arena_alloc(a, n);

	if (to && n)
		memcpy(to, p, n);
	return to;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *to;

	n = strnlen(s, n);
	to = arena_alloc(a, n + 1);
	if (!to)
		return NULL;
	memcpy(to, s, n);
	to[n] = '\0';
	return to;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	s = arena_alloc(a, (size_t)n + 1);
	if (!s)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}
