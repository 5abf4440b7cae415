/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_PROGRESS_H
#define NACRE_CLI_PROGRESS_H

#include <stdbool.h>

#include "base/macros.h"
#include "base/time/clock.h"

/*
 * A line on standard error about what takes its time: from the second second on, written over again
 * at most ten times a second, gone at the end. Nothing at all where standard error is no terminal.
 */

struct progress {
	bool wanted;
	nsec_t due; /* monotonic: not drawn before that */
	bool drawn;
};

void progress_init(struct progress *p);
/* How far it is, cut at the terminal's width. */
void progress_tell(struct progress *p, const char *fmt, ...) _printf_(2, 3);
/* The line goes away; before anything else is written. */
void progress_done(struct progress *p);

#endif
