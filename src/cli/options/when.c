/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/when.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "base/text/str.h"

#define WHEN_DIGITS "0123456789"
#define WHEN_SIZE 64

/* A decimal number of units, rounded down to nanoseconds, from *p on. */
static int when_number(const char **p, nsec_t unit, nsec_t *ret)
{
	nsec_t whole = 0, part = 0, scale = unit;
	const char *begin = *p;

	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(whole, (nsec_t)10, &whole) ||
		    __builtin_add_overflow(whole, (nsec_t)(**p - '0'), &whole))
			return -ERANGE;
	if (**p == '.')
		for ((*p)++; **p >= '0' && **p <= '9'; (*p)++) {
			scale /= 10;
			part += scale * (nsec_t)(**p - '0');
		}
	if (strcspn(begin, WHEN_DIGITS) >= (size_t)(*p - begin))
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit, &whole) || __builtin_add_overflow(whole, part, ret))
		return -ERANGE;
	return 0;
}

/* "1h30m". -EINVAL for what has another form. */
static int when_duration(const char *text, nsec_t *ret)
{
	static const struct {
		const char *name;
		nsec_t unit;
	} units[] = {
		{ "ns", 1 },
		{ "us", NSEC_PER_USEC },
		{ "µs", NSEC_PER_USEC },
		{ "ms", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC },
		{ "m", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC },
	};
	nsec_t sum = 0;

	do {
		const char *word = text + strspn(text, WHEN_DIGITS ".");
		size_t len = strcspn(word, WHEN_DIGITS "."), i = 0;
		nsec_t one;
		int r;

		while (i < ARRAY_SIZE(units) &&
		       (strlen(units[i].name) != len || strncmp(units[i].name, word, len) != 0))
			i++;
		if (i == ARRAY_SIZE(units))
			return -EINVAL;
		r = when_number(&text, units[i].unit, &one);
		if (r < 0)
			return r;
		if (text != word || __builtin_add_overflow(sum, one, &sum))
			return -EINVAL;
		text = word + len;
	} while (*text);
	*ret = sum;
	return 0;
}

static int when_unix(const char *text, nsec_t *ret)
{
	int r = when_number(&text, NSEC_PER_SEC, ret);

	return r < 0 ? r : *text ? -EINVAL : 0;
}

/* How far local time is ahead of UTC, in seconds, at a local time that was read as UTC. */
static long when_local_offset(nsec_t as_utc)
{
	time_t t = (time_t)(as_utc / NSEC_PER_SEC);
	struct tm tm;

	/* Twice: the first offset may be that of the other side of a change. */
	for (int i = 0; i < 2; i++) {
		if (!localtime_r(&t, &tm))
			return 0;
		t = (time_t)(as_utc / NSEC_PER_SEC) - tm.tm_gmtoff;
	}
	return localtime_r(&t, &tm) ? tm.tm_gmtoff : 0;
}

/* RFC 3339 with what may be left out filled in. */
static int when_date(const char *text, nsec_t *ret)
{
	static const char midnight[] = "T00:00:00";
	size_t day = strspn(text, WHEN_DIGITS "-"), len;
	const char *time = text + MIN(day, (size_t)10), *zone;
	char full[WHEN_SIZE];
	nsec_t t;
	int r;

	if (day < 10)
		return -EINVAL;
	zone = *time == 'T' ? time + 1 + strspn(time + 1, WHEN_DIGITS ":.") : time;
	len = (size_t)(zone - time);
	/* T10, T10:00 and T10:00:00; a fraction only behind seconds. */
	if (len != 0 && len != 3 && len != 6 && len < 9)
		return -EINVAL;
	r = str_printf(full, sizeof(full), "%.10s%.*s%s%s", text, (int)len, time,
		       len < 9 ? midnight + len : "", *zone ? zone : "Z");
	if (r < 0 || clock_parse(full, strlen(full), &t) < 0)
		return -EINVAL;
	if (!*zone)
		t -= (nsec_t)(int64_t)when_local_offset(t) * NSEC_PER_SEC;
	*ret = t;
	return 0;
}

int when_parse(const char *option, const char *text, nsec_t now, nsec_t *ret, struct error *err)
{
	nsec_t ago;

	if (when_duration(text, &ago) == 0) {
		*ret = ago < now ? now - ago : 1;
		return 0;
	}
	if (when_unix(text, ret) == 0 || when_date(text, ret) == 0)
		return 0;
	return error_refuse(
		err, ERROR_INVALID,
		"--%s: \"%.64s\" is neither a duration such as 1h30m, nor seconds since "
		"1970, nor a time such as 2026-01-31T10:00:00Z",
		option, text);
}
