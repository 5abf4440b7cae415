/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_WARM_POOL_H
#define NACRE_CELL_WARM_POOL_H

#include "base/log/error.h"
#include "isolate/spawn/prepared.h"
#include "loop/loop.h"
#include "loop/pause.h"
#include "loop/pool.h"

/*
 * A keeper's prepared set (isolate/spawn/prepared.h) for the next cell with namespaces of its own,
 * so that its first container need not wait for them. Made only where one such cell was started
 * already, since most keepers never see one; and on a thread, since it takes a millisecond.
 *
 * Or, with shm_fd, for the first container of the pod whose keeper was made ahead of need: made
 * at once, in the loop, which has nothing else to do; and kept for as long as the keeper waits.
 *
 *   NONE     there is none, and none will be made: nobody has wanted one, or the last one was not
 *            taken for WARM_POOL_LIFE, or cannot be made.
 *   WANTED   it is being made, after WARM_POOL_PAUSE. The client that waits for the answer is
 *            runnable then, and so is the container's program; a processor that makes a prepared
 *            set would keep one of them waiting.
 *   READY    made; let go of after WARM_POOL_LIFE.
 *   HELD     there is none, and none is made whatever is wanted: the process is about to become
 *            another program, or was.
 */
enum warm_pool_state {
	WARM_POOL_NONE,
	WARM_POOL_WANTED,
	WARM_POOL_READY,
	WARM_POOL_HELD,
	WARM_POOL_STATE_COUNT
};

#define WARM_POOL_PAUSE (300 * NSEC_PER_USEC)
#define WARM_POOL_LIFE (60 * NSEC_PER_SEC)
/* Longer than a prepared set takes on a machine that is not overloaded. */
#define WARM_POOL_PATIENCE (5 * NSEC_PER_MSEC)

struct warm_pool {
	enum warm_pool_state state;
	struct isolate_prepared prepared;
	struct loop *loop;
	struct loop_timer timer;
	struct loop_timer *waiter; /* warm_pool_await() */
	/* It is READY, nothing starts, and nobody waits for it; NULL. */
	void (*on_ready)(void *userdata);
	void *userdata;
	struct isolate_prepared_maker maker; /* with the thread while work.busy */

	/* From the first want on; not in HELD. */
	struct pool *pool;
	struct loop_pause pause;

	unsigned n_starts;  /* warm_pool_start_begins() */
	struct hurry hurry; /* of these, for WARM_POOL_PAUSE more */
	struct pool_work work;
	struct isolate_prepared made; /* with the thread while work.busy, as is all below */
	struct error err;
	int r;
};

/* s stays where it is until warm_pool_done(). */
void warm_pool_init(struct warm_pool *s, struct loop *loop, int proc_fd, int shm_fd);
/* Waits for what is being made, which takes as long as that; likewise warm_pool_hold(). */
void warm_pool_done(struct warm_pool *s);

/* A cell of its own was started: another may come. */
void warm_pool_want(struct warm_pool *s);
/* One was taken in on_ready(): the next is made without a pause. */
void warm_pool_want_now(struct warm_pool *s);
/* 0, and the prepared set is the caller's; or -ENOENT. */
int warm_pool_take(struct warm_pool *s, struct isolate_prepared *ret);
/* Whether it is worth waiting for one that is being made, and nobody else waits for it: the timer
 * is set then, and fires when it can be taken, or will not come, or after WARM_POOL_PATIENCE.
 * Followed by warm_pool_leave() before the timer ends. */
bool warm_pool_await(struct warm_pool *s, struct loop_timer *timer);
/* Does nothing for those who do not wait. */
void warm_pool_leave(struct warm_pool *s, const struct loop_timer *timer);
/* A container starts, with a prepared set or without; and its program runs, or never will.
 * Meanwhile no prepared set is offered, and what makes one lets the start go first. */
void warm_pool_start_begins(struct warm_pool *s);
void warm_pool_start_ends(struct warm_pool *s);
/* Lets go of what is there until it is let go again. */
void warm_pool_hold(struct warm_pool *s, bool held);

#endif
