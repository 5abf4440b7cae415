/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_TRIM_H
#define NACRE_RPC_TRIM_H

#include "loop/loop.h"

/*
 * Gives memory back to the kernel after many calls have ended. The memory that a thousand calls
 * have freed lies scattered between memory in use, where free() alone leaves it to the process for
 * good. Looking for it takes the loop's time, so it is done once: when TRIM_CALLS calls have ended,
 * and a TRIM_REST has gone by in which fewer than that did.
 */

#define TRIM_CALLS 256U
#define TRIM_REST NSEC_PER_SEC

struct trim {
	struct loop_timer timer;
	unsigned ended; /* calls since the last look */
	bool due;       /* the timer runs */
};

void trim_init(struct trim *t, struct loop *l);
void trim_done(struct trim *t);
/* A call, or a connection, has ended. */
void trim_ended(struct trim *t);

#endif
