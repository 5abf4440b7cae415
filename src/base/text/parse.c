/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/parse.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!*s)
		return -EINVAL;
	for (const char *p = s; *p; p++)
		if (*p < '0' || *p > '9')
			return -EINVAL;
	for (; *s; s++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return -ERANGE;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int parse_u32(const char *s, uint32_t *ret)
{
	uint64_t value;
	int r = parse_u64(s, 0, UINT32_MAX, &value);

	if (r < 0)
		return r;
	*ret = (uint32_t)value;
	return 0;
}

struct parse_unit {
	const char *suffix;
	uint64_t unit;
};

/* Digits and one of the units. */
static int parse_quantity(const char *s, const struct parse_unit *units, size_t n_units,
			  uint64_t *ret)
{
	size_t n = strspn(s, "0123456789");
	char digits[24];
	uint64_t value, total;
	int r;

	if (n == 0)
		return -EINVAL;
	if (n >= sizeof(digits))
		return -ERANGE;
	memcpy(digits, s, n);
	digits[n] = '\0';
	r = parse_u64(digits, 0, UINT64_MAX, &value);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_units; i++) {
		if (strcmp(s + n, units[i].suffix) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].unit, &total))
			return -ERANGE;
		*ret = total;
		return 0;
	}
	return -EINVAL;
}

int parse_duration(const char *s, nsec_t *ret)
{
	static const struct parse_unit units[] = {
		{ "", NSEC_PER_SEC },       { "s", NSEC_PER_SEC },        { "ms", NSEC_PER_MSEC },
		{ "m", 60 * NSEC_PER_SEC }, { "h", 3600 * NSEC_PER_SEC },
	};

	return parse_quantity(s, units, ARRAY_SIZE(units), ret);
}

int parse_size(const char *s, uint64_t *ret)
{
	static const struct parse_unit units[] = {
		{ "", 1 },
		{ "KiB", (uint64_t)1 << 10 },
		{ "MiB", (uint64_t)1 << 20 },
		{ "GiB", (uint64_t)1 << 30 },
	};

	return parse_quantity(s, units, ARRAY_SIZE(units), ret);
}

static bool name_label_len_ok(const char *s, size_t n, bool capitals)
{
	if (n == 0 || n > NAME_LABEL_MAX || s[0] == '-' || s[n - 1] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", s[i]) &&
		    !(capitals && s[i] >= 'A' && s[i] <= 'Z'))
			return false;
	return true;
}

bool name_is_label(const char *s)
{
	return name_label_len_ok(s, strlen(s), false);
}

bool name_is_label_of_any_case(const char *s)
{
	return name_label_len_ok(s, strlen(s), true);
}

bool name_is_path(const char *s)
{
	size_t depth = 0;

	for (;;) {
		size_t n = strcspn(s, "/");

		if (++depth > NAME_DEPTH_MAX || !name_label_len_ok(s, n, true))
			return false;
		if (!s[n])
			return true;
		s += n + 1;
	}
}

size_t name_depth(const char *path)
{
	size_t depth = *path ? 1 : 0;

	for (; *path; path++)
		if (*path == '/')
			depth++;
	return depth;
}

const char *name_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void name_number(char ret[NAME_LABEL_MAX + 1], const char *label, unsigned n)
{
	char number[16];
	int len = snprintf(number, sizeof(number), "-%u", n);

	(void)snprintf(ret, NAME_LABEL_MAX + 1, "%.*s%s", NAME_LABEL_MAX - len, label, number);
}
