/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CRILOG_H
#define NACRE_WIRE_CRILOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"
#include "base/time/clock.h"

/*
 * Lines of a container's log as CRI wants them in the file:
 *
 *   2026-01-31T10:00:00.000000000Z stdout F a whole line
 *   2026-01-31T10:00:00.000000000Z stderr P a piece without its line feed
 *
 * Both directions keep the bytes: what was encoded comes back exactly, whatever it holds.
 *
 * Two more lines are marks: pieces without any byte, which other readers show as nothing. Their
 * tags say where the file stands in all that the container wrote (first in each file but the first)
 * and how many bytes are missing where the mark stands:
 *
 *   2026-01-31T10:00:00.000000000Z stdout P:file=3:at=50331648
 *   2026-01-31T10:00:00.000000000Z stdout P:lost=4096
 */

enum crilog_stream { CRILOG_STDOUT, CRILOG_STDERR };
#define CRILOG_STREAMS 2

enum crilog_mark { CRILOG_NO_MARK, CRILOG_MARK_FILE, CRILOG_MARK_LOST };

/* Longer pieces are split. */
#define CRILOG_PIECE_MAX 16384
/* The most bytes that encoding adds to a piece: time, stream, tag, line feed. */
#define CRILOG_LINE_COST (CLOCK_TEXT_SIZE - 1 + sizeof(" stdout F \n") - 1)
/* Of a mark. */
#define CRILOG_MARK_MAX 128

/* Appends the lines for a chunk of output; a last piece without a line feed becomes a P line.
 * Where it fails (as buf_add()) nothing was added. */
int crilog_encode(struct buf *to, nsec_t time, enum crilog_stream stream, const void *data,
		  size_t len) _must_check_;
/* The n-th file of a log (from 0) begins here, behind `at` bytes of output. The form holds at most
 * CRILOG_MARK_MAX bytes, of which the length is returned. */
size_t crilog_mark_file(char to[CRILOG_MARK_MAX], nsec_t time, uint64_t n, uint64_t at);
/* n bytes of output are missing here. */
size_t crilog_mark_lost(char to[CRILOG_MARK_MAX], nsec_t time, uint64_t n);

struct crilog_record {
	nsec_t time;
	enum crilog_stream stream;
	bool full;           /* ends a line; data ends with the line feed */
	const uint8_t *data; /* as it was written; empty in a mark */
	size_t len;
	enum crilog_mark mark;
	uint64_t file;   /* of CRILOG_MARK_FILE */
	uint64_t number; /* of a mark: `at`, or the bytes that are lost */
};

/* One line of len > 0 bytes, the last of which is its line feed. -EBADMSG: it is none of these
 * (torn by a crash, or somebody else's). The record points into the line. */
int crilog_parse(struct crilog_record *ret, const uint8_t *line, size_t len) _must_check_;

/* How many bytes of output whole lines stand for; lost ones count. */
uint64_t crilog_count(const uint8_t *lines, size_t len);

#endif
