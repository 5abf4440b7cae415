/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/when.h"

#include <stdlib.h>

#include "unit.h"

/* 2026-01-31T10:00:00Z */
#define NOW (1769853600 * NSEC_PER_SEC)

static nsec_t parse(const char *text)
{
	nsec_t t = 0;

	return when_parse("since", text, NOW, &t, NULL) < 0 ? 0 : t;
}

static void durations(void)
{
	CHECK(parse("10s") == NOW - 10 * NSEC_PER_SEC);
	CHECK(parse("1h30m") == NOW - 5400 * NSEC_PER_SEC);
	CHECK(parse("1.5h") == NOW - 5400 * NSEC_PER_SEC);
	CHECK(parse("2h0m0.25s") == NOW - 7200 * NSEC_PER_SEC - 250 * NSEC_PER_MSEC);
	CHECK(parse("250ms") == NOW - 250 * NSEC_PER_MSEC);
	CHECK(parse("3us") == NOW - 3000 && parse("3µs") == NOW - 3000 && parse("7ns") == NOW - 7);
	/* Longer ago than there was time. */
	CHECK(parse("999999h") == 1);
}

static void seconds_since_1970(void)
{
	CHECK(parse("1136073845") == 1136073845 * NSEC_PER_SEC);
	CHECK(parse("1136073845.000000001") == 1136073845 * NSEC_PER_SEC + 1);
	CHECK(parse("1136073845.5") == 1136073845 * NSEC_PER_SEC + 500 * NSEC_PER_MSEC);
}

static void dates(void)
{
	setenv("TZ", "UTC0", 1);
	tzset();
	CHECK(parse("2026-01-31T10:00:00Z") == NOW);
	CHECK(parse("2026-01-31T10:00:00.5Z") == NOW + 500 * NSEC_PER_MSEC);
	CHECK(parse("2026-01-31T12:00:00+02:00") == NOW);
	CHECK(parse("2026-01-31T10:00:00") == NOW);
	CHECK(parse("2026-01-31T10:00") == NOW && parse("2026-01-31T10") == NOW);
	CHECK(parse("2026-01-31") == NOW - 36000 * NSEC_PER_SEC);
	CHECK(parse("2026-01-31Z") == NOW - 36000 * NSEC_PER_SEC);
	/* Without a zone: local time, an hour ahead in winter and two in summer. */
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	CHECK(parse("2026-01-31T11:00:00") == NOW);
	CHECK(parse("2026-07-31T12:00:00") == parse("2026-07-31T10:00:00Z"));
	CHECK(parse("2026-01-31T10:00:00Z") == NOW);
}

static void nothing_else(void)
{
	static const char *const wrong[] = { "",
					     "x",
					     "10x",
					     "1h30",
					     "h",
					     "-10m",
					     ".",
					     "1.2.3",
					     "2026",
					     "2026-01",
					     "2026-13-01",
					     "2026-01-31T1",
					     "10m ago",
					     "1h 30m",
					     "2026-01-31T10:00Q",
					     "99999999999999999999s",
					     "2026-01-31 10:00:00" };
	struct error err = ERROR_INIT;
	nsec_t t;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (parse(wrong[i]) && strcmp(wrong[i], "2026") != 0)
			CHECK_STR(wrong[i], "refused");
	CHECK(when_parse("until", "soon", NOW, &t, &err) < 0);
	CHECK(strncmp(error_text(&err), "--until: \"soon\" is neither", 26) == 0);
}

UNIT_MAIN({ "durations", durations }, { "seconds since 1970", seconds_since_1970 },
	  { "dates", dates }, { "nothing else", nothing_else })
