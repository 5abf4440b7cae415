/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_BUF_H
#define NACRE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/*
 * A value that owns a growing run of bytes, consumed from the front. `limit` bounds what it may
 * hold (0: no bound of its own); what would pass it is refused with -ENOBUFS and nothing is added.
 */
struct buf {
	uint8_t *base; /* allocation */
	size_t head;   /* first byte that was not consumed */
	size_t len;    /* bytes from head */
	size_t size;   /* of the allocation */
	size_t limit;
};

#define BUF_INIT                                                                                   \
	{                                                                                          \
		.base = NULL                                                                       \
	}
#define BUF_INIT_LIMIT(n)                                                                          \
	{                                                                                          \
		.base = NULL, .limit = (n)                                                         \
	}

void buf_done(struct buf *b);

static inline const uint8_t *buf_data(const struct buf *b)
{
	return b->base ? b->base + b->head : NULL;
}

/* 0, -ENOMEM or -ENOBUFS. */
int buf_add(struct buf *b, const void *data, size_t len) _must_check_;
int buf_add_str(struct buf *b, const char *s) _must_check_;
int buf_addf(struct buf *b, const char *fmt, ...) _printf_(2, 3) _must_check_;

/* Room for at least n bytes behind what is there: *ret points to it; buf_added() says what was
 * used. */
int buf_reserve(struct buf *b, size_t n, uint8_t **ret) _must_check_;
void buf_added(struct buf *b, size_t n);

/* Drops n bytes from the front. Frees the memory once nothing is left. */
void buf_consume(struct buf *b, size_t n);
void buf_clear(struct buf *b);

/* The contents as a NUL-terminated string that the caller owns; the buffer is empty afterwards.
 * NULL without memory. */
char *buf_take_str(struct buf *b);

#endif
