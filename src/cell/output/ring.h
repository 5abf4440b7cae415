/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_RING_H
#define NACRE_CELL_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/memory/buf.h"

/*
 * The last output of a container, as pieces of its two streams, each behind a head of its own. It
 * grows with what comes, up to RING_MAX bytes with the heads; then the oldest pieces go. A place in
 * it is a number that only grows, so a reader keeps one and is told how far it has come.
 */

#define RING_MAX ((size_t)65536)
#define RING_HEAD ((size_t)3)
/* The bytes of one piece; more becomes several. */
#define RING_PIECE_MAX ((size_t)16384)

struct ring {
	uint8_t *base;    /* NULL: nothing came yet */
	size_t size;      /* of the allocation: 0, or a power of two */
	uint64_t head;    /* place of the oldest piece */
	uint64_t tail;    /* place behind the newest */
	uint64_t dropped; /* bytes of output that are no longer in here */
	uint64_t added;   /* bytes of output that have come */
};

#define RING_INIT                                                                                  \
	{                                                                                          \
		.base = NULL                                                                       \
	}

void ring_done(struct ring *r);
/* len is at most RING_PIECE_MAX. Without memory the ring stays as small as it is, and only the end
 * of a piece may be kept. */
void ring_add(struct ring *r, int stream, const void *data, size_t len);
/* The stream and a run of bytes of the piece at a place between head and tail, behind the first
 * `skip` bytes of it; 0 where there are none. At most two runs make a piece. */
size_t ring_get(const struct ring *r, uint64_t place, size_t skip, int *ret_stream,
		const uint8_t **ret_data);
/* The place of the piece behind that one. */
uint64_t ring_next(const struct ring *r, uint64_t place);

/* All pieces, for another program. 0, -ENOMEM or -ENOBUFS. */
int ring_save(const struct ring *r, struct buf *to) _must_check_;
/* Such pieces into an empty ring; `added` and `dropped` stay as they are. -EBADMSG for what is
 * none, -ENOMEM; the ring stays empty then. */
int ring_load(struct ring *r, const struct buf *from) _must_check_;
/* The bytes of output that are in it. */
uint64_t ring_held(const struct ring *r);

#endif
