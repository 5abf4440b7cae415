/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_INPUT_H
#define NACRE_CELL_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "loop/loop.h"

/*
 * The writing end of a program's standard input, a pipe or a terminal: one write at a time, copied,
 * and carried out as it is taken. Closing a terminal means to type its end-of-file character.
 */

typedef void (*input_done_fn)(void *userdata, const struct error *err);

/* A writer that waits until the write in hand is done. */
struct input_waiter {
	struct list link;
	void (*fn)(struct input_waiter *w);
};

struct input {
	struct loop *loop;
	struct loop_fd source;
	int fd; /* -1: there is none, or it was closed */
	struct buf data;
	bool is_tty;
	bool inside_line; /* the last byte that was written to a terminal ended no line */
	bool closing;
	input_done_fn done; /* of the write in hand */
	void *userdata;
	struct list waiters;
};

void input_init(struct input *in, struct loop *l);
/* Takes the writing end over. */
int input_start(struct input *in, int fd);
/* The same for the master of a terminal. */
int input_start_terminal(struct input *in, int fd);
/* keeper_write_stdin(). SIGPIPE must be ignored by the process. */
int input_write(struct input *in, const void *data, size_t len, bool close, input_done_fn done,
		void *userdata, struct error *err);
/* Goes on with what another program has left in its members; nobody waits for the write. */
void input_resume(struct input *in);
static inline bool input_busy(const struct input *in)
{
	return in->done != NULL;
}
/* Only while it is busy: fn is called when that has changed, also for the worse; list_remove()
 * takes it back. */
void input_wait(struct input *in, struct input_waiter *w);
/* The write in hand, if it is of this userdata, goes on without telling anybody. */
void input_disown(struct input *in, const void *userdata);
/* The reader has ended: a write in hand fails now (its completion is called). */
void input_end(struct input *in);
/* Closes, calls nothing back. */
void input_done(struct input *in);

#endif
