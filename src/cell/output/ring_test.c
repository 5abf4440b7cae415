/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/ring.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

/* All of a stream that is in the ring. */
static void collect(const struct ring *r, int stream, struct buf *to)
{
	for (uint64_t place = r->head; place < r->tail; place = ring_next(r, place)) {
		size_t skip = 0, end = (size_t)(ring_next(r, place) - place) - RING_HEAD;

		while (skip < end) {
			const uint8_t *data;
			int s;
			size_t n = ring_get(r, place, skip, &s, &data);

			CHECK(n > 0);
			if (s == stream)
				CHECK_INT(buf_add(to, data, n), 0);
			skip += n;
		}
	}
}

static void keeps_streams_apart(void)
{
	_cleanup_(ring_done) struct ring r = RING_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT, err = BUF_INIT;

	ring_add(&r, 1, "one ", 4);
	ring_add(&r, 2, "two", 3);
	ring_add(&r, 1, "three", 5);
	CHECK_INT(r.size, 1024);
	collect(&r, 1, &out);
	collect(&r, 2, &err);
	CHECK_INT(buf_add(&out, "", 1), 0);
	CHECK_INT(buf_add(&err, "", 1), 0);
	CHECK_STR((const char *)buf_data(&out), "one three");
	CHECK_STR((const char *)buf_data(&err), "two");
}

static void nothing_is_at_the_end(void)
{
	_cleanup_(ring_done) struct ring r = RING_INIT;
	const uint8_t *data;
	int stream;

	CHECK_INT(ring_get(&r, 0, 0, &stream, &data), 0);
	ring_add(&r, 1, "x", 1);
	CHECK_INT(ring_get(&r, r.tail, 0, &stream, &data), 0);
}

/* Pieces of many lengths, so that heads and bytes wrap at every place. */
static void holds_the_last_64_kib(void)
{
	_cleanup_(ring_done) struct ring r = RING_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	static uint8_t piece[RING_PIECE_MAX];
	uint64_t n = 0;

	for (size_t len = 1; n < 4 * RING_MAX; len = (len * 7 + 3) % RING_PIECE_MAX + 1) {
		for (size_t i = 0; i < len; i++)
			piece[i] = (uint8_t)((n + i) % 251);
		ring_add(&r, 1, piece, len);
		n += len;
		CHECK(r.size <= RING_MAX);
		CHECK(r.tail - r.head <= RING_MAX);
	}
	collect(&r, 1, &out);
	CHECK_INT(r.dropped + out.len, n);
	CHECK(out.len >= RING_MAX - 2 * RING_PIECE_MAX);
	for (size_t i = 0; i < out.len; i++)
		if (buf_data(&out)[i] != (r.dropped + i) % 251) {
			CHECK_INT(buf_data(&out)[i], (r.dropped + i) % 251);
			break;
		}
}

static void one_byte_at_a_time(void)
{
	_cleanup_(ring_done) struct ring r = RING_INIT;
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	for (size_t i = 0; i < 3 * RING_MAX; i++)
		ring_add(&r, (int)(i & 1) + 1, &(uint8_t){ (uint8_t)i }, 1);
	collect(&r, 1, &out);
	CHECK(out.len > 0);
	CHECK_INT(r.size, RING_MAX);
}

/* A ring that has wrapped goes into another one, and on from there. */
static void saved_and_loaded(void)
{
	_cleanup_(ring_done) struct ring r = RING_INIT, next = RING_INIT, none = RING_INIT;
	_cleanup_(buf_done) struct buf saved = BUF_INIT, before = BUF_INIT, after = BUF_INIT;
	static uint8_t piece[5000];

	CHECK_INT(ring_save(&r, &saved), 0);
	CHECK_INT(saved.len, 0);
	for (int i = 0; i < 40; i++) {
		for (size_t at = 0; at < sizeof(piece); at++)
			piece[at] = (uint8_t)((size_t)i + at);
		ring_add(&r, i % 2 + 1, piece, sizeof(piece));
	}
	CHECK_INT(ring_save(&r, &saved), 0);
	CHECK_INT(ring_load(&next, &saved), 0);
	CHECK_INT(ring_held(&next), r.added - r.dropped);
	next.added = r.added;
	next.dropped = r.dropped;
	for (int round = 0; round < 2; round++) {
		buf_clear(&before);
		buf_clear(&after);
		for (int stream = 1; stream <= 2; stream++) {
			collect(&r, stream, &before);
			collect(&next, stream, &after);
		}
		CHECK(before.len > 0);
		CHECK_INT(before.len, after.len);
		CHECK(memcmp(buf_data(&before), buf_data(&after), after.len) == 0);
		for (int i = 0; i < 30; i++) {
			ring_add(&r, 1, piece, 777);
			ring_add(&next, 1, piece, 777);
		}
	}
	CHECK_INT(next.dropped, r.dropped);

	/* What is no such ring. */
	saved.len--;
	CHECK_INT(ring_load(&none, &saved), -EBADMSG);
	CHECK_INT(none.tail, 0);
	buf_clear(&saved);
	CHECK_INT(buf_add(&saved, "\3\1\0x", 4), 0);
	CHECK_INT(ring_load(&none, &saved), -EBADMSG);
	buf_clear(&saved);
	CHECK_INT(buf_add(&saved, "\1\0\0", 3), 0);
	CHECK_INT(ring_load(&none, &saved), -EBADMSG);
	buf_clear(&saved);
	for (size_t i = 0; i <= RING_MAX / (RING_PIECE_MAX / 2 + RING_HEAD); i++) {
		static uint8_t whole[RING_HEAD + RING_PIECE_MAX / 2] = { 1, 0,
									 RING_PIECE_MAX / 512 };

		CHECK_INT(buf_add(&saved, whole, sizeof(whole)), 0);
	}
	CHECK_INT(ring_load(&none, &saved), -EBADMSG);
}

UNIT_MAIN({ "saved_and_loaded", saved_and_loaded }, { "keeps_streams_apart", keeps_streams_apart },
	  { "nothing_is_at_the_end", nothing_is_at_the_end },
	  { "holds_the_last_64_kib", holds_the_last_64_kib },
	  { "one_byte_at_a_time", one_byte_at_a_time })
