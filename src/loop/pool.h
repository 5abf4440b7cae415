/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_LOOP_POOL_H
#define NACRE_LOOP_POOL_H

#include "loop/loop.h"

/*
 * A few threads for what may block: disk, hashing, tearing down mounts. A work is a value inside
 * its owner; `run` is called on a thread and must touch nothing that the loop thread touches
 * meanwhile (nor allocate where it can be avoided: each thread that does costs an allocator arena),
 * `done` is called on the loop thread afterwards. Works of one pool start in order.
 *
 * Threads are made when there is work (at most n_max) with a small stack and all signals blocked,
 * and end after some idle seconds: an idle pool costs nothing.
 */

struct pool;
struct pool_work;
typedef void (*pool_work_fn)(struct pool_work *work);

struct pool_work {
	struct pool_work *next;
	pool_work_fn run;
	pool_work_fn done;
	bool busy; /* between submit and done */
};

int pool_new(struct pool **ret, struct loop *l, unsigned n_max);
/* Waits for the work in hand and calls its done(), within which nothing more can be submitted; what
 * has not begun is dropped, its done() is not called. May be called from within a done(). */
struct pool *pool_free(struct pool *p);
/* The same where the work in hand may never end: it is not waited for. Its threads keep it and the
 * pool until the process ends, its done() is not called. */
struct pool *pool_leave(struct pool *p);
static inline void pool_freep(struct pool **p)
{
	*p = pool_free(*p);
}

/* work->run and work->done are set, work->busy is false. The work must stay where it is until done.
 */
void pool_submit(struct pool *p, struct pool_work *work);

/* Works that wait for a thread, and threads that are at one. */
struct pool_load {
	unsigned queued, busy;
};
struct pool_load pool_load(struct pool *p);

/* The threads that are there now end with the work in hand, and others go on. What a process gives
 * up (capabilities) it gives up for the calling thread and those that this one makes afterwards. */
void pool_renew(struct pool *p);

#endif
