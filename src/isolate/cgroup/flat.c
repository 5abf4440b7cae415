/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/flat.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool flat_number(const char *text, uint64_t *ret)
{
	char *end;

	if (strncmp(text, "max", 3) == 0 && strchr(" \n", text[3])) {
		*ret = UINT64_MAX;
		return true;
	}
	if (*text < '0' || *text > '9')
		return false;
	*ret = strtoull(text, &end, 10);
	return strchr(" \n", *end) != NULL;
}

bool flat_find(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);

	for (const char *line = text; *line;) {
		const char *end = strchr(line, '\n');

		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return flat_number(line + len + 1, ret);
		if (!end)
			break;
		line = end + 1;
	}
	return false;
}

uint64_t flat_value(const char *text, const char *key)
{
	uint64_t value = 0;

	return flat_find(text, key, &value) ? value : 0;
}

uint64_t flat_nested_sum(const char *text, const char *key)
{
	size_t len = strlen(key);
	uint64_t sum = 0;

	/* Every pair stands behind a blank: a line begins with the device. */
	for (const char *at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
		if (strncmp(at + 1, key, len) == 0 && at[1 + len] == '=')
			sum += strtoull(at + len + 2, NULL, 10);
	}
	return sum;
}

/* Takes "N" or "N-M" and the comma behind it from *list. */
static bool flat_list_next(const char **list, unsigned *first, unsigned *last)
{
	const char *s = *list;
	unsigned long ends[2];

	for (int i = 0; i < 2; i++) {
		char *end;

		if (*s < '0' || *s > '9')
			return false;
		errno = 0;
		ends[i] = strtoul(s, &end, 10);
		if (errno || ends[i] >= FLAT_LIST_MAX)
			return false;
		s = end;
		if (i == 0 && *s != '-') {
			ends[1] = ends[0];
			break;
		}
		if (i == 0)
			s++;
	}
	if (ends[1] < ends[0] || !strchr(",\n", *s) || (*s == ',' && !s[1]))
		return false;
	*list = *s ? s + 1 : s;
	*first = (unsigned)ends[0];
	*last = (unsigned)ends[1];
	return true;
}

bool flat_list_is_good(const char *list)
{
	unsigned first, last;

	if (!*list)
		return false;
	while (*list)
		if (!flat_list_next(&list, &first, &last))
			return false;
	return true;
}

static bool flat_list_has(const char *list, unsigned number)
{
	unsigned first, last;

	while (*list && flat_list_next(&list, &first, &last))
		if (number >= first && number <= last)
			return true;
	return false;
}

bool flat_list_within(const char *part, const char *whole)
{
	unsigned first, last;

	while (*part) {
		if (!flat_list_next(&part, &first, &last))
			return false;
		for (unsigned n = first; n <= last; n++)
			if (!flat_list_has(whole, n))
				return false;
	}
	return true;
}
