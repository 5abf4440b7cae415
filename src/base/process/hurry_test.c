/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/hurry.h"

#include <time.h>

#include "base/macros.h"
#include "base/process/thread.h"
#include "unit.h"

static struct hurry hurry = HURRY_INIT;

static void *stands(void *arg)
{
	nsec_t *took = arg;
	nsec_t begin = clock_mono();

	hurry_stand(&hurry);
	*took = clock_mono() - begin;
	return NULL;
}

static nsec_t time_of_one(void)
{
	nsec_t took = 0;

	(void)stands(&took);
	return took;
}

static void nobody_is_waited_for(void)
{
	hurry_stand(NULL);
	hurry_set(&hurry, true);
	hurry_set(&hurry, false);
	CHECK(time_of_one() < HURRY_MAX);
}

static void stands_still_and_no_longer_than_that(void)
{
	hurry_set(&hurry, true);
	CHECK(time_of_one() >= HURRY_MAX);
	CHECK(time_of_one() >= HURRY_MAX);
	hurry_set(&hurry, false);
}

/* The end wakes it: many times, since each may be late. */
static void goes_on_with_the_end(void)
{
	unsigned early = 0;

	for (unsigned i = 0; i < 200 && early == 0; i++) {
		const struct timespec little = { .tv_nsec = (long)(HURRY_MAX / 5) };
		nsec_t took = 0;
		pthread_t thread;

		hurry_set(&hurry, true);
		CHECK_INT(thread_start(&thread, stands, &took), 0);
		(void)nanosleep(&little, NULL);
		hurry_set(&hurry, false);
		(void)pthread_join(thread, NULL);
		early += took < HURRY_MAX;
	}
	CHECK(early > 0);
}

UNIT_MAIN({ "nobody is waited for", nobody_is_waited_for },
	  { "stands still and no longer than that", stands_still_and_no_longer_than_that },
	  { "goes on with the end", goes_on_with_the_end })
