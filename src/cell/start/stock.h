/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_STOCK_H
#define NACRE_CELL_STOCK_H

#include "base/log/error.h"
#include "isolate/spawn/kit.h"
#include "loop/loop.h"
#include "loop/pause.h"
#include "loop/pool.h"

/*
 * A keeper's kit (isolate/spawn/kit.h) for the next cell with namespaces of its own, so that its
 * first container need not wait for them. Made only where one such cell was started already, since
 * most keepers never see one; and on a thread, since it takes a millisecond.
 *
 * Or, with shm_fd, for the first container of the pod whose keeper was made ahead of need: made
 * at once, in the loop, which has nothing else to do; and kept for as long as the keeper waits.
 *
 *   NONE     there is none, and none will be made: nobody has wanted one, or the last one was not
 *            taken for STOCK_LIFE, or cannot be made.
 *   WANTED   it is being made, after STOCK_PAUSE. The client that waits for the answer is runnable
 * then, and so is the container's program; a processor that makes a kit would keep one of them
 * waiting. READY    made; let go of after STOCK_LIFE. HELD     there is none, and none is made
 * whatever is wanted: the process is about to become another program, or was.
 */
enum stock_state { STOCK_NONE, STOCK_WANTED, STOCK_READY, STOCK_HELD, STOCK_STATE_COUNT };

#define STOCK_PAUSE (300 * NSEC_PER_USEC)
#define STOCK_LIFE (60 * NSEC_PER_SEC)
/* Longer than a kit takes on a machine that is not overloaded. */
#define STOCK_PATIENCE (5 * NSEC_PER_MSEC)

struct stock {
	enum stock_state state;
	struct isolate_kit kit;
	struct loop *loop;
	struct loop_timer timer;
	struct loop_timer *waiter; /* stock_await() */
	/* It is READY, nothing starts, and nobody waits for it; NULL. */
	void (*on_ready)(void *userdata);
	void *userdata;
	struct isolate_kit_maker maker; /* with the thread while work.busy */

	/* From the first want on; not in HELD. */
	struct pool *pool;
	struct loop_pause pause;

	unsigned n_starts;  /* stock_start_begins() */
	struct hurry hurry; /* of these, for STOCK_PAUSE more */
	struct pool_work work;
	struct isolate_kit made; /* with the thread while work.busy, as is all below */
	struct error err;
	int r;
};

/* s stays where it is until stock_done(). */
void stock_init(struct stock *s, struct loop *loop, int proc_fd, int shm_fd);
/* Waits for what is being made, which takes as long as that; likewise stock_hold(). */
void stock_done(struct stock *s);

/* A cell of its own was started: another may come. */
void stock_want(struct stock *s);
/* One was taken in on_ready(): the next is made without a pause. */
void stock_want_now(struct stock *s);
/* 0, and the kit is the caller's; or -ENOENT. */
int stock_take(struct stock *s, struct isolate_kit *ret);
/* Whether it is worth waiting for one that is being made, and nobody else waits for it: the timer
 * is set then, and fires when it can be taken, or will not come, or after STOCK_PATIENCE. Followed
 * by stock_leave() before the timer ends. */
bool stock_await(struct stock *s, struct loop_timer *timer);
/* Does nothing for those who do not wait. */
void stock_leave(struct stock *s, const struct loop_timer *timer);
/* A container starts, with a kit or without; and its program runs, or never will. Meanwhile no kit
 * is offered, and what makes one lets the start go first. */
void stock_start_begins(struct stock *s);
void stock_start_ends(struct stock *s);
/* Lets go of what is there until it is let go again. */
void stock_hold(struct stock *s, bool held);

#endif
