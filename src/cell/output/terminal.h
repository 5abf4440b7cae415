/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_TERMINAL_H
#define NACRE_CELL_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "cell/spec.h"
#include "isolate/spawn/pty.h"

/*
 * The terminal of a program of ours. Its other end is kept open too until the program has ended, so
 * that a program which closes it for a while does not look as if it had ended.
 */

struct terminal {
	struct isolate_pty pty;
};

#define TERMINAL_INIT                                                                              \
	{                                                                                          \
		.pty = ISOLATE_PTY_INIT                                                            \
	}

/* Out of a new devpts (the first program of a container), or of that of a process (an exec); as
 * large as it says from the first byte on. The plan makes it the user's. */
int terminal_open_new(struct terminal *t, const struct isolate_ids *ids,
		      const struct terminal_size *size, struct error *err);
int terminal_open_of(struct terminal *t, int proc_fd, pid_t pid, const struct terminal_size *size,
		     struct error *err);
/* A descriptor of the master for somebody's own. */
int terminal_dup(const struct terminal *t, struct error *err);
int terminal_resize(const struct terminal *t, const struct terminal_size *size, struct error *err);
/* The program has ended. */
void terminal_let_go(struct terminal *t);
void terminal_done(struct terminal *t);

static inline bool terminal_is_open(const struct terminal *t)
{
	return t->pty.master_fd >= 0;
}

#endif
