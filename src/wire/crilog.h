/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CRILOG_H
#define NACRE_WIRE_CRILOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

/*
 * Lines of a container's log as CRI wants them in the file:
 *
 *   2026-01-31T10:00:00.000000000Z stdout F a whole line
 *   2026-01-31T10:00:00.000000000Z stderr P a piece without its line feed
 *
 * Both directions keep the bytes: what was encoded comes back exactly, whatever it holds.
 */

enum crilog_stream { CRILOG_STDOUT, CRILOG_STDERR };

/* Longer pieces are split. */
#define CRILOG_PIECE_MAX 16384

/* Appends the lines for a chunk of output; a last piece without a line feed becomes a P line. Where
 * it fails (as buf_add()) some lines may have been added. */
int crilog_encode(struct buf *to, nsec_t time, enum crilog_stream stream, const void *data,
		  size_t len) _must_check_;

/*
 * Reads a file in chunks of any size. A line that is none (torn by a crash, or somebody else's) is
 * skipped and counted; so is one beyond CRILOG_LINE_MAX.
 */
#define CRILOG_LINE_MAX 65536

/* data: the bytes that were written, with the line feed of an F line. Returns 0 to go on. */
typedef int (*crilog_line_fn)(void *userdata, nsec_t time, enum crilog_stream stream,
			      const uint8_t *data, size_t len);

struct crilog_decoder {
	struct buf partial; /* of a line whose end did not come yet */
	bool skipping;      /* to the end of a line that is too long */
	uint64_t n_skipped;
};

#define CRILOG_DECODER_INIT                                                                        \
	{                                                                                          \
		.partial = BUF_INIT                                                                \
	}

void crilog_decoder_done(struct crilog_decoder *d);
/* 0, -ENOMEM, or what fn returned: the lines before it were handed out, the rest of the chunk is
 * lost. */
int crilog_decode(struct crilog_decoder *d, const void *data, size_t len, crilog_line_fn fn,
		  void *userdata);

#endif
