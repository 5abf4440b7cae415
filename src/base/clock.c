/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static nsec_t (*clock_source)(int clock_id);

static nsec_t clock_read(clockid_t id)
{
	struct timespec ts;

	if (clock_source)
		return clock_source(id);
	(void)clock_gettime(id, &ts);
	return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

nsec_t clock_mono(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

nsec_t clock_real(void)
{
	return clock_read(CLOCK_REALTIME);
}

void clock_set_source(nsec_t (*source)(int clock_id))
{
	clock_source = source;
}

/*
 * Days since 1970-01-01 to a civil date, in the proleptic Gregorian calendar, counted in years that
 * begin in March so that the leap day comes last. No libc: gmtime_r reads the time zone database of
 * whatever root it runs in.
 */
static void clock_civil(uint64_t days, unsigned *year, unsigned *month, unsigned *day)
{
	uint64_t z = days + 719468;
	uint64_t era = z / 146097;
	unsigned doe = (unsigned)(z - era * 146097);
	unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	unsigned mp = (5 * doy + 2) / 153;

	*day = doy - (153 * mp + 2) / 5 + 1;
	*month = mp < 10 ? mp + 3 : mp - 9;
	*year = yoe + (unsigned)era * 400 + (*month <= 2 ? 1 : 0);
}

static void clock_digits(char *to, unsigned value, int n)
{
	for (int i = n - 1; i >= 0; i--) {
		to[i] = (char)('0' + value % 10);
		value /= 10;
	}
}

void clock_format(char buf[CLOCK_TEXT_SIZE], nsec_t real)
{
	static const char shape[CLOCK_TEXT_SIZE] = "0000-00-00T00:00:00.000000000Z";
	uint64_t sec = real / NSEC_PER_SEC;
	unsigned year, month, day, rest = (unsigned)(sec % 86400);

	for (size_t i = 0; i < CLOCK_TEXT_SIZE; i++)
		buf[i] = shape[i];
	clock_civil(sec / 86400, &year, &month, &day);
	clock_digits(buf, year, 4);
	clock_digits(buf + 5, month, 2);
	clock_digits(buf + 8, day, 2);
	clock_digits(buf + 11, rest / 3600, 2);
	clock_digits(buf + 14, rest / 60 % 60, 2);
	clock_digits(buf + 17, rest % 60, 2);
	clock_digits(buf + 20, (unsigned)(real % NSEC_PER_SEC), 9);
}
