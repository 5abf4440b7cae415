/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/tree_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"

#define TREE_LIST_ROOT "root"

static void tree_item_done(struct tree_item *item)
{
	if (item->data)
		explicit_bzero(item->data, item->entry.size);
	free(item->data);
	free((char *)(uintptr_t)item->entry.path);
	free((char *)(uintptr_t)item->entry.target);
}

void tree_list_done(struct tree_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		tree_item_done(&l->items[i]);
	free(l->items);
	*l = (struct tree_list)TREE_LIST_INIT;
}

/* ---- reading ---- */

/* What the file has, which may be less by now than it was said to be. */
static int tree_list_take_data(struct tree_item *item, struct tree_source *s, struct error *err)
{
	uint64_t size = item->entry.size, n = 0;

	item->entry.size = 0;
	item->data = malloc(size + 1);
	if (!item->data)
		return error_set(err, -ENOMEM, "read %.200s", item->entry.path);
	while (n < size) {
		ssize_t r = tree_source_read(s, item->data + n, size - n, err);

		if (r < 0) {
			explicit_bzero(item->data, n);
			return (int)r;
		}
		if (r == 0)
			break;
		n += (uint64_t)r;
	}
	item->entry.size = n;
	return 0;
}

static int tree_list_too_big(const struct tree_list_limits *limits, struct error *err)
{
	return error_refuse(err, ERROR_EXHAUSTED, "it is more than %zu files or %llu bytes",
			    limits->n_max, (unsigned long long)limits->bytes_max);
}

static int tree_list_take(struct tree_list *l, struct tree_source *s, const struct tree_entry *e,
			  const struct tree_list_limits *limits, struct error *err)
{
	struct tree_item *item = &l->items[l->n];

	if (e->type == TREE_OTHER || e->type == TREE_FIFO)
		return error_refuse(err, ERROR_PRECONDITION, "%.200s: %s", e->path,
				    e->reason ? e->reason : "it is a FIFO");
	if (l->n == limits->n_max)
		return tree_list_too_big(limits, err);
	if (e->type == TREE_FILE && e->size > limits->bytes_max - l->bytes)
		return tree_list_too_big(limits, err);
	*item = (struct tree_item){ .entry = *e };
	item->entry.path = strdup(e->path);
	item->entry.target = e->target ? strdup(e->target) : NULL;
	l->n++;
	if (!item->entry.path || (e->target && !item->entry.target)) {
		item->entry.size = 0;
		return error_set(err, -ENOMEM, "read %.200s", e->path);
	}
	if (e->type == TREE_FILE) {
		int r = tree_list_take_data(item, s, err);

		if (r < 0)
			return r;
		l->bytes += item->entry.size;
	}
	return 0;
}

int tree_list_read(struct tree_list *l, int root_fd, const char *path,
		   const struct tree_list_limits *limits,
		   int (*on_directory)(void *userdata, const char *below), void *userdata,
		   struct error *err)
{
	_cleanup_(tree_source_freep) struct tree_source *s = NULL;
	struct tree_entry e;
	int r;

	l->items = calloc(limits->n_max + 1, sizeof(*l->items));
	if (!l->items)
		return error_set(err, -ENOMEM, "read a directory");
	r = tree_source_open(&s, root_fd, path, TREE_LIST_ROOT, 0, err);
	while (r >= 0) {
		r = tree_source_next(s, &e, err);
		if (r <= 0)
			break;
		r = tree_list_take(l, s, &e, limits, err);
		if (r == 0 && e.type == TREE_DIRECTORY && on_directory) {
			const char *below = strchr(e.path, '/');

			r = on_directory(userdata, below ? below + 1 : "");
			if (r < 0)
				(void)error_set(err, r, "%.200s", e.path);
		}
	}
	if (r < 0)
		tree_list_done(l);
	return r;
}

/* ---- writing ---- */

int tree_list_write(const struct tree_list *l, int dir_fd, const char *name, struct error *err)
{
	_cleanup_(tree_sink_freep) struct tree_sink *s = NULL;
	int r = tree_sink_open(&s, dir_fd, name, err);

	for (size_t i = 0; i < l->n && r == 0; i++) {
		const struct tree_item *item = &l->items[i];

		r = tree_sink_entry(s, &item->entry, true, err);
		if (r == 0 && item->data)
			r = tree_sink_write(s, item->data, item->entry.size, err);
	}
	return r < 0 ? r : tree_sink_finish(s, err);
}
