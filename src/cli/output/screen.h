/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_SCREEN_H
#define NACRE_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "loop/loop.h"

/*
 * The output of a command that is shown again and again. On a terminal each frame takes the place
 * of the one before, on a screen of its own that goes away with the command (also by SIGINT,
 * SIGTERM and SIGHUP). Anywhere else frames follow each other, parted by an empty line.
 */

struct screen {
	bool live;    /* standard output is a terminal, and taken */
	bool ended;   /* the user, or whoever reads, wants no more */
	bool resized; /* the terminal has another size since this was last set to false */
	struct loop_signal signals;
	FILE *frame;
	char *text;
	size_t len;
	bool lines;
	size_t n_frames;
};

/* A value; 0 or a negative errno. lines: each frame is a line of JSON, for programs: never on a
 * screen of its own, nothing in between. */
int screen_init(struct screen *s, struct loop *l, bool lines);
/* The terminal is as it was before. */
void screen_done(struct screen *s);

/* Columns that a frame may have; 0: any. */
unsigned screen_width(const struct screen *s);
/* Begin and show a frame: all that is written to the stream in between is shown at once. */
FILE *screen_begin(struct screen *s);
void screen_show(struct screen *s);

#endif
