/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_STREAMS_H
#define NACRE_CELL_STREAMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "cell/output/terminal.h"
#include "cell/start/start.h"

/* The two sides of a container's standard streams while it is being started: pipes, or a terminal.
 * A descriptor that is taken from it is set to -1 there. */
struct streams {
	int child[3]; /* -1 where there is none */
	int ours[3];
	struct terminal terminal;
};

#define STREAMS_INIT                                                                               \
	{                                                                                          \
		.child = { -1, -1, -1 }, .ours = { -1, -1, -1 }, .terminal = TERMINAL_INIT         \
	}

/* logged: somebody reads what it writes. */
int streams_open(struct streams *s, const struct container_start *start, bool logged,
		 struct error *err);
/* Behind the clone: what the process has now. */
void streams_close_child(struct streams *s);
/* Closes what it has. */
void streams_done(struct streams *s);

#endif
