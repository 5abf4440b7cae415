/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/trim.h"

#include <malloc.h>

static void trim_look(struct loop_timer *timer)
{
	struct trim *t = container_of(timer, struct trim, timer);
	bool busy = t->ended >= TRIM_CALLS;

	t->ended = 0;
	t->due = busy;
	if (busy)
		loop_timer_set(&t->timer, TRIM_REST);
	else
		(void)malloc_trim(0);
}

void trim_init(struct trim *t, struct loop *l)
{
	*t = (struct trim){ .ended = 0 };
	loop_timer_init(&t->timer, l, trim_look);
}

void trim_done(struct trim *t)
{
	loop_timer_done(&t->timer);
}

void trim_ended(struct trim *t)
{
	t->ended++;
	if (t->due || t->ended < TRIM_CALLS)
		return;
	t->due = true;
	t->ended = 0;
	loop_timer_set(&t->timer, TRIM_REST);
}
