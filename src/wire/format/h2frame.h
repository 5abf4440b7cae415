/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_H2FRAME_H
#define NACRE_WIRE_H2FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Whether a run of bytes can be what an HTTP/2 server says, or a client: the heads of its frames,
 * looked at as they pass, in pieces of any size, and nothing kept of them. A gate holds the bytes
 * of a guest against this before the daemon's library sees them. What a head does not tell (HPACK,
 * windows, the states of streams) is that library's affair, and so are rates (http/guard.h).
 *
 * A client says its preface before the first frame. Known types only (of a client also those that
 * it may add and nobody has to know, RFC 9113, section 5.5), none longer than the 16 KiB that we
 * allow, with the length that its type has; SETTINGS first; stream 0 or a client's stream as the
 * type wants it; no PUSH_PROMISE; a block of headers in one go, of at most
 * H2FRAME_CONTINUATIONS_MAX frames more.
 */

#define H2FRAME_PAYLOAD_MAX 16384
#define H2FRAME_CONTINUATIONS_MAX 8
#define H2FRAME_HEAD 9

/* A value; all zero in the beginning, but for from_client. */
struct h2frame {
	uint8_t head[H2FRAME_HEAD];
	unsigned n_head;        /* bytes of it that are there */
	uint32_t left;          /* bytes of the payload that are to come */
	uint32_t block_stream;  /* with an open block of headers; 0: none */
	unsigned continuations; /* of that block */
	bool begun;             /* the first frame has been seen */
	bool from_client;
	bool asked;         /* a HEADERS has been seen */
	unsigned n_preface; /* bytes of a client's preface that were seen */
};

/* 0, or -EPROTO with what is wrong: nothing may follow then. */
int h2frame_feed(struct h2frame *f, const uint8_t *data, size_t len, struct error *err);

/* Whether the bytes so far end where a frame ends. */
bool h2frame_is_whole(const struct h2frame *f);

#endif
