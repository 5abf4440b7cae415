/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"

#define IDS_FILE_MAX ((size_t)1 << 20)

static int ids_space_add(struct ids_space *s, uint32_t first, uint32_t count)
{
	struct ids_range *others = reallocarray(s->others, s->n_others + 1, sizeof(*others));

	if (!others)
		return -ENOMEM;
	others[s->n_others++] = (struct ids_range){ first, count };
	s->others = others;
	return 0;
}

/* NAME:FIRST:COUNT */
static int ids_space_line(struct ids_space *s, char *line)
{
	char *first = strchr(line, ':');
	char *count = first ? strchr(first + 1, ':') : NULL;
	uint64_t a, n;

	if (!count)
		return 0;
	*count = '\0';
	if (parse_u64(first + 1, 0, UINT32_MAX, &a) < 0 ||
	    parse_u64(count + 1, 1, UINT32_MAX - a, &n) < 0)
		return 0;
	return ids_space_add(s, (uint32_t)a, (uint32_t)n);
}

int ids_space_parse(struct ids_space *s, const char *text)
{
	_cleanup_str_ char *copy = strdup(text);
	char *save = NULL;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	for (char *line = strtok_r(copy, "\n", &save); line && r == 0;
	     line = strtok_r(NULL, "\n", &save))
		r = ids_space_line(s, line);
	return r;
}

int ids_space_read(struct ids_space *s)
{
	static const char *const files[] = { "/etc/subuid", "/etc/subgid" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++) {
		_cleanup_(buf_done) struct buf b = BUF_INIT;
		_cleanup_str_ char *text = NULL;

		if (fd_read_file(AT_FDCWD, files[i], IDS_FILE_MAX, &b) < 0)
			continue;
		text = buf_take_str(&b);
		r = text ? ids_space_parse(s, text) : -ENOMEM;
	}
	return r;
}

void ids_space_done(struct ids_space *s)
{
	free(s->others);
	s->others = NULL;
	s->n_others = 0;
}

static void ids_mark(struct ids_taken *t, uint32_t first, uint32_t count)
{
	uint64_t from = first, to = (uint64_t)first + count, at = t->first;

	if (!count)
		return;
	for (uint32_t i = from > at ? (uint32_t)((from - at) / POD_IDS) : 0;
	     i < t->n && at + (uint64_t)i * POD_IDS < to; i++)
		t->bits[i / 8] |= (uint8_t)(1U << i % 8);
}

void ids_taken_init(struct ids_taken *t, const struct ids_space *s)
{
	uint32_t count = MIN(s->count, (uint32_t)INT32_MAX - s->first);
	uint32_t n = MIN(count / POD_IDS, POD_IDS_RANGES_MAX);

	*t = (struct ids_taken){ .first = s->first, .n = n };
	for (size_t i = 0; i < s->n_others; i++)
		ids_mark(t, s->others[i].first, s->others[i].count);
}

void ids_taken_add(struct ids_taken *t, const struct isolate_ids *ids)
{
	ids_mark(t, ids->uid, ids->count);
	ids_mark(t, ids->gid, ids->count);
}

int ids_choose(const struct ids_taken *t, struct isolate_ids *ret, struct error *err)
{
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t first = t->first + i * POD_IDS;

		if (t->bits[i / 8] & 1U << i % 8)
			continue;
		*ret = (struct isolate_ids){ first, first, POD_IDS };
		return 0;
	}
	return error_refuse(
		err, ERROR_EXHAUSTED,
		"each of the %u ranges of ids for user namespaces is taken (users.first "
		"and users.count of the configuration say which there are)",
		t->n);
}
