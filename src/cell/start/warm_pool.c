/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/warm_pool.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/process/thread.h"

enum warm_pool_event {
	WARM_POOL_WANT,
	WARM_POOL_MADE,
	WARM_POOL_TAKE,
	WARM_POOL_DROP,
	WARM_POOL_HOLD,
	WARM_POOL_LET_GO,
	WARM_POOL_EVENT_COUNT
};

#define NEVER WARM_POOL_STATE_COUNT

static const enum warm_pool_state edges[][WARM_POOL_EVENT_COUNT] = {
	[WARM_POOL_NONE] = { WARM_POOL_WANTED, NEVER, NEVER, WARM_POOL_NONE, WARM_POOL_HELD,
			     WARM_POOL_NONE },
	[WARM_POOL_WANTED] = { WARM_POOL_WANTED, WARM_POOL_READY, NEVER, WARM_POOL_NONE,
			       WARM_POOL_HELD, WARM_POOL_WANTED },
	[WARM_POOL_READY] = { WARM_POOL_READY, NEVER, WARM_POOL_NONE, WARM_POOL_NONE,
			      WARM_POOL_HELD, WARM_POOL_READY },
	[WARM_POOL_HELD] = { WARM_POOL_HELD, NEVER, NEVER, WARM_POOL_HELD, WARM_POOL_HELD,
			     WARM_POOL_NONE },
};
_Static_assert(ARRAY_SIZE(edges) == WARM_POOL_STATE_COUNT, "each state has its edges");

static const nsec_t warm_pool_wait[] = {
	[WARM_POOL_NONE] = NSEC_NEVER,
	[WARM_POOL_WANTED] = NSEC_NEVER,
	[WARM_POOL_READY] = WARM_POOL_LIFE,
	[WARM_POOL_HELD] = NSEC_NEVER,
};
_Static_assert(ARRAY_SIZE(warm_pool_wait) == WARM_POOL_STATE_COUNT, "each state has its time");

static const nsec_t warm_pool_wait_shared[] = {
	[WARM_POOL_NONE] = NSEC_NEVER,
	[WARM_POOL_WANTED] = 0,
	[WARM_POOL_READY] = NSEC_NEVER,
	[WARM_POOL_HELD] = NSEC_NEVER,
};
_Static_assert(ARRAY_SIZE(warm_pool_wait_shared) == WARM_POOL_STATE_COUNT,
	       "each state has its time");

static void warm_pool_enter(struct warm_pool *s, enum warm_pool_event event)
{
	enum warm_pool_state to = edges[s->state][event];

	assert(to != NEVER);
	s->state = to;
	if (to != WARM_POOL_READY)
		isolate_prepared_done(&s->prepared);
	loop_timer_set(&s->timer,
		       s->maker.shm_fd < 0 ? warm_pool_wait[to] : warm_pool_wait_shared[to]);
}

static int warm_pool_make(struct warm_pool *s, struct isolate_prepared *ret, struct error *err)
{
	int r = FAILPOINT("cell.warm_pool");

	if (r < 0)
		(void)error_set(err, r, "make a prepared set");
	else
		r = isolate_prepared_make(ret, &s->maker, err);
	FAILPOINT_AFTER("cell.warm_pool");
	return r;
}

/* Takes over what was made, or r < 0: who comes makes its own. */
static void warm_pool_put(struct warm_pool *s, struct isolate_prepared *made, int r,
			  const struct error *err)
{
	if (r < 0) {
		log_debug("cannot make ahead of need what a container has", LOG_ERR(err));
		warm_pool_enter(s, WARM_POOL_DROP);
		return;
	}
	s->prepared = *made;
	*made = (struct isolate_prepared)ISOLATE_PREPARED_NONE;
	warm_pool_enter(s, WARM_POOL_MADE);
}

static void warm_pool_wake(struct warm_pool *s)
{
	if (s->waiter)
		loop_timer_set(TAKE_PTR(s->waiter), 0);
}

/* To whoever has a use for it that nobody waits for. */
static void warm_pool_offer(struct warm_pool *s)
{
	if (s->state == WARM_POOL_READY && !s->waiter && s->n_starts == 0 && s->on_ready)
		s->on_ready(s->userdata);
}

/* On the thread. */
static void warm_pool_run(struct pool_work *work)
{
	struct warm_pool *s = container_of(work, struct warm_pool, work);

	(void)thread_be_patient();
	hurry_stand(&s->hurry);
	s->err = (struct error)ERROR_INIT;
	s->r = warm_pool_make(s, &s->made, &s->err);
}

static void warm_pool_ran(struct pool_work *work)
{
	struct warm_pool *s = container_of(work, struct warm_pool, work);

	if (s->state == WARM_POOL_WANTED)
		warm_pool_put(s, &s->made, s->r, &s->err);
	isolate_prepared_done(&s->made);
	warm_pool_offer(s);
	warm_pool_wake(s);
}

