/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "unit.h"

static void formats(void)
{
	static const struct {
		uint64_t sec;
		unsigned nsec;
		const char *text;
	} cases[] = {
		{ 0, 0, "1970-01-01T00:00:00.000000000Z" },
		{ 951782400, 1, "2000-02-29T00:00:00.000000001Z" },
		{ 1769853600, 999999999, "2026-01-31T10:00:00.999999999Z" },
		{ 4107542399, 0, "2100-02-28T23:59:59.000000000Z" },
		{ 4107542400, 0, "2100-03-01T00:00:00.000000000Z" },
		{ 18446744073, 709551615, "2554-07-21T23:34:33.709551615Z" },
	};
	char text[CLOCK_TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		clock_format(text, cases[i].sec * NSEC_PER_SEC + cases[i].nsec);
		CHECK_STR(text, cases[i].text);
	}
}

/* Against libc, a day and some seconds at a time up to the year 2554. */
static void agrees_with_libc(void)
{
	unsigned n_wrong = 0;

	for (time_t t = 0; t < 18446744073; t += 86400 + 3607) {
		char ours[CLOCK_TEXT_SIZE], theirs[64];
		struct tm tm;

		clock_format(ours, (nsec_t)t * NSEC_PER_SEC);
		(void)gmtime_r(&t, &tm);
		(void)strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%S.000000000Z", &tm);
		n_wrong += strcmp(ours, theirs) != 0;
	}
	CHECK_INT(n_wrong, 0);
}

static nsec_t fixed(int clock_id)
{
	return clock_id == CLOCK_MONOTONIC ? 1 : 2;
}

static void reads(void)
{
	nsec_t mono = clock_mono();
	time_t now = time(NULL);

	CHECK(clock_mono() >= mono);
	CHECK(clock_real() / NSEC_PER_SEC >= (nsec_t)now - 1);
	clock_set_source(fixed);
	CHECK_INT(clock_mono(), 1);
	CHECK_INT(clock_real(), 2);
	clock_set_source(NULL);
	CHECK(clock_mono() >= mono);
}

static void parses(void)
{
	static const struct {
		const char *text;
		nsec_t time;
	} good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2026-01-31T10:00:00.000000005Z", 1769853600 * NSEC_PER_SEC + 5 },
		{ "2026-01-31T12:00:00.5+02:00", 1769853600 * NSEC_PER_SEC + NSEC_PER_SEC / 2 },
		{ "2026-01-31T08:30:00-01:30", 1769853600 * NSEC_PER_SEC },
		{ "2024-02-29T00:00:00Z", 1709164800 * NSEC_PER_SEC },
	};
	static const char *const bad[] = {
		"",
		"2026-01-31",
		"2026-01-31T10:00:00",
		"2026-13-31T10:00:00Z",
		"2026-00-31T10:00:00Z",
		"2026-01-31T10:00:00.Z",
		"2026-01-31T10:00:00Z ",
		"1969-12-31T23:59:59Z",
		"9999-01-01T00:00:00Z",
		"2026-01-31 10:00:00Z",
	};
	nsec_t time = 0;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CHECK_INT(clock_parse(good[i].text, strlen(good[i].text), &time), 0);
		CHECK_INT(time, good[i].time);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(clock_parse(bad[i], strlen(bad[i]), &time), -EINVAL);
}

UNIT_MAIN({ "formats", formats }, { "parses", parses }, { "agrees with libc", agrees_with_libc },
	  { "reads", reads })
