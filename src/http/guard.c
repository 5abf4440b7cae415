/* SPDX-License-Identifier: Apache-2.0 */
#include "http/guard.h"

#include <assert.h>

#include "base/macros.h"
#include "http/code.h"

/* RFC 9113, section 6, and 4.1 for the flags. */
enum {
	FRAME_DATA = 0x0,
	FRAME_PRIORITY = 0x2,
	FRAME_SETTINGS = 0x4,
	FRAME_PING = 0x6,
	FRAME_GOAWAY = 0x7,
	FRAME_WINDOW_UPDATE = 0x8,
	FRAME_CONTINUATION = 0x9,

	FRAME_FLAG_ACK = 0x1,
	FRAME_FLAG_END_STREAM = 0x1,
	FRAME_FLAG_PADDED = 0x8,
};
/* As much may be padding, with its length in front. */
#define FRAME_PADDING_MAX 256

static const struct {
	uint32_t burst;
	uint32_t rate;
	uint32_t per_sent; /* that a frame of ours allows */
} guard_limits[] = {
	[GUARD_SETTINGS] = { HTTP_SETTINGS_BURST, HTTP_SETTINGS_RATE, 1 },
	[GUARD_PING] = { HTTP_PINGS_BURST, HTTP_PINGS_RATE, 1 },
	[GUARD_EMPTY] = { HTTP_EMPTY_BURST, HTTP_EMPTY_RATE, 0 },
	[GUARD_UPDATE] = { HTTP_UPDATES_BURST, HTTP_UPDATES_RATE, 4 },
	[GUARD_OTHER] = { HTTP_OTHERS_BURST, HTTP_OTHERS_RATE, 0 },
	[GUARD_FAULT] = { HTTP_FAULTS_BURST, HTTP_FAULTS_RATE, 0 },
};
static_assert(ARRAY_SIZE(guard_limits) == GUARD_KIND_COUNT, "one limit for each kind");

void guard_init(struct guard *g)
{
	nsec_t now = clock_mono();

	*g = (struct guard){ .last_id = 0 };
	for (size_t i = 0; i < GUARD_KIND_COUNT; i++)
		g->buckets[i].since = now;
}

/* The clock is asked only where a bucket is full. */
static void guard_leak(struct guard *g, enum guard_kind kind)
{
	nsec_t now = clock_mono();
	nsec_t paid = (now - g->buckets[kind].since) / (NSEC_PER_SEC / guard_limits[kind].rate);

	if (paid == 0)
		return;
	g->buckets[kind].since = now;
	g->buckets[kind].level -= (uint32_t)MIN(paid, (nsec_t)g->buckets[kind].level);
}

bool guard_take(struct guard *g, enum guard_kind kind)
{
	if (g->buckets[kind].level >= guard_limits[kind].burst)
		guard_leak(g, kind);
	if (g->buckets[kind].level >= guard_limits[kind].burst)
		return false;
	g->buckets[kind].level++;
	return true;
}

void guard_sent(struct guard *g)
{
	for (size_t i = 0; i < GUARD_KIND_COUNT; i++)
		g->buckets[i].level -= MIN(g->buckets[i].level, guard_limits[i].per_sent);
}

enum guard_kind guard_kind_of(uint8_t type, uint8_t flags, size_t length)
{
	if (type == FRAME_DATA) {
		bool empty =
			length == 0 || (flags & FRAME_FLAG_PADDED && length <= FRAME_PADDING_MAX);

		return empty && !(flags & FRAME_FLAG_END_STREAM) ? GUARD_EMPTY : GUARD_KIND_COUNT;
	}
	if (type == FRAME_SETTINGS)
		return flags & FRAME_FLAG_ACK ? GUARD_KIND_COUNT : GUARD_SETTINGS;
	if (type == FRAME_PING)
		return flags & FRAME_FLAG_ACK ? GUARD_OTHER : GUARD_PING;
	if (type == FRAME_WINDOW_UPDATE)
		return GUARD_UPDATE;
	if (type == FRAME_PRIORITY || type == FRAME_GOAWAY || type > FRAME_CONTINUATION)
		return GUARD_OTHER;
	return GUARD_KIND_COUNT;
}

static bool guard_was_closed(const struct guard *g, int32_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(g->closed); i++)
		if (id > 0 && g->closed[i] == id)
			return true;
	return false;
}

uint32_t guard_headers(struct guard *g, int32_t id, bool live)
{
	/* Stream 0 is nghttp2's to refuse. */
	if (live || id == 0)
		return HTTP_NO_ERROR;
	if (id > g->last_id) {
		g->last_id = id;
		return HTTP_NO_ERROR;
	}
	return guard_was_closed(g, id) ? HTTP_STREAM_CLOSED : HTTP_PROTOCOL_ERROR;
}

uint32_t guard_data(const struct guard *g, int32_t id)
{
	return guard_was_closed(g, id) ? HTTP_STREAM_CLOSED : HTTP_NO_ERROR;
}

void guard_closed(struct guard *g, int32_t id)
{
	g->closed[g->next_closed++ % ARRAY_SIZE(g->closed)] = id;
}
