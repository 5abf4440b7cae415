/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/stock.h"

#include <assert.h>
#include <errno.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/macros.h"

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
	[STOCK_WANTED] = STOCK_PAUSE,
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
	loop_timer_set(&s->timer, s->shm_fd < 0 ? stock_wait[to] : stock_wait_shared[to]);
}

static void stock_make(struct stock *s)
{
	struct error err = ERROR_INIT;
	int r = FAILPOINT("cell.stock");

	if (r == 0 && s->shm_fd < 0)
		r = isolate_kit_make(&s->kit, s->place_fd, s->proc_fd, &err);
	else if (r == 0)
		r = isolate_kit_make_shared(&s->kit, s->place_fd, s->proc_fd, s->shm_fd, &err);
	FAILPOINT_AFTER("cell.stock");
	if (r == 0) {
		stock_enter(s, STOCK_MADE);
		return;
	}
	/* Who comes makes its own. */
	log_debug("cannot make ahead of need what a container has", LOG_ERR(&err));
	stock_enter(s, STOCK_DROP);
}

static void stock_on_time(struct loop_timer *timer)
{
	struct stock *s = container_of(timer, struct stock, timer);

	if (s->state == STOCK_WANTED)
		stock_make(s);
	else
		stock_enter(s, STOCK_DROP);
}

void stock_init(struct stock *s, struct loop *loop, int place_fd, int proc_fd, int shm_fd)
{
	*s = (struct stock){
		.kit = ISOLATE_KIT_NONE, .place_fd = place_fd, .proc_fd = proc_fd, .shm_fd = shm_fd
	};
	loop_timer_init(&s->timer, loop, stock_on_time);
}

void stock_done(struct stock *s)
{
	loop_timer_done(&s->timer);
	isolate_kit_done(&s->kit);
}

void stock_want(struct stock *s)
{
	stock_enter(s, STOCK_WANT);
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

void stock_hold(struct stock *s, bool held)
{
	stock_enter(s, held ? STOCK_HOLD : STOCK_LET_GO);
}
