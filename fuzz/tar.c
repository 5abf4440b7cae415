/* SPDX-License-Identifier: Apache-2.0 */

/* Tar archives: how the bytes are cut makes no difference, no path leads out, and data are as many
 * as an entry said. */

#include <string.h>

#include "fuzz.h"
#include "wire/format/tar_read.h"

struct seen {
	uint64_t sum; /* of all that was told, in order */
	uint64_t due; /* data of the last file */
	bool in_file;
};

static struct tar_read whole, cut;

static void see(struct seen *s, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		s->sum = (s->sum ^ bytes[i]) * UINT64_C(1099511628211);
}

static void check_path(const char *path)
{
	size_t n;

	fuzz_need(*path && *path != '/' && strlen(path) < TREE_PATH_MAX);
	for (; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		fuzz_need(n > 0 && !(n == 2 && path[0] == '.' && path[1] == '.'));
		fuzz_need(!path[n] || path[n + 1]);
	}
}

static int on_entry(void *userdata, const struct tree_entry *e, struct error *err)
{
	struct seen *s = userdata;
	uint64_t end = 0;

	(void)err;
	fuzz_need(s->due == 0);
	check_path(e->path);
	fuzz_need((e->type == TREE_LINK || e->type == TREE_HARD_LINK) == (e->target != NULL));
	fuzz_need((e->type == TREE_OTHER) == (e->reason != NULL));
	if (e->type == TREE_HARD_LINK)
		check_path(e->target);
	s->in_file = e->type == TREE_FILE;
	s->due = s->in_file && !e->map ? e->size : 0;
	for (size_t i = 0; i < e->n_map; i++) {
		fuzz_need(e->map[i].at >= end && e->map[i].len <= e->size - e->map[i].at);
		end = e->map[i].at + e->map[i].len;
		s->due += e->map[i].len;
	}
	see(s, e->path, strlen(e->path) + 1);
	see(s, &e->size, sizeof(e->size));
	see(s, &e->mtime, sizeof(e->mtime));
	return 0;
}

static int on_data(void *userdata, const uint8_t *data, size_t len, struct error *err)
{
	struct seen *s = userdata;

	(void)err;
	fuzz_need(s->in_file && len > 0 && len <= s->due);
	s->due -= len;
	see(s, data, len);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tar_read_ops ops = { .entry = on_entry, .data = on_data };
	struct seen a = { .sum = 1 }, b = { .sum = 1 };
	struct error err = ERROR_INIT;
	int r, q = 0;

	tar_read_init(&whole, &ops, &a);
	tar_read_init(&cut, &ops, &b);
	r = tar_read_feed(&whole, data, size, &err);
	for (size_t i = 0, n; q == 0 && i < size; i += n) {
		n = 1 + data[i] % 97;
		n = n < size - i ? n : size - i;
		q = tar_read_feed(&cut, data + i, n, &err);
	}
	fuzz_need((r < 0) == (q < 0));
	fuzz_need(r < 0 || (a.sum == b.sum && a.due == b.due));
	if (r == 0 && tar_read_finish(&whole, &err) == 0)
		fuzz_need(a.due == 0);
	return 0;
}
