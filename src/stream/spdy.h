/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_SPDY_H
#define NACRE_STREAM_SPDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"

/*
 * Frames of SPDY/3.1 as the clients of a kubelet speak it: streams that the client opens, without
 * windows. A codec: no descriptor, no stream is known here.
 *
 * Of a stream's headers only those are kept that say what it is for. A frame of data is told piece
 * by piece, as it arrives; a frame of headers is at most SPDY_HEADERS_MAX bytes, packed and
 * unpacked.
 */

#define SPDY_HEADERS_MAX ((size_t)16384)
#define SPDY_STREAM_MAX 0x7fffffffU
#define SPDY_VALUE_MAX 64

enum spdy_kind {
	SPDY_OPEN,   /* SYN_STREAM */
	SPDY_DATA,   /* a piece of it, maybe empty */
	SPDY_RESET,  /* RST_STREAM */
	SPDY_PING,   /* to be sent back */
	SPDY_GOAWAY, /* the client opens nothing any more */
	SPDY_OTHER,  /* nothing that is to be done */
};

struct spdy_event {
	enum spdy_kind kind;
	uint32_t stream; /* of a ping: its number */
	bool fin;        /* the client sends nothing more on the stream */
	const uint8_t *data;
	size_t len;
	/* Of SPDY_OPEN; "" where it is missing, or is too long to be anything. */
	char stream_type[SPDY_VALUE_MAX], port[SPDY_VALUE_MAX], request_id[SPDY_VALUE_MAX];
};

struct spdy;

/* NULL without memory. */
struct spdy *spdy_new(void);
struct spdy *spdy_free(struct spdy *s);

/*
 * Takes the next event from what was received: 1 with *used bytes taken and *ret filled in, which
 * points into `data`; 0: more is needed first, and nothing of it was taken. -EPROTO: that is no
 * SPDY/3.1, -ENOBUFS: a frame of headers is too long, -ENOMEM.
 */
int spdy_take(struct spdy *s, const uint8_t *data, size_t len, size_t *used,
	      struct spdy_event *ret);

/* Each adds a frame: 0, or a negative errno of the buffer. */
int spdy_put_reply(struct spdy *s, struct buf *to, uint32_t stream);
int spdy_put_data(struct buf *to, uint32_t stream, const void *data, size_t len, bool fin);
int spdy_put_reset(struct buf *to, uint32_t stream, uint32_t status);
int spdy_put_ping(struct buf *to, uint32_t number);
int spdy_put_goaway(struct buf *to, uint32_t last);

/* Status of a reset. */
#define SPDY_PROTOCOL_ERROR 1U
#define SPDY_REFUSED 3U
#define SPDY_CANCEL 5U

#endif
