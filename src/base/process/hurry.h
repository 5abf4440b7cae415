/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_HURRY_H
#define NACRE_BASE_HURRY_H

#include <pthread.h>
#include <stdbool.h>

#include "base/time/clock.h"

/*
 * Between a loop, in which something is under way now and then that somebody waits for, and a
 * thread that makes what nobody waits for yet: while the one is under way, the other stands still
 * between its steps. The kernel cannot know this by itself: it need not interrupt a system call of
 * the one for the other, and what they share in it (RCU, the locks of mounts) knows no priorities.
 *
 * A thread that stands still goes on after HURRY_MAX in any case: under a load that never ends it
 * becomes slower, and no more.
 */
#define HURRY_MAX NSEC_PER_MSEC

struct hurry {
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool on;
};

#define HURRY_INIT                                                                                 \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER                \
	}

/* In the loop. */
void hurry_set(struct hurry *h, bool on);

/* In the thread, between two steps. NULL: nobody hurries. */
void hurry_stand(struct hurry *h);

#endif
