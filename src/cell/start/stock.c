/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/stock.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/process/thread.h"

enum stock_event {
	STOCK_WANT,
	STOCK_MADE,
	STOCK_TAKE,
	STOCK_DROP,
	STOCK_HOLD,
	STOCK_LET_GO,
	STOCK_EVENT_COUNT
};

#define NEVER STOCK_STATE_COUNT

static const enum stock_state edges[][STOCK_EVENT_COUNT] = {
	[STOCK_NONE] = { STOCK_WANTED, NEVER, NEVER, STOCK_NONE, STOCK_HELD, STOCK_NONE },
	[STOCK_WANTED] = { STOCK_WANTED, STOCK_READY, NEVER, STOCK_NONE, STOCK_HELD, STOCK_WANTED },
	[STOCK_READY] = { STOCK_READY, NEVER, STOCK_NONE, STOCK_NONE, STOCK_HELD, STOCK_READY },
	[STOCK_HELD] = { STOCK_HELD, NEVER, NEVER, STOCK_HELD, STOCK_HELD, STOCK_NONE },
};
_Static_assert(ARRAY_SIZE(edges) == STOCK_STATE_COUNT, "each state has its edges");

static const nsec_t stock_wait[] = {
	[STOCK_NONE] = NSEC_NEVER,
	[STOCK_WANTED] = NSEC_NEVER,
	[STOCK_READY] = STOCK_LIFE,
	[STOCK_HELD] = NSEC_NEVER,
};
_Static_assert(ARRAY_SIZE(stock_wait) == STOCK_STATE_COUNT, "each state has its time");

static const nsec_t stock_wait_shared[] = {
	[STOCK_NONE] = NSEC_NEVER,
	[STOCK_WANTED] = 0,
	[STOCK_READY] = NSEC_NEVER,
	[STOCK_HELD] = NSEC_NEVER,
};
_Static_assert(ARRAY_SIZE(stock_wait_shared) == STOCK_STATE_COUNT, "each state has its time");

static void stock_enter(struct stock *s, enum stock_event event)
{
	enum stock_state to = edges[s->state][event];

	assert(to != NEVER);
	s->state = to;
	if (to != STOCK_READY)
		isolate_kit_done(&s->kit);
	loop_timer_set(&s->timer, s->maker.shm_fd < 0 ? stock_wait[to] : stock_wait_shared[to]);
}

static int stock_make(struct stock *s, struct isolate_kit *ret, struct error *err)
{
	int r = FAILPOINT("cell.stock");

	if (r < 0)
		(void)error_set(err, r, "make a kit");
	else
		r = isolate_kit_make(ret, &s->maker, err);
	FAILPOINT_AFTER("cell.stock");
	return r;
}

/* Takes over what was made, or r < 0: who comes makes its own. */
static void stock_put(struct stock *s, struct isolate_kit *made, int r, const struct error *err)
{
	if (r < 0) {
		log_debug("cannot make ahead of need what a container has", LOG_ERR(err));
		stock_enter(s, STOCK_DROP);
		return;
	}
	s->kit = *made;
	*made = (struct isolate_kit)ISOLATE_KIT_NONE;
	stock_enter(s, STOCK_MADE);
}

static void stock_wake(struct stock *s)
{
	if (s->waiter)
		loop_timer_set(TAKE_PTR(s->waiter), 0);
}

/* To whoever has a use for it that nobody waits for. */
static void stock_offer(struct stock *s)
{
	if (s->state == STOCK_READY && !s->waiter && s->n_starts == 0 && s->on_ready)
		s->on_ready(s->userdata);
}

/* On the thread. */
static void stock_run(struct pool_work *work)
{
	struct stock *s = container_of(work, struct stock, work);

	(void)thread_be_patient();
	hurry_stand(&s->hurry);
	s->err = (struct error)ERROR_INIT;
	s->r = stock_make(s, &s->made, &s->err);
}

static void stock_ran(struct pool_work *work)
{
	struct stock *s = container_of(work, struct stock, work);

	if (s->state == STOCK_WANTED)
		stock_put(s, &s->made, s->r, &s->err);
	isolate_kit_done(&s->made);
	stock_offer(s);
	stock_wake(s);
}

