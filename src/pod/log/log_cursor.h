/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_LOG_CURSOR_H
#define NACRE_POD_LOG_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/id.h"
#include "base/text/parse.h"
#include "wire/format/crilog.h"

/*
 * A place in a container's log, which is ID/NAME.log and the older files beside it (as
 * cell/output/log_file.h makes them; their keeper may do so at any moment). Files are told apart by
 * the number in their first line, never by name. All calls may block on the disk.
 */

/* Larger than any line, so that each piece has one at least. */
#define LOG_PIECE_SIZE ((size_t)128 * 1024)
/* A line longer than this counts as if it began so far from its end. */
#define LOG_TAIL_LINE_MAX ((size_t)1 << 20)

struct log_point {
	uint64_t file;
	uint64_t offset;
};

struct log_cursor {
	int logs_fd; /* not owned */
	char name[ID_SIZE + NAME_LABEL_MAX + 8];
	int fd; /* owned: the file at hand */
	struct log_point at;
	uint64_t position; /* of the file's beginning in all that the container wrote */
	int next_fd;       /* owned: of the file that follows, once the one at hand is complete */
	struct log_point next;
	uint64_t next_position;
	struct log_point from[CRILOG_STREAMS]; /* lines before this were not asked for */
	bool bounded;
	struct log_point end; /* where bounded: the end of the log when reading began */
};

struct log_wish {
	bool follow;
	bool has_tail;
	uint64_t tail;  /* lines of both streams together */
	uint64_t since; /* wall clock; 0: all */
	uint64_t until; /* lines that began before; 0: all */
};

/* Opens nothing. */
void log_cursor_init(struct log_cursor *c, int logs_fd, const char *id, const char *name);
void log_cursor_done(struct log_cursor *c);

/* Goes to where reading begins. piece: LOG_PIECE_SIZE bytes to work with. *ret_skipped: bytes that
 * were asked for and are not there any more. -ENOENT: there is no log. */
int log_cursor_start(struct log_cursor *c, const struct log_wish *wish, uint8_t *piece,
		     uint64_t *ret_skipped);

/* Whole lines from c->at on; the reader moves c->at. 0: none yet, or at the end. *ret_skipped:
 * bytes before these that nobody can read any more. */
ssize_t log_cursor_read(struct log_cursor *c, uint8_t *piece, uint64_t *ret_skipped);

#endif
