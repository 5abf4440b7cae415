/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/handlers.h"
#include "cli/output.h"
#include "cli/view.h"

/*
 * The list of workloads, sorted by path, is a tree walked from its root: what follows an entry and
 * begins with its path and a '/' is below it. An entry whose parent is not in the list hangs on the
 * nearest that is.
 */

struct tree_marks {
	const char *branch, *last, *bar, *blank;
};

static const struct tree_marks marks_utf8 = { "├─ ", "└─ ", "│  ", "   " };
static const struct tree_marks marks_ascii = { "|- ", "`- ", "|  ", "   " };

struct tree {
	Nacre__V1__Workload **sorted;
	size_t n;
	const struct tree_marks *marks;
	struct table *table;
};

/* '/' sorts before everything else in a name, so that what is below stands right behind. */
static int tree_compare(const void *a, const void *b)
{
	const unsigned char *x, *y;

	x = (const unsigned char *)(*(Nacre__V1__Workload *const *)a)->name;
	y = (const unsigned char *)(*(Nacre__V1__Workload *const *)b)->name;
	while (*x && *x == *y) {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : *x) - (*y == '/' ? 1 : *y);
}

static bool tree_is_below(const char *path, const char *above)
{
	size_t len = strlen(above);

	return len == 0 || (strncmp(path, above, len) == 0 && path[len] == '/');
}

/* The entry behind `at` and all that is below it. */
static size_t tree_skip(const struct tree *t, size_t at)
{
	size_t next = at + 1;

	while (next < t->n && tree_is_below(t->sorted[next]->name, t->sorted[at]->name))
		next++;
	return next;
}

static void tree_row(const struct tree *t, const char *prefix, bool is_last, const char *name,
		     const char *const cells[3], const char *state)
{
	const char *mark = is_last ? t->marks->last : t->marks->branch;
	_cleanup_str_ char *label = xformat("%s%s%s", prefix, mark, name);

	table_add(t->table, label);
	table_add_color(t->table, TABLE_DIM, cells[0]);
	table_add_color(t->table, view_state_color(state), cells[1]);
	table_add(t->table, cells[2]);
}

static void tree_container(const struct tree *t, const char *prefix, bool is_last,
			   const Nacre__V1__Container *c)
{
	_cleanup_str_ char *state = view_state("container", c->state, c->exit_code);
	_cleanup_str_ char *pid = view_pid(c->pid);
	const char *const cells[] = { "container", state, pid };

	tree_row(t, prefix, is_last, c->name, cells, c->state);
}

/* Entries [from, to) that stand below `above`, with their own below them; the depth of paths bounds
 * the recursion. */
static void tree_draw(const struct tree *t, size_t from, size_t to, const char *above,
		      const char *prefix)
{
	size_t next;

	for (size_t i = from; i < to; i = next) {
		const Nacre__V1__Workload *w = t->sorted[i];
		_cleanup_str_ char *state = view_state(w->kind, w->state, w->exit_code);
		_cleanup_str_ char *pid = view_pid(w->pid);
		const char *const cells[] = { w->kind, state, pid };
		_cleanup_str_ char *inner = NULL;
		bool is_last;

		next = tree_skip(t, i);
		is_last = next >= to;
		inner = xformat("%s%s", prefix, is_last ? t->marks->blank : t->marks->bar);
		tree_row(t, prefix, is_last, w->name + strlen(above) + (*above ? 1 : 0), cells,
			 w->state);
		for (size_t c = 0; c < w->n_containers; c++)
			tree_container(t, inner, c + 1 == w->n_containers && next == i + 1,
				       w->containers[c]);
		tree_draw(t, i + 1, next, w->name, inner);
	}
}

static void tree_json(struct json *j, const struct tree *t, size_t from, size_t to)
{
	size_t next;

	json_array(j, from == 0 && to == t->n && j->depth == 0 ? NULL : "children");
	for (size_t i = from; i < to; i = next) {
		next = tree_skip(t, i);
		json_object(j, NULL);
		view_workload(j, "workload", t->sorted[i]);
		tree_json(j, t, i + 1, next);
		json_end(j);
	}
	json_end(j);
}

int cmd_tree(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListRequest request = NACRE__V1__LIST_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListResponse *list = NULL;
	struct table table = TABLE_INIT(4);
	struct tree tree = { .table = &table };
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	list = client_ask_once(cli->socket, "/nacre.v1.WorkloadService/List", &request.base,
			       &nacre__v1__list_response__descriptor, 0, &err);
	if (!list)
		return cli_fail(&err);
	tree.sorted = list->workloads;
	tree.n = list->n_workloads;
	tree.marks = output_has_utf8() ? &marks_utf8 : &marks_ascii;
	if (tree.n > 0)
		qsort(tree.sorted, tree.n, sizeof(Nacre__V1__Workload *), tree_compare);
	if (cli->json) {
		tree_json(&j, &tree, 0, tree.n);
		return 0;
	}
	(void)puts("node");
	tree_draw(&tree, 0, tree.n, "", "");
	table_write(&table, stdout, cli->color);
	table_done(&table);
	return 0;
}
