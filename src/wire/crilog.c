/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/crilog.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

static const char *const stream_words[] = {
	[CRILOG_STDOUT] = "stdout", [CRILOG_STDERR] = "stderr"
};

int crilog_encode(struct buf *to, nsec_t time, enum crilog_stream stream, const void *data,
		  size_t len)
{
	const char *p = data;
	char stamp[CLOCK_TEXT_SIZE];

	clock_format(stamp, time);
	while (len) {
		size_t max = MIN(len, (size_t)CRILOG_PIECE_MAX);
		const char *feed = memchr(p, '\n', max);
		size_t n = feed ? (size_t)(feed - p) : max;
		int r;

		r = buf_addf(to, "%s %s %c ", stamp, stream_words[stream], feed ? 'F' : 'P');
		if (r == 0)
			r = buf_add(to, p, n);
		if (r == 0)
			r = buf_add(to, "\n", 1);
		if (r < 0)
			return r;
		p += n + (feed ? 1 : 0);
		len -= n + (feed ? 1 : 0);
	}
	return 0;
}

/* ---- reading ---- */

struct crilog_cursor {
	const char *p, *end;
};

static bool crilog_take(struct crilog_cursor *c, char wanted)
{
	if (c->p == c->end || *c->p != wanted)
		return false;
	c->p++;
	return true;
}

/* A number of exactly n digits. */
static bool crilog_number(struct crilog_cursor *c, int n, unsigned max, unsigned *ret)
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
static int64_t crilog_days(unsigned year, unsigned month, unsigned day)
{
	int64_t y = (int64_t)year - (month <= 2);
	int64_t era = y / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year =
		(153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       day_of_year - 719468;
}

static bool crilog_fraction(struct crilog_cursor *c, unsigned *ret)
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
static bool crilog_zone(struct crilog_cursor *c, int64_t *ret)
{
	unsigned hour, minute;
	bool east;

	*ret = 0;
	if (crilog_take(c, 'Z'))
		return true;
	east = crilog_take(c, '+');
	if (!east && !crilog_take(c, '-'))
		return false;
	if (!crilog_number(c, 2, 23, &hour) || !crilog_take(c, ':') ||
	    !crilog_number(c, 2, 59, &minute))
		return false;
	*ret = (int64_t)(hour * 3600 + minute * 60) * (east ? 1 : -1);
	return true;
}

static bool crilog_time(struct crilog_cursor *c, nsec_t *ret)
{
	unsigned year, month, day, hour, minute, second, fraction = 0;
	int64_t zone, seconds;

	if (!crilog_number(c, 4, 2553, &year) || !crilog_take(c, '-') ||
	    !crilog_number(c, 2, 12, &month) || !crilog_take(c, '-') ||
	    !crilog_number(c, 2, 31, &day) || !crilog_take(c, 'T') ||
	    !crilog_number(c, 2, 23, &hour) || !crilog_take(c, ':') ||
	    !crilog_number(c, 2, 59, &minute) || !crilog_take(c, ':') ||
	    !crilog_number(c, 2, 60, &second))
		return false;
	if (crilog_take(c, '.') && !crilog_fraction(c, &fraction))
		return false;
	if (!crilog_zone(c, &zone) || month == 0 || day == 0)
		return false;
	seconds = crilog_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone;
	if (seconds < 0)
		return false;
	*ret = (nsec_t)seconds * NSEC_PER_SEC + fraction;
	return true;
}

static bool crilog_stream_word(struct crilog_cursor *c, enum crilog_stream *ret)
{
	if (c->end - c->p < 6)
		return false;
	if (memcmp(c->p, "stdout", 6) == 0)
		*ret = CRILOG_STDOUT;
	else if (memcmp(c->p, "stderr", 6) == 0)
		*ret = CRILOG_STDERR;
	else
		return false;
	c->p += 6;
	return true;
}

/* "F" or "P", perhaps with more tags behind colons. */
static bool crilog_tag(struct crilog_cursor *c, bool *ret_full)
{
	*ret_full = crilog_take(c, 'F');
	if (!*ret_full && !crilog_take(c, 'P'))
		return false;
	if (crilog_take(c, ':'))
		while (c->p < c->end && *c->p != ' ')
			c->p++;
	return true;
}

/* line[len - 1] is the line feed, which is handed out with an F line. */
static int crilog_line(struct crilog_decoder *d, const char *line, size_t len, crilog_line_fn fn,
		       void *userdata)
{
	struct crilog_cursor c = { .p = line, .end = line + len - 1 };
	enum crilog_stream stream;
	nsec_t time;
	bool full;
	size_t n;

	if (!crilog_time(&c, &time) || !crilog_take(&c, ' ') || !crilog_stream_word(&c, &stream) ||
	    !crilog_take(&c, ' ') || !crilog_tag(&c, &full) || !crilog_take(&c, ' ')) {
		d->n_skipped++;
		return 0;
	}
	n = (size_t)(c.end - c.p) + (full ? 1 : 0);
	if (n == 0)
		return 0;
	return fn(userdata, time, stream, (const uint8_t *)c.p, n);
}

/* A chunk without any line feed joins what waits. */
static int crilog_keep(struct crilog_decoder *d, const char *p, size_t len)
{
	if (d->skipping)
		return 0;
	if (d->partial.len + len > CRILOG_LINE_MAX) {
		buf_clear(&d->partial);
		d->skipping = true;
		d->n_skipped++;
		return 0;
	}
	return buf_add(&d->partial, p, len);
}

static int crilog_end_line(struct crilog_decoder *d, const char *p, size_t len, crilog_line_fn fn,
			   void *userdata)
{
	int r;

	if (!d->skipping && d->partial.len == 0 && len <= CRILOG_LINE_MAX)
		return crilog_line(d, p, len, fn, userdata);
	r = crilog_keep(d, p, len);
	if (r == 0 && !d->skipping)
		r = crilog_line(d, (const char *)buf_data(&d->partial), d->partial.len, fn,
				userdata);
	buf_clear(&d->partial);
	d->skipping = false;
	return r;
}

int crilog_decode(struct crilog_decoder *d, const void *data, size_t len, crilog_line_fn fn,
		  void *userdata)
{
	const char *p = data;

	while (len) {
		const char *feed = memchr(p, '\n', len);
		size_t n = feed ? (size_t)(feed - p) + 1 : len;
		int r;

		r = feed ? crilog_end_line(d, p, n, fn, userdata) : crilog_keep(d, p, n);
		if (r != 0)
			return r;
		p += n;
		len -= n;
	}
	return 0;
}

void crilog_decoder_done(struct crilog_decoder *d)
{
	buf_done(&d->partial);
}
