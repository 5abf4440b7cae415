/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_SIZE_MIN 256

void buf_done(struct buf *b)
{
	size_t limit = b->limit;

	free(b->base);
	*b = (struct buf)BUF_INIT_LIMIT(limit);
}

/* Moves what is left to the front, into more memory where it must be. */
static int buf_make_room(struct buf *b, size_t size)
{
	uint8_t *p;

	/* Moving at most as many bytes as were consumed keeps the cost of a byte constant. */
	if (b->base && size <= b->size && b->len <= b->head) {
		memmove(b->base, b->base + b->head, b->len);
		b->head = 0;
		return 0;
	}
	size = MAX(size, b->size * 2);
	size = MAX(size, (size_t)BUF_SIZE_MIN);
	p = malloc(size);
	if (!p)
		return -ENOMEM;
	if (b->base && b->len)
		memcpy(p, b->base + b->head, b->len);
	free(b->base);
	b->base = p;
	b->size = size;
	b->head = 0;
	return 0;
}

/* Room for n bytes that count, and for `spare` behind them that do not. */
static int buf_reserve_spare(struct buf *b, size_t n, size_t spare, uint8_t **ret)
{
	size_t want;
	int r;

	if (n > SIZE_MAX / 4 || b->len > SIZE_MAX / 4)
		return -ENOBUFS;
	want = b->len + n;
	if (b->limit && want > b->limit)
		return -ENOBUFS;
	want += spare;
	if (!b->base || b->head + want > b->size) {
		r = buf_make_room(b, want);
		if (r < 0)
			return r;
	}
	*ret = b->base + b->head + b->len;
	return 0;
}

int buf_reserve(struct buf *b, size_t n, uint8_t **ret)
{
	return buf_reserve_spare(b, n, 0, ret);
}

void buf_added(struct buf *b, size_t n)
{
	assert(b->head + b->len + n <= b->size);
	b->len += n;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
	uint8_t *to;
	int r;

	if (len == 0)
		return 0;
	r = buf_reserve(b, len, &to);
	if (r < 0)
		return r;
	memcpy(to, data, len);
	b->len += len;
	return 0;
}

int buf_add_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
	uint8_t *to;
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;

	r = buf_reserve_spare(b, (size_t)n, 1, &to);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	b->head += n;
	b->len -= n;
	if (b->len == 0)
		buf_done(b);
}

void buf_clear(struct buf *b)
{
	buf_done(b);
}

char *buf_take_str(struct buf *b)
{
	char *s = malloc(b->len + 1);

	if (!s)
		return NULL;
	if (b->len)
		memcpy(s, buf_data(b), b->len);
	s[b->len] = '\0';
	buf_done(b);
	return s;
}
