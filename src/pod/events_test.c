/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/events.h"

#include "unit.h"

static uint64_t heard[2];

static void first(struct event_listener *l, const struct event *e)
{
	heard[0] = e->sequence;
	if (e->sequence == 2)
		events_remove(l);
}

static void second(struct event_listener *l, const struct event *e)
{
	(void)l;
	heard[1] = e->sequence;
}

static void tells_everybody_in_order(void)
{
	struct event_listener a = { .fn = first }, b = { .fn = second };
	struct event e = { .object = "workload" };
	struct events all;

	events_init(&all);
	events_publish(&all, &e);
	CHECK_INT(heard[1], 0);
	events_add(&all, &a);
	events_add(&all, &b);
	events_publish(&all, &e);
	CHECK_INT(heard[0], 2);
	CHECK_INT(heard[1], 2);
	CHECK(e.time > 0);
	/* The first took itself back from within its callback. */
	events_publish(&all, &e);
	CHECK_INT(heard[0], 2);
	CHECK_INT(heard[1], 3);
	events_remove(&a);
	events_remove(&b);
}

UNIT_MAIN({ "tells everybody in order", tells_everybody_in_order })
