/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_RELAY_H
#define NACRE_OCI_RELAY_H

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Both directions of a terminal: from its master to an output, from an input to its master. The
 * owner polls for what relay_polls() says and hands the answer to relay_step(); nothing here waits.
 * Input and output belong to others too, so they stay as they are, blocking or not. A direction
 * keeps the bytes that it has read until the other side takes them, and reads on only then.
 */

/* A pipe that polls writable takes so much without blocking. */
#define RELAY_SIZE PIPE_BUF

struct relay_way {
	char data[RELAY_SIZE];
	size_t at, end; /* the bytes of data that are still to be written */
	bool ended;     /* nothing more is read */
};

enum relay_poll { RELAY_POLL_MASTER, RELAY_POLL_INPUT, RELAY_POLL_OUTPUT, RELAY_POLL_COUNT };

struct relay {
	int master_fd; /* non-blocking; -1: there is no terminal */
	int input_fd, output_fd;
	struct relay_way input, output;
	bool last;   /* nobody writes any more: what the master has is all */
	bool unread; /* the reader of the output is gone */
};

void relay_init(struct relay *r, int master_fd, int input_fd, int output_fd);
/* The descriptors and events to poll for; a descriptor of -1 for none. */
void relay_polls(const struct relay *r, struct pollfd polls[RELAY_POLL_COUNT]);
/* Does what polls says can be done now. With `unread` the owner closes the master, and calls
 * relay_stop(). */
void relay_step(struct relay *r, const struct pollfd polls[RELAY_POLL_COUNT]);
/* The program has ended: no more input, and of the output what is there by now. */
void relay_finish(struct relay *r);
/* Behind relay_finish(): whether all of it is written, or nobody is left to read it. */
bool relay_is_done(const struct relay *r);
/* Neither direction goes on, and what was read is dropped. */
void relay_stop(struct relay *r);

#endif
