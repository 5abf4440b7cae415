/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_INPUT_H
#define NACRE_CELL_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "loop/loop.h"

/*
 * The writing end of a container's standard input: one write at a time, copied, and carried out as
 * the pipe takes it.
 */

typedef void (*input_done_fn)(void *userdata, const struct error *err);

struct input {
	struct loop *loop;
	struct loop_fd source;
	int fd; /* -1: there is none, or it was closed */
	struct buf data;
	bool closing;
	input_done_fn done; /* of the write in hand */
	void *userdata;
};

void input_init(struct input *in, struct loop *l);
/* Takes the writing end over. */
int input_start(struct input *in, int fd);
/* keeper_write_stdin(). SIGPIPE must be ignored by the process. */
int input_write(struct input *in, const void *data, size_t len, bool close, input_done_fn done,
		void *userdata, struct error *err);
/* Goes on with what another program has left in its members; nobody waits for the write. */
void input_resume(struct input *in);
/* The reader has ended: a write in hand fails now (its completion is called). */
void input_end(struct input *in);
/* Closes, calls nothing back. */
void input_done(struct input *in);

#endif
