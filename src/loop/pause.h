/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_LOOP_PAUSE_H
#define NACRE_LOOP_PAUSE_H

#include "loop/loop.h"

/*
 * A pause behind an answer, before work that nobody waits for goes on: the client that waits for
 * the answer is runnable then, and so may be a program that was just started. It begins when
 * everything else of this turn of the loop is done, and it may be shorter than a millisecond, which
 * a timer of the loop cannot be. It has a descriptor of its own.
 */
struct loop_pause;
typedef void (*loop_pause_fn)(struct loop_pause *source);

struct loop_pause {
	struct loop_fd source;
	struct loop_defer begin;
	int fd; /* -1: none */
	nsec_t length;
	loop_pause_fn fn;
};

/* 0 or a negative errno, with which nothing is to be undone. */
int loop_pause_init(struct loop_pause *p, struct loop *l, loop_pause_fn fn);
/* fn is called once, so long after this turn; one that is under way begins anew. */
void loop_pause_begin(struct loop_pause *p, nsec_t length);
/* Also for one that is zero but for an fd of -1. */
void loop_pause_done(struct loop_pause *p);

#endif
