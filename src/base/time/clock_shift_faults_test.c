/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time/clock_shift.h"

#include "base/time/clock.h"
#include "unit.h"

static void swings(void)
{
	CHECK(unsetenv("NACRE_CLOCK_SWING") == 0);
	CHECK_INT(clock_shift(250 * NSEC_PER_MSEC), 0);
	CHECK(setenv("NACRE_CLOCK_SWING", "100", 1) == 0);
	CHECK_INT(clock_shift(0), CLOCK_SHIFT_DAY);
	CHECK_INT(clock_shift(99 * NSEC_PER_MSEC), CLOCK_SHIFT_DAY);
	CHECK_INT(clock_shift(100 * NSEC_PER_MSEC), 0);
	CHECK_INT(clock_shift(200 * NSEC_PER_MSEC), -CLOCK_SHIFT_DAY);
	CHECK_INT(clock_shift(300 * NSEC_PER_MSEC), 0);
	CHECK_INT(clock_shift(400 * NSEC_PER_MSEC), CLOCK_SHIFT_DAY);
	CHECK(setenv("NACRE_CLOCK_SWING", "x", 1) == 0);
	CHECK_INT(clock_shift(0), 0);
}

/* The day ahead and the day behind are both seen, and the monotonic clock only goes on. */
static void shows_in_the_wall_clock(void)
{
	nsec_t true_time, mono = clock_mono();
	bool ahead = false, behind = false;

	CHECK(unsetenv("NACRE_CLOCK_SWING") == 0);
	true_time = clock_real();
	CHECK(setenv("NACRE_CLOCK_SWING", "1", 1) == 0);
	while (!ahead || !behind) {
		nsec_t now = clock_real(), next = clock_mono();

		ahead = ahead || now > true_time + CLOCK_SHIFT_DAY / 2;
		behind = behind || now < true_time - CLOCK_SHIFT_DAY / 2;
		CHECK(next >= mono && next < mono + CLOCK_SHIFT_DAY / 2);
	}
}

UNIT_MAIN({ "swings", swings }, { "shows in the wall clock", shows_in_the_wall_clock })
