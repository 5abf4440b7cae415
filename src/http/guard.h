/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_HTTP_GUARD_H
#define NACRE_HTTP_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time/clock.h"

/*
 * Limits of abuse by a peer that nghttp2 would let pass: frames that cost us work and carry
 * nothing, more of them than anybody needs, and streams that are over. A value in each session.
 *
 * Each kind of frame has a bucket: so many at once, so many each second after those. An answer to
 * frames of ours (a reader gives windows back, measures its bandwidth with PING, and adapts its
 * SETTINGS) is also allowed by each frame that we send, so a fast stream is no flood.
 */

enum guard_kind {
	GUARD_SETTINGS,
	GUARD_PING,
	GUARD_EMPTY,  /* DATA without data that does not end its stream */
	GUARD_UPDATE, /* WINDOW_UPDATE */
	GUARD_OTHER,  /* PRIORITY, GOAWAY, answers to PING, unknown types */
	GUARD_FAULT,  /* a stream that we must reset for what the peer has done */
	GUARD_KIND_COUNT
};

#define HTTP_SETTINGS_BURST 100
#define HTTP_SETTINGS_RATE 10
#define HTTP_PINGS_BURST 100
#define HTTP_PINGS_RATE 10
#define HTTP_EMPTY_BURST 1000
#define HTTP_EMPTY_RATE 100
#define HTTP_UPDATES_BURST 10000
#define HTTP_UPDATES_RATE 1000
#define HTTP_OTHERS_BURST 1000
#define HTTP_OTHERS_RATE 100
#define HTTP_FAULTS_BURST 200
#define HTTP_FAULTS_RATE 20

/* Streams that the peer has ended and that are closed: the last ones are remembered, since a frame
 * on a stream that we have reset is no fault, but one on these is. */
#define HTTP_CLOSED_MAX 32

struct guard {
	struct {
		uint32_t level; /* frames that are not paid for */
		nsec_t since;   /* when time was last counted */
	} buckets[GUARD_KIND_COUNT];
	int32_t last_id; /* the highest that a client has used */
	int32_t closed[HTTP_CLOSED_MAX];
	size_t next_closed;
};

void guard_init(struct guard *g);
/* One frame more. False: too many. */
bool guard_take(struct guard *g, enum guard_kind kind);
/* We have sent a frame that the peer may answer to. */
void guard_sent(struct guard *g);

/* The kind of a frame by its head, GUARD_KIND_COUNT where it is none of these. */
enum guard_kind guard_kind_of(uint8_t type, uint8_t flags, size_t length);

/* Servers: HEADERS has come on `id`; live: of a stream that is open. 0, or the code (http_code) for
 * the end of the connection. */
uint32_t guard_headers(struct guard *g, int32_t id, bool live);
/* DATA has come on a stream that is not open. The same. */
uint32_t guard_data(const struct guard *g, int32_t id);
/* A stream is closed that the peer itself had ended. */
void guard_closed(struct guard *g, int32_t id);

#endif
