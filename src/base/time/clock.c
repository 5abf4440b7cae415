/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/time/clock_shift.h"

static nsec_t (*clock_source)(int clock_id);

static nsec_t clock_read(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

nsec_t clock_mono(void)
{
	return clock_source ? clock_source(CLOCK_MONOTONIC) : clock_read(CLOCK_MONOTONIC);
}

nsec_t clock_real(void)
{
	if (clock_source)
		return clock_source(CLOCK_REALTIME);
	return clock_read(CLOCK_REALTIME) + (nsec_t)clock_shift(clock_read(CLOCK_MONOTONIC));
}

int clock_set_real(nsec_t real)
{
	const struct timespec ts = { .tv_sec = (time_t)(real / NSEC_PER_SEC),
				     .tv_nsec = (long)(real % NSEC_PER_SEC) };

	return clock_settime(CLOCK_REALTIME, &ts) < 0 ? -errno : 0;
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

struct clock_cursor {
	const char *p, *end;
};

static bool clock_take(struct clock_cursor *c, char wanted)
{
	if (c->p == c->end || *c->p != wanted)
		return false;
	c->p++;
	return true;
}

/* A number of exactly n digits. */
static bool clock_number(struct clock_cursor *c, int n, unsigned max, unsigned *ret)
{
	unsigned value = 0;

	for (int i = 0; i < n; i++) {
		if (c->p == c->end || *c->p < '0' || *c->p > '9')
			return false;
		value = value * 10 + (unsigned)(*c->p++ - '0');
	}
	*ret = value;
	return value <= max;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar, from March on so that leap days are
 * last. */
static int64_t clock_days(unsigned year, unsigned month, unsigned day)
{
	int64_t y = (int64_t)year - (month <= 2);
	int64_t era = y / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year =
		(153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       day_of_year - 719468;
}

static bool clock_fraction(struct clock_cursor *c, unsigned *ret)
{
	unsigned value = 0;
	int n = 0;

	for (; c->p < c->end && *c->p >= '0' && *c->p <= '9' && n < 9; n++)
		value = value * 10 + (unsigned)(*c->p++ - '0');
	if (n == 0)
		return false;
	for (; n < 9; n++)
		value *= 10;
	*ret = value;
	return true;
}

/* "Z" or "+02:00": the seconds to take off. */
static bool clock_zone(struct clock_cursor *c, int64_t *ret)
{
	unsigned hour, minute;
	bool east;

	*ret = 0;
	if (clock_take(c, 'Z'))
		return true;
	east = clock_take(c, '+');
	if (!east && !clock_take(c, '-'))
		return false;
	if (!clock_number(c, 2, 23, &hour) || !clock_take(c, ':') ||
	    !clock_number(c, 2, 59, &minute))
		return false;
	*ret = (int64_t)(hour * 3600 + minute * 60) * (east ? 1 : -1);
	return true;
}

static bool clock_text(struct clock_cursor *c, nsec_t *ret)
{
	unsigned year, month, day, hour, minute, second, fraction = 0;
	int64_t zone, seconds;

	if (!clock_number(c, 4, 2553, &year) || !clock_take(c, '-') ||
	    !clock_number(c, 2, 12, &month) || !clock_take(c, '-') ||
	    !clock_number(c, 2, 31, &day) || !clock_take(c, 'T') ||
	    !clock_number(c, 2, 23, &hour) || !clock_take(c, ':') ||
	    !clock_number(c, 2, 59, &minute) || !clock_take(c, ':') ||
	    !clock_number(c, 2, 60, &second))
		return false;
	if (clock_take(c, '.') && !clock_fraction(c, &fraction))
		return false;
	if (!clock_zone(c, &zone) || month == 0 || day == 0)
		return false;
	seconds = clock_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone;
	if (seconds < 0)
		return false;
	*ret = (nsec_t)seconds * NSEC_PER_SEC + fraction;
	return true;
}

int clock_parse(const char *s, size_t len, nsec_t *ret)
{
	struct clock_cursor c = { .p = s, .end = s + len };
	nsec_t time;

	if (!clock_text(&c, &time) || c.p != c.end)
		return -EINVAL;
	*ret = time;
	return 0;
}
