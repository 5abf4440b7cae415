/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/tar_text.h"

#include <errno.h>
#include <string.h>

#include "base/time/clock.h"

int tar_number(const uint8_t *at, size_t len, uint64_t *ret, bool *ret_negative)
{
	uint64_t v = 0;
	size_t i = 0;

	*ret_negative = false;
	*ret = 0;
	if (at[0] & 0x80) {
		if (at[0] & 0x40) {
			*ret_negative = true;
			return 0;
		}
		v = at[0] & 0x3f;
		for (i = 1; i < len; i++) {
			if (v >> 56)
				return -EINVAL;
			v = v << 8 | at[i];
		}
		*ret = v;
		return 0;
	}
	while (i < len && at[i] == ' ')
		i++;
	for (; i < len && at[i] >= '0' && at[i] <= '7'; i++) {
		if (v >> 61)
			return -EINVAL;
		v = v << 3 | (uint64_t)(at[i] - '0');
	}
	for (; i < len; i++)
		if (at[i] != ' ' && at[i] != '\0')
			return -EINVAL;
	*ret = v;
	return 0;
}

int tar_decimal(const char *text, size_t len, uint64_t *ret)
{
	uint64_t v = 0;

	if (len == 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || v > (UINT64_MAX - 9) / 10)
			return -EINVAL;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	*ret = v;
	return 0;
}

int tar_time(const char *text, size_t len, uint64_t *ret)
{
	const char *dot = memchr(text, '.', len);
	size_t whole = dot ? (size_t)(dot - text) : len;
	uint64_t seconds, part = 0, unit = NSEC_PER_SEC / 10;

	*ret = 0;
	if (len > 0 && text[0] == '-')
		return 0;
	if (tar_decimal(text, whole, &seconds) < 0)
		return -EINVAL;
	for (size_t i = whole + 1; i < len; i++, unit /= 10) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		part += unit * (uint64_t)(text[i] - '0');
	}
	if (seconds < INT64_MAX / NSEC_PER_SEC)
		*ret = seconds * NSEC_PER_SEC + part;
	return 0;
}

int tar_clean(const char *from, char ret[TREE_PATH_MAX])
{
	size_t len = 0;

	for (;;) {
		size_t n;

		from += strspn(from, "/");
		n = strcspn(from, "/");
		if (n == 0)
			break;
		if (n == 2 && from[0] == '.' && from[1] == '.')
			return -EINVAL;
		if (n != 1 || from[0] != '.') {
			if (len + n + 2 > TREE_PATH_MAX)
				return -ENAMETOOLONG;
			if (len > 0)
				ret[len++] = '/';
			memcpy(ret + len, from, n);
			len += n;
		}
		from += n;
	}
	if (len == 0)
		ret[len++] = '.';
	ret[len] = '\0';
	return 0;
}
