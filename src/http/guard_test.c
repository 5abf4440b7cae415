/* SPDX-License-Identifier: Apache-2.0 */
#include "http/guard.h"

#include "base/macros.h"
#include "http/code.h"
#include "unit.h"

static nsec_t now;

static nsec_t fake_clock(int clock_id)
{
	return now;
}

static const struct {
	unsigned burst, rate;
} limits[GUARD_KIND_COUNT] = {
	[GUARD_SETTINGS] = { HTTP_SETTINGS_BURST, HTTP_SETTINGS_RATE },
	[GUARD_PING] = { HTTP_PINGS_BURST, HTTP_PINGS_RATE },
	[GUARD_EMPTY] = { HTTP_EMPTY_BURST, HTTP_EMPTY_RATE },
	[GUARD_UPDATE] = { HTTP_UPDATES_BURST, HTTP_UPDATES_RATE },
	[GUARD_OTHER] = { HTTP_OTHERS_BURST, HTTP_OTHERS_RATE },
	[GUARD_FAULT] = { HTTP_FAULTS_BURST, HTTP_FAULTS_RATE },
};

static void at_the_limits(void)
{
	struct guard g;

	clock_set_source(fake_clock);
	now = 1000 * NSEC_PER_SEC;
	guard_init(&g);
	for (unsigned kind = 0; kind < GUARD_KIND_COUNT; kind++) {
		for (unsigned i = 0; i < limits[kind].burst; i++)
			CHECK(guard_take(&g, kind));
		CHECK(!guard_take(&g, kind));
		CHECK(!guard_take(&g, kind));
	}
	/* A second allows as many again as the rate says; a quarter of it a quarter. */
	now += NSEC_PER_SEC;
	for (unsigned kind = 0; kind < GUARD_KIND_COUNT; kind++) {
		for (unsigned i = 0; i < limits[kind].rate; i++)
			CHECK(guard_take(&g, kind));
		CHECK(!guard_take(&g, kind));
	}
	/* A long rest allows the burst again, and no more. */
	now += 100000 * NSEC_PER_SEC;
	for (unsigned kind = 0; kind < GUARD_KIND_COUNT; kind++) {
		for (unsigned i = 0; i < limits[kind].burst; i++)
			CHECK(guard_take(&g, kind));
		CHECK(!guard_take(&g, kind));
	}
	clock_set_source(NULL);
}

static void what_answers_to_us_is_no_flood(void)
{
	struct guard g;

	clock_set_source(fake_clock);
	guard_init(&g);
	for (unsigned i = 0; i < 10 * HTTP_UPDATES_BURST; i++) {
		guard_sent(&g);
		CHECK(guard_take(&g, GUARD_SETTINGS));
		CHECK(guard_take(&g, GUARD_PING));
		CHECK(guard_take(&g, GUARD_UPDATE));
		CHECK(guard_take(&g, GUARD_UPDATE));
	}
	/* What answers to nothing is not paid for by that. */
	for (unsigned i = 0; i < HTTP_EMPTY_BURST; i++) {
		guard_sent(&g);
		CHECK(guard_take(&g, GUARD_EMPTY));
		CHECK(guard_take(&g, GUARD_OTHER));
	}
	CHECK(!guard_take(&g, GUARD_EMPTY));
	CHECK(!guard_take(&g, GUARD_OTHER));
	clock_set_source(NULL);
}

static void kinds(void)
{
	static const struct {
		uint8_t type, flags;
		size_t length;
		enum guard_kind kind;
	} table[] = {
		{ 0, 0, 0, GUARD_EMPTY },        { 0, 1, 0, GUARD_KIND_COUNT },
		{ 0, 0, 1, GUARD_KIND_COUNT },   { 0, 8, 256, GUARD_EMPTY },
		{ 0, 8, 257, GUARD_KIND_COUNT }, { 1, 0, 0, GUARD_KIND_COUNT },
		{ 2, 0, 5, GUARD_OTHER },        { 3, 0, 4, GUARD_KIND_COUNT },
		{ 4, 0, 0, GUARD_SETTINGS },     { 4, 1, 0, GUARD_KIND_COUNT },
		{ 6, 0, 8, GUARD_PING },         { 6, 1, 8, GUARD_OTHER },
		{ 7, 0, 8, GUARD_OTHER },        { 8, 0, 4, GUARD_UPDATE },
		{ 9, 0, 0, GUARD_KIND_COUNT },   { 10, 0, 0, GUARD_OTHER },
		{ 255, 255, 0, GUARD_OTHER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		CHECK_INT(guard_kind_of(table[i].type, table[i].flags, table[i].length),
			  table[i].kind);
}

static void ids(void)
{
	struct guard g;

	guard_init(&g);
	CHECK_INT(guard_headers(&g, 1, false), HTTP_NO_ERROR);
	CHECK_INT(guard_headers(&g, 1, true), HTTP_NO_ERROR);
	CHECK_INT(guard_headers(&g, 7, false), HTTP_NO_ERROR);
	/* One that was left out, and one that we have reset. */
	CHECK_INT(guard_headers(&g, 5, false), HTTP_PROTOCOL_ERROR);
	CHECK_INT(guard_data(&g, 7), HTTP_NO_ERROR);
	guard_closed(&g, 7);
	CHECK_INT(guard_headers(&g, 7, false), HTTP_STREAM_CLOSED);
	CHECK_INT(guard_data(&g, 7), HTTP_STREAM_CLOSED);
	CHECK_INT(guard_data(&g, 1), HTTP_NO_ERROR);
	/* The memory has an end. */
	for (int32_t i = 0; i < HTTP_CLOSED_MAX - 1; i++)
		guard_closed(&g, 9 + 2 * i);
	CHECK_INT(guard_data(&g, 7), HTTP_STREAM_CLOSED);
	guard_closed(&g, 1001);
	CHECK_INT(guard_data(&g, 7), HTTP_NO_ERROR);
}

UNIT_MAIN({ "at the limits", at_the_limits },
	  { "what answers to us is no flood", what_answers_to_us_is_no_flood }, { "kinds", kinds },
	  { "ids", ids })
