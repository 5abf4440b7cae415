/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/time/clock.h"
#include "loop/loop.h"
#include "unit.h"

/*
 * The loop on a machine whose wall clock is set: this program has functions of its own that
 * tell the time, which libev finds in place of libc's.
 */

#define DAY 86400

static time_t wall_shift;
static unsigned n_wall;

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ts)
{
	long r = syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_REALTIME) {
		n_wall++;
		ts->tv_sec += wall_shift;
	}
	return (int)r;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict tv,
							void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	*tv = (struct timeval){ .tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / 1000 };
	return 0;
}

struct timing {
	struct loop *loop;
	struct loop_timer soon, late, jump;
	nsec_t began, fired;
	unsigned n_jumps;
	bool late_fired;
};

static void on_soon(struct loop_timer *timer)
{
	struct timing *t = container_of(timer, struct timing, soon);

	t->fired = clock_mono();
	loop_quit(t->loop, 0);
}

static void on_late(struct loop_timer *timer)
{
	container_of(timer, struct timing, late)->late_fired = true;
}

/* A day ahead, right, a day behind, right. */
static void on_jump(struct loop_timer *timer)
{
	static const time_t shifts[] = { DAY, 0, -DAY, 0 };
	struct timing *t = container_of(timer, struct timing, jump);

	wall_shift = shifts[t->n_jumps++ % 4];
	loop_timer_set(timer, 5 * NSEC_PER_MSEC);
}

static void timers_keep_their_time(void)
{
	struct timing t = { .began = clock_mono() };

	CHECK(loop_new(&t.loop) == 0);
	loop_timer_init(&t.soon, t.loop, on_soon);
	loop_timer_init(&t.late, t.loop, on_late);
	loop_timer_init(&t.jump, t.loop, on_jump);
	loop_timer_set(&t.soon, 200 * NSEC_PER_MSEC);
	loop_timer_set(&t.late, 3600 * NSEC_PER_SEC);
	loop_timer_set(&t.jump, 0);
	CHECK_INT(loop_run(t.loop), 0);
	CHECK(t.fired - t.began >= 190 * NSEC_PER_MSEC);
	CHECK(t.fired - t.began < 20 * NSEC_PER_SEC);
	CHECK(!t.late_fired);
	CHECK(t.n_jumps >= 3);
	/* libev looks at the wall clock, and here it was ours. */
	CHECK(n_wall > 0);
	loop_timer_done(&t.soon);
	loop_timer_done(&t.late);
	loop_timer_done(&t.jump);
	(void)loop_free(t.loop);
}

UNIT_MAIN({ "timers keep their time while the wall clock is set", timers_keep_their_time })
