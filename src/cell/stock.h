/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_STOCK_H
#define NACRE_CELL_STOCK_H

#include "isolate/kit.h"
#include "loop/loop.h"

/*
 * A keeper's kit (isolate/kit.h) for the next cell with namespaces of its own, so that its first
 * container need not wait for them. Made only where one such cell was started already, since most
 * keepers never see one; and behind an answer, since it holds the loop up for a millisecond.
 *
 * Or, with shm_fd, for the first container of the pod whose keeper was made ahead of need: made
 * at once, and kept for as long as the keeper waits.
 *
 *   NONE     there is none, and none will be made: nobody has wanted one, or the last one was not
 *            taken for STOCK_LIFE, or cannot be made.
 *   WANTED   made after STOCK_PAUSE. Whoever waits for the answer is runnable then, and so is the
 *            container's program; a processor that makes a kit would keep one of them waiting.
 *   READY    made; let go of after STOCK_LIFE.
 *   HELD     there is none, and none is made whatever is wanted: the process is about to become
 *            another program, or was.
 */
enum stock_state { STOCK_NONE, STOCK_WANTED, STOCK_READY, STOCK_HELD, STOCK_STATE_COUNT };

#define STOCK_PAUSE (1 * NSEC_PER_MSEC)
#define STOCK_LIFE (60 * NSEC_PER_SEC)

struct stock {
	enum stock_state state;
	struct isolate_kit kit;
	struct loop_timer timer;
	int place_fd, proc_fd; /* not owned: of isolate_kit_make() */
	int shm_fd;            /* likewise, of isolate_kit_make_shared(); -1: for a cell apart */
};

void stock_init(struct stock *s, struct loop *loop, int place_fd, int proc_fd, int shm_fd);
void stock_done(struct stock *s);

/* A cell of its own was started: another may come. */
void stock_want(struct stock *s);
/* 0, and the kit is the caller's; or -ENOENT. */
int stock_take(struct stock *s, struct isolate_kit *ret);
/* Lets go of what is there until it is let go again. */
void stock_hold(struct stock *s, bool held);

#endif