static void warm_pool_begin(struct warm_pool *s)
{
	if (s->state == WARM_POOL_WANTED && !s->work.busy)
		pool_submit(s->pool, &s->work);
}

/* The pause is over. */
static void warm_pool_on_pause(struct loop_pause *pause)
{
	struct warm_pool *s = container_of(pause, struct warm_pool, pause);

	if (s->n_starts == 0)
		hurry_set(&s->hurry, false);
	warm_pool_begin(s);
	warm_pool_offer(s);
}

static int warm_pool_open(struct warm_pool *s)
{
	int r;

	if (s->pool)
		return 0;
	r = loop_pause_init(&s->pause, s->loop, warm_pool_on_pause);
	if (r < 0)
		return r;
	r = pool_new(&s->pool, s->loop, 1);
	if (r < 0)
		loop_pause_done(&s->pause);
	return r;
}

static void warm_pool_close(struct warm_pool *s)
{
	loop_pause_done(&s->pause);
	s->pool = pool_free(s->pool);
	isolate_prepared_maker_done(&s->maker);
}

static void warm_pool_pause(struct warm_pool *s)
{
	if (warm_pool_open(s) < 0)
		warm_pool_enter(s, WARM_POOL_DROP);
	else
		loop_pause_begin(&s->pause, WARM_POOL_PAUSE);
}

static void warm_pool_on_time(struct loop_timer *timer)
{
	struct warm_pool *s = container_of(timer, struct warm_pool, timer);
	struct isolate_prepared made = ISOLATE_PREPARED_NONE;
	struct error err = ERROR_INIT;
	int r;

	if (s->state != WARM_POOL_WANTED) {
		isolate_prepared_maker_done(&s->maker);
		warm_pool_enter(s, WARM_POOL_DROP);
		return;
	}
	r = warm_pool_make(s, &made, &err);
	isolate_prepared_maker_done(&s->maker);
	warm_pool_put(s, &made, r, &err);
}

void warm_pool_init(struct warm_pool *s, struct loop *loop, int proc_fd, int shm_fd)
{
	*s = (struct warm_pool){ .prepared = ISOLATE_PREPARED_NONE,
				 .loop = loop,
				 .maker = { .proc_fd = proc_fd,
					    .shm_fd = shm_fd,
					    .hurry = &s->hurry,
					    .mold_fd = -1 },
				 .pause = { .fd = -1 },
				 .hurry = HURRY_INIT,
				 .work = { .run = warm_pool_run, .done = warm_pool_ran },
				 .made = ISOLATE_PREPARED_NONE };
	loop_timer_init(&s->timer, loop, warm_pool_on_time);
}

void warm_pool_done(struct warm_pool *s)
{
	warm_pool_hold(s, true);
	loop_timer_done(&s->timer);
}

void warm_pool_want(struct warm_pool *s)
{
	bool pauses =
		(s->state == WARM_POOL_NONE || s->state == WARM_POOL_READY) && s->maker.shm_fd < 0;

	warm_pool_enter(s, WARM_POOL_WANT);
	if (pauses)
		warm_pool_pause(s);
}

void warm_pool_want_now(struct warm_pool *s)
{
	warm_pool_enter(s, WARM_POOL_WANT);
	if (s->state == WARM_POOL_WANTED && s->pool)
		warm_pool_begin(s);
}

int warm_pool_take(struct warm_pool *s, struct isolate_prepared *ret)
{
	if (s->state != WARM_POOL_READY)
		return -ENOENT;
	*ret = s->prepared;
	s->prepared = (struct isolate_prepared)ISOLATE_PREPARED_NONE;
	warm_pool_enter(s, WARM_POOL_TAKE);
	return 0;
}

bool warm_pool_await(struct warm_pool *s, struct loop_timer *timer)
{
	if (s->state != WARM_POOL_WANTED || s->waiter)
		return false;
	s->waiter = timer;
	hurry_set(&s->hurry, false);
	warm_pool_begin(s);
	loop_timer_set(timer, WARM_POOL_PATIENCE);
	return true;
}

void warm_pool_leave(struct warm_pool *s, const struct loop_timer *timer)
{
	if (s->waiter == timer)
		s->waiter = NULL;
}

void warm_pool_start_begins(struct warm_pool *s)
{
	if (s->n_starts++ == 0)
		hurry_set(&s->hurry, true);
}

void warm_pool_start_ends(struct warm_pool *s)
{
	assert(s->n_starts > 0);
	if (--s->n_starts > 0)
		return;
	if (s->pool)
		warm_pool_pause(s);
	else
		hurry_set(&s->hurry, false);
}

void warm_pool_hold(struct warm_pool *s, bool held)
{
	warm_pool_enter(s, held ? WARM_POOL_HOLD : WARM_POOL_LET_GO);
	if (!held)
		return;
	hurry_set(&s->hurry, false);
	warm_pool_close(s);
	warm_pool_wake(s);
}
