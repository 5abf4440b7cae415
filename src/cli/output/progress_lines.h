/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_PROGRESS_LINES_H
#define NACRE_CLI_PROGRESS_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time/clock.h"

/*
 * How far the parts of a transfer are, on standard error, a line for each. On a terminal the lines
 * stand below one another and are drawn over again; else each is written once, when its part is
 * done.
 */

struct progress_line;

struct progress_lines {
	bool live; /* on a terminal */
	nsec_t due;
	unsigned n_drawn;
	struct progress_line *list;
	unsigned n;
};

/* One part. Numbers count from 1; what is beyond PROGRESS_LINES_MAX is not shown. */
#define PROGRESS_LINES_MAX 1024
struct progress_word {
	uint32_t number, count;
	const char *digest, *state;
	const char *done; /* its result ("pulled"); NULL: it goes on */
	uint64_t n_bytes, size;
};

void progress_lines_init(struct progress_lines *p);
void progress_lines_done(struct progress_lines *p);
void progress_lines_tell(struct progress_lines *p, const struct progress_word *w);
/* A line that stays. */
void progress_lines_say(struct progress_lines *p, const char *text);
/* Takes away what is drawn, before something is written to the terminal. */
void progress_lines_wipe(struct progress_lines *p);

#endif
