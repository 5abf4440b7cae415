/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/pause.h"

#include "loop/wait_test.h"

#define PAUSE_LENGTH (300 * NSEC_PER_USEC)

static struct loop *l;
static struct loop_pause pause_;
static struct loop_defer defer;
static unsigned n_over, n_deferred, n_at_over;
static nsec_t over_at;

static void on_over(struct loop_pause *p)
{
	CHECK(p == &pause_);
	n_over++;
	over_at = clock_mono();
	n_at_over = n_deferred;
}

static void on_defer(struct loop_defer *d)
{
	if (++n_deferred < 3)
		loop_defer_schedule(d);
}

static void begin(void)
{
	n_over = n_deferred = 0;
	CHECK_INT(loop_new(&l), 0);
	CHECK_INT(loop_pause_init(&pause_, l, on_over), 0);
	loop_defer_init(&defer, l, on_defer);
}

static void end(void)
{
	loop_defer_done(&defer);
	loop_pause_done(&pause_);
	loop_freep(&l);
}

/* Once, so long after what else was to be done. */
static void is_over_once(void)
{
	nsec_t since;

	begin();
	since = clock_mono();
	loop_pause_begin(&pause_, PAUSE_LENGTH);
	loop_defer_schedule(&defer);
	LOOP_WAIT(l, n_over == 1);
	CHECK(over_at - since >= PAUSE_LENGTH);
	CHECK_INT(n_at_over, 3);
	for (int i = 0; i < 20; i++)
		loop_turn(l, false);
	CHECK_INT(n_over, 1);
	end();
}

static void begins_anew(void)
{
	nsec_t since;

	begin();
	loop_pause_begin(&pause_, PAUSE_LENGTH);
	loop_turn(l, false);
	loop_turn(l, false);
	since = clock_mono();
	loop_pause_begin(&pause_, 20 * PAUSE_LENGTH);
	LOOP_WAIT(l, n_over == 1);
	CHECK(over_at - since >= 20 * PAUSE_LENGTH);
	end();
}

static void ends_unheard(void)
{
	struct loop_pause none = { .fd = -1 };

	begin();
	loop_pause_begin(&pause_, 0);
	loop_pause_done(&pause_);
	loop_pause_done(&pause_);
	loop_pause_done(&none);
	for (int i = 0; i < 20; i++)
		loop_turn(l, false);
	CHECK_INT(n_over, 0);
	end();
}

UNIT_MAIN({ "is over once", is_over_once }, { "begins anew", begins_anew },
	  { "ends unheard", ends_unheard })
