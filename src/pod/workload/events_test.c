/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/events.h"

#include "base/text/str.h"
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
	static struct events all;
	struct event_listener a = { .fn = first }, b = { .fn = second };
	struct event e = { .object = "workload" };

	CHECK_INT(events_init(&all), 0);
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
	events_done(&all);
}

static void keeps_the_last_ones(void)
{
	static struct events all;
	char name[16];
	struct event e = { .object = "container",
			   .kind = "pod",
			   .state = "running",
			   .name = name,
			   .workload = "w" };

	CHECK_INT(events_init(&all), 0);
	CHECK(!events_get(&all, 0));
	CHECK(!events_get(&all, 1));
	for (unsigned n = 1; n <= EVENTS_KEPT + 2; n++) {
		(void)str_printf(name, sizeof(name), "c%u", n);
		events_publish(&all, &e);
	}
	CHECK(!events_get(&all, 0));
	CHECK(!events_get(&all, 2));
	CHECK(!events_get(&all, EVENTS_KEPT + 3));
	CHECK_STR(events_get(&all, 3)->name, "c3");
	CHECK_STR(events_get(&all, EVENTS_KEPT + 2)->name, "c4098");
	CHECK_STR(events_get(&all, 3)->workload, "w");
	CHECK_STR(events_get(&all, 3)->reason, "");
	events_done(&all);
}

static void tokens_name_a_place(void)
{
	static struct events all, other;
	static const char *const bad[] = { "",
					   "x",
					   "0123456789abcdef",
					   "0123456789abcdef-",
					   "0123456789abcdef-x",
					   "0123456789ABCDEF-1",
					   "0123456789abcdef--1",
					   "0123456789abcdef-99999999999999999999" };
	char token[EVENTS_TOKEN_SIZE], foreign[EVENTS_TOKEN_SIZE];
	struct event e = { .object = "image" };
	struct error err = ERROR_INIT;
	uint64_t next = 0;

	CHECK_INT(events_init(&all), 0);
	CHECK_INT(events_init(&other), 0);
	events_token(&all, 0, token);
	CHECK_INT(events_resume(&all, token, &next, &err), 0);
	CHECK_INT(next, 1);
	for (unsigned n = 0; n < EVENTS_KEPT; n++)
		events_publish(&all, &e);
	CHECK_INT(events_resume(&all, token, &next, &err), 0);
	events_publish(&all, &e);
	CHECK(events_resume(&all, token, &next, &err) < 0);
	CHECK_INT(err.kind, ERROR_RANGE);
	CHECK_STR(err.field, "resume_token");
	events_token(&all, EVENTS_KEPT + 1, token);
	CHECK_INT(events_resume(&all, token, &next, &err), 0);
	CHECK_INT(next, EVENTS_KEPT + 2);
	/* One that is yet to come, and one of another life. */
	events_token(&all, EVENTS_KEPT + 2, token);
	CHECK(events_resume(&all, token, &next, &err) < 0);
	CHECK_INT(err.kind, ERROR_RANGE);
	events_token(&other, 0, foreign);
	CHECK(events_resume(&all, foreign, &next, &err) < 0);
	CHECK_INT(err.kind, ERROR_RANGE);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK(events_resume(&all, bad[i], &next, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
	}
	events_done(&all);
	events_done(&other);
}

UNIT_MAIN({ "tells everybody in order", tells_everybody_in_order },
	  { "keeps the last ones", keeps_the_last_ones },
	  { "tokens name a place", tokens_name_a_place })