static void stock_begin(struct stock *s)
{
	if (s->state == STOCK_WANTED && !s->work.busy)
		pool_submit(s->pool, &s->work);
}

/* The pause is over. */
static void stock_on_pause(struct loop_pause *pause)
{
	struct stock *s = container_of(pause, struct stock, pause);

	if (s->n_starts == 0)
		hurry_set(&s->hurry, false);
	stock_begin(s);
	stock_offer(s);
}

static int stock_open(struct stock *s)
{
	int r;

	if (s->pool)
		return 0;
	r = loop_pause_init(&s->pause, s->loop, stock_on_pause);
	if (r < 0)
		return r;
	r = pool_new(&s->pool, s->loop, 1);
	if (r < 0)
		loop_pause_done(&s->pause);
	return r;
}

static void stock_close(struct stock *s)
{
	loop_pause_done(&s->pause);
	s->pool = pool_free(s->pool);
	isolate_kit_maker_done(&s->maker);
}

static void stock_pause(struct stock *s)
{
	if (stock_open(s) < 0)
		stock_enter(s, STOCK_DROP);
	else
		loop_pause_begin(&s->pause, STOCK_PAUSE);
}

static void stock_on_time(struct loop_timer *timer)
{
	struct stock *s = container_of(timer, struct stock, timer);
	struct isolate_kit made = ISOLATE_KIT_NONE;
	struct error err = ERROR_INIT;
	int r;

	if (s->state != STOCK_WANTED) {
		isolate_kit_maker_done(&s->maker);
		stock_enter(s, STOCK_DROP);
		return;
	}
	r = stock_make(s, &made, &err);
	isolate_kit_maker_done(&s->maker);
	stock_put(s, &made, r, &err);
}

void stock_init(struct stock *s, struct loop *loop, int proc_fd, int shm_fd)
{
	*s = (struct stock){ .kit = ISOLATE_KIT_NONE,
			     .loop = loop,
			     .maker = { .proc_fd = proc_fd,
					.shm_fd = shm_fd,
					.hurry = &s->hurry,
					.mold_fd = -1 },
			     .pause = { .fd = -1 },
			     .hurry = HURRY_INIT,
			     .work = { .run = stock_run, .done = stock_ran },
			     .made = ISOLATE_KIT_NONE };
	loop_timer_init(&s->timer, loop, stock_on_time);
}

void stock_done(struct stock *s)
{
	stock_hold(s, true);
	loop_timer_done(&s->timer);
}

void stock_want(struct stock *s)
{
	bool pauses = (s->state == STOCK_NONE || s->state == STOCK_READY) && s->maker.shm_fd < 0;

	stock_enter(s, STOCK_WANT);
	if (pauses)
		stock_pause(s);
}

void stock_want_now(struct stock *s)
{
	stock_enter(s, STOCK_WANT);
	if (s->state == STOCK_WANTED && s->pool)
		stock_begin(s);
}

int stock_take(struct stock *s, struct isolate_kit *ret)
{
	if (s->state != STOCK_READY)
		return -ENOENT;
	*ret = s->kit;
	s->kit = (struct isolate_kit)ISOLATE_KIT_NONE;
	stock_enter(s, STOCK_TAKE);
	return 0;
}

bool stock_await(struct stock *s, struct loop_timer *timer)
{
	if (s->state != STOCK_WANTED || s->waiter)
		return false;
	s->waiter = timer;
	hurry_set(&s->hurry, false);
	stock_begin(s);
	loop_timer_set(timer, STOCK_PATIENCE);
	return true;
}

void stock_leave(struct stock *s, const struct loop_timer *timer)
{
	if (s->waiter == timer)
		s->waiter = NULL;
}

void stock_start_begins(struct stock *s)
{
	if (s->n_starts++ == 0)
		hurry_set(&s->hurry, true);
}

void stock_start_ends(struct stock *s)
{
	assert(s->n_starts > 0);
	if (--s->n_starts > 0)
		return;
	if (s->pool)
		stock_pause(s);
	else
		hurry_set(&s->hurry, false);
}

void stock_hold(struct stock *s, bool held)
{
	stock_enter(s, held ? STOCK_HOLD : STOCK_LET_GO);
	if (!held)
		return;
	hurry_set(&s->hurry, false);
	stock_close(s);
	stock_wake(s);
}
