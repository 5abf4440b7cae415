/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/header.h"

#include <string.h>

#include "base/text/str.h"

static char header_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool header_is(const char *name, const char *lower)
{
	while (*name && header_lower(*name) == *lower) {
		name++;
		lower++;
	}
	return *name == *lower;
}

/* Reads digits at *p; false where there is none, or the number is above max. */
static bool header_digits(const char **p, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	const char *at = *p;

	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (digit > max || value > max / 10 || value * 10 > max - digit)
			return false;
		value = value * 10 + digit;
	}
	if (at == *p)
		return false;
	*p = at;
	*ret = value;
	return true;
}

bool header_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t value;

	if (!header_digits(&text, max, &value) || *text)
		return false;
	*ret = value;
	return true;
}

void header_media_type(const char *text, char *ret, size_t size)
{
	size_t len = strcspn(text, "; \t");
	bool fits = len < size && strchr(text, '/') && strcspn(text, "/") < len;

	for (size_t i = 0; fits && i < len; i++) {
		ret[i] = header_lower(text[i]);
		fits = ret[i] > ' ' && ret[i] < 0x7f;
	}
	ret[fits ? len : 0] = '\0';
}

/* The parameters of a link, up to the comma in front of the next one: is one of them rel=next? */
static bool header_rel_is_next(const char *p, size_t len)
{
	const char *end = p + len;

	while (p < end) {
		const char *stop;
		size_t n;

		p += strspn(p, "; \t");
		if (p >= end)
			break;
		stop = memchr(p, ';', (size_t)(end - p));
		n = (size_t)((stop ? stop : end) - p);
		if (n >= 8 && header_lower(p[0]) == 'r' && strncmp(p + 1, "el=", 3) == 0 &&
		    (strncmp(p + 4, "next", 4) == 0 || strncmp(p + 4, "\"next\"", 6) == 0))
			return true;
		p += n;
	}
	return false;
}

bool header_next_link(const char *text, char *ret, size_t size)
{
	while (*text) {
		const char *from, *close;
		size_t len;

		text += strspn(text, ", \t");
		if (*text != '<')
			return false;
		from = text + 1;
		close = strchr(from, '>');
		if (!close)
			return false;
		len = (size_t)(close - from);
		text = close + 1;
		if (header_rel_is_next(text, strcspn(text, ","))) {
			if (len >= size)
				return false;
			memcpy(ret, from, len);
			ret[len] = '\0';
			return true;
		}
		text += strcspn(text, ",");
	}
	return false;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", which is turned into what clock_parse() reads. */
static bool header_date(const char *text, nsec_t *ret)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char iso[32];
	const char *month;

	if (strlen(text) != 29 || strncmp(text + 3, ", ", 2) != 0 || !str_eq(text + 25, " GMT"))
		return false;
	for (month = months; *month && strncmp(month, text + 8, 3) != 0; month += 3)
		;
	if (!*month)
		return false;
	if (str_printf(iso, sizeof(iso), "%.4s-%02d-%.2sT%.8sZ", text + 12,
		       (int)(month - months) / 3 + 1, text + 5, text + 17) < 0)
		return false;
	return clock_parse(iso, strlen(iso), ret) == 0;
}

bool header_retry_after(const char *text, nsec_t now, uint64_t max_ms, uint64_t *ret_ms)
{
	const char *digits = text;
	uint64_t seconds = 0;
	nsec_t date;

	if (*text >= '0' && *text <= '9') {
		if (text[strspn(text, "0123456789")])
			return false;
		/* What is too large for a number is longer than any bound. */
		if (!header_digits(&digits, max_ms / 1000, &seconds))
			*ret_ms = max_ms;
		else
			*ret_ms = seconds * 1000;
		return true;
	}
	if (!header_date(text, &date))
		return false;
	*ret_ms = date <= now ? 0 : MIN((uint64_t)(date - now) / 1000000, max_ms);
	return true;
}

bool header_content_range(const char *text, struct header_range *ret)
{
	struct header_range r;

	if (!str_has_prefix(text, "bytes "))
		return false;
	text += 6;
	if (!header_digits(&text, UINT64_MAX, &r.first) || *text++ != '-' ||
	    !header_digits(&text, UINT64_MAX, &r.last) || *text++ != '/' ||
	    !header_number(text, UINT64_MAX, &r.total))
		return false;
	if (r.first > r.last || r.last >= r.total)
		return false;
	*ret = r;
	return true;
}

bool header_upload_range(const char *text, uint64_t *ret_n)
{
	uint64_t first, last;

	if (str_has_prefix(text, "bytes="))
		text += 6;
	if (!header_digits(&text, 0, &first) || *text++ != '-' ||
	    !header_number(text, UINT64_MAX - 1, &last))
		return false;
	*ret_n = last + 1;
	return true;
}
