/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_LOOP_WAIT_TEST_H
#define NACRE_LOOP_WAIT_TEST_H

#include "loop/loop.h"
#include "unit.h"

/* For tests: turns a loop until a condition holds, which is then checked, or until the patience of
 * unit.h is at its end. */

static time_t wait_since;
static bool wait_is_over;

static inline void wait_on_second(struct loop_timer *t)
{
	wait_is_over = !unit_waits(wait_since);
	if (!wait_is_over)
		loop_timer_set(t, NSEC_PER_SEC);
}

#define LOOP_WAIT(l, cond)                                                                         \
	do {                                                                                       \
		struct loop_timer wait_second_;                                                    \
                                                                                                   \
		loop_timer_init(&wait_second_, (l), wait_on_second);                               \
		loop_timer_set(&wait_second_, NSEC_PER_SEC);                                       \
		wait_since = unit_now();                                                           \
		wait_is_over = false;                                                              \
		while (!(cond) && !wait_is_over)                                                   \
			loop_turn((l), true);                                                      \
		loop_timer_done(&wait_second_);                                                    \
		CHECK(cond);                                                                       \
	} while (0)

#endif
