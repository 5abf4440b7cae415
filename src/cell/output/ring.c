/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/text/str.h"

#define RING_SIZE_FIRST ((size_t)1024)

void ring_done(struct ring *r)
{
	free(r->base);
	*r = (struct ring)RING_INIT;
}

static uint8_t ring_byte(const struct ring *r, uint64_t place)
{
	return r->base[place & (r->size - 1)];
}

static size_t ring_piece_len(const struct ring *r, uint64_t place)
{
	return (size_t)ring_byte(r, place + 1) | (size_t)ring_byte(r, place + 2) << 8;
}

static void ring_put(struct ring *r, const uint8_t *data, size_t len)
{
	size_t at = (size_t)(r->tail & (r->size - 1));
	size_t first = MIN(len, r->size - at);

	memcpy(r->base + at, data, first);
	if (len > first)
		memcpy(r->base, data + first, len - first);
	r->tail += len;
}

/* Doubles it until n more bytes fit, as far as it goes. */
static void ring_grow(struct ring *r, size_t n)
{
	size_t used = (size_t)(r->tail - r->head), size = r->size ? r->size : RING_SIZE_FIRST;
	uint8_t *base;

	while (size < RING_MAX && size - used < n)
		size *= 2;
	if (size == r->size)
		return;
	base = malloc(size);
	if (!base)
		return;
	for (uint64_t place = r->head; place < r->tail; place++)
		base[place & (size - 1)] = ring_byte(r, place);
	free(r->base);
	r->base = base;
	r->size = size;
}

static void ring_drop(struct ring *r)
{
	r->dropped += ring_piece_len(r, r->head);
	r->head = ring_next(r, r->head);
}

void ring_add(struct ring *r, int stream, const void *data, size_t len)
{
	const uint8_t *from = data;
	uint8_t head[RING_HEAD];

	assert(len <= RING_PIECE_MAX);
	r->added += len;
	ring_grow(r, len + RING_HEAD);
	if (len + RING_HEAD > r->size) {
		size_t keep = r->size > RING_HEAD ? r->size - RING_HEAD : 0;

		r->dropped += len - keep;
		from += len - keep;
		len = keep;
	}
	if (len == 0)
		return;
	while (r->size - (size_t)(r->tail - r->head) < len + RING_HEAD)
		ring_drop(r);
	head[0] = (uint8_t)stream;
	head[1] = (uint8_t)len;
	head[2] = (uint8_t)(len >> 8);
	ring_put(r, head, sizeof(head));
	ring_put(r, from, len);
}

size_t ring_get(const struct ring *r, uint64_t place, size_t skip, int *ret_stream,
		const uint8_t **ret_data)
{
	size_t len, at;

	assert(place >= r->head && place <= r->tail);
	if (place == r->tail)
		return 0;
	len = ring_piece_len(r, place) - skip;
	at = (size_t)((place + RING_HEAD + skip) & (r->size - 1));
	*ret_stream = ring_byte(r, place);
	*ret_data = r->base + at;
	return MIN(len, r->size - at);
}

uint64_t ring_next(const struct ring *r, uint64_t place)
{
	return place + RING_HEAD + ring_piece_len(r, place);
}

int ring_save(const struct ring *r, struct buf *to)
{
	size_t len = (size_t)(r->tail - r->head), at, first;
	int ret;

	if (len == 0)
		return 0;
	at = (size_t)(r->head & (r->size - 1));
	first = MIN(len, r->size - at);
	ret = buf_add(to, r->base + at, first);
	return ret == 0 && len > first ? buf_add(to, r->base, len - first) : ret;
}

static bool ring_can_load(const struct buf *from)
{
	const uint8_t *data = buf_data(from);
	size_t at = 0;

	while (from->len - at >= RING_HEAD) {
		size_t len = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;

		if (data[at] < 1 || data[at] > 2 || len == 0 || len > RING_PIECE_MAX ||
		    len > from->len - at - RING_HEAD)
			return false;
		at += RING_HEAD + len;
	}
	return at == from->len && at <= RING_MAX;
}

int ring_load(struct ring *r, const struct buf *from)
{
	assert(r->tail == 0);
	if (!ring_can_load(from))
		return -EBADMSG;
	ring_grow(r, from->len);
	if (r->size < from->len)
		return -ENOMEM;
	ring_put(r, buf_data(from), from->len);
	return 0;
}

uint64_t ring_held(const struct ring *r)
{
	uint64_t n = 0;

	for (uint64_t place = r->head; place < r->tail; place = ring_next(r, place))
		n += ring_piece_len(r, place);
	return n;
}
