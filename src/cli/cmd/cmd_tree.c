/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"
#include "cli/output/screen.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/listing.h"
#include "cli/table/command.h"

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

/* Processes that begin each other deeper than this stand beside each other. */
#define TREE_PROCESS_DEPTH 16
/* So long changes are gathered before the tree is drawn again. */
#define TREE_GATHER (50 * NSEC_PER_MSEC)

struct tree {
	const struct cli *cli;
	struct client *client;
	bool is_short; /* without processes */
	Nacre__V1__ListResponse *list;
	Nacre__V1__ProcessesResponse *processes; /* or NULL */
	Nacre__V1__InfoResponse *info;
	Nacre__V1__Workload **sorted;
	size_t n;
	const struct tree_marks *marks;
	struct table table; /* what tree_show() draws */
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

struct tree_line {
	const char *name, *kind, *state;
	enum table_color color; /* of the state */
	int64_t pid;
};

static void tree_row(struct tree *t, const char *prefix, bool is_last, const struct tree_line *line)
{
	const char *mark = is_last ? t->marks->last : t->marks->branch;
	_cleanup_str_ char *label = xformat("%s%s%s", prefix, mark, line->name);
	_cleanup_str_ char *pid = view_pid(line->pid);

	table_add(&t->table, label);
	table_add_color(&t->table, TABLE_DIM, line->kind);
	table_add_color(&t->table, line->color, line->state);
	table_add(&t->table, pid);
}

/* ---- processes ---- */

static bool tree_is_of(const Nacre__V1__Process *p, const char *workload, const char *container)
{
	return str_eq(p->workload, workload) && str_eq(p->container, container);
}

/* Its parent is in the same container too. */
static bool tree_has_parent(const struct tree *t, const Nacre__V1__Process *p)
{
	for (size_t i = 0; i < t->processes->n_processes; i++) {
		const Nacre__V1__Process *other = t->processes->processes[i];

		if (other->pid == p->parent && tree_is_of(other, p->workload, p->container))
			return true;
	}
	return false;
}

/* Whether it is to be drawn below `parent` (0: below the container). */
static bool tree_is_child(const struct tree *t, const Nacre__V1__Process *p, int64_t parent)
{
	return parent ? p->parent == parent : !tree_has_parent(t, p);
}

/* The next process of the container that is to be drawn below `parent`; NULL at the end. */
static const Nacre__V1__Process *tree_process_next(const struct tree *t, size_t *pos,
						   const char *workload, const char *container,
						   int64_t parent)
{
	while (t->processes && *pos < t->processes->n_processes) {
		const Nacre__V1__Process *p = t->processes->processes[(*pos)++];

		if (tree_is_of(p, workload, container) && tree_is_child(t, p, parent))
			return p;
	}
	return NULL;
}

static void tree_processes(struct tree *t, const char *prefix, const char *workload,
			   const char *container, int64_t parent, unsigned depth)
{
	size_t pos = 0;
	const Nacre__V1__Process *p, *next;

	if (depth > TREE_PROCESS_DEPTH)
		return;
	p = tree_process_next(t, &pos, workload, container, parent);
	for (; p; p = next) {
		const struct tree_line line = { p->command, "process", view_process_state(p->state),
						TABLE_DIM, p->pid };
		_cleanup_str_ char *inner = NULL;

		next = tree_process_next(t, &pos, workload, container, parent);
		tree_row(t, prefix, !next, &line);
		inner = xformat("%s%s", prefix, next ? t->marks->bar : t->marks->blank);
		tree_processes(t, inner, workload, container, p->pid, depth + 1);
	}
}

/* ---- workloads ---- */

static void tree_container(struct tree *t, const char *prefix, bool is_last,
			   const Nacre__V1__Workload *w, const Nacre__V1__Container *c)
{
	_cleanup_str_ char *state = view_state("container", c->state, c->exit_code);
	_cleanup_str_ char *inner =
		xformat("%s%s", prefix, is_last ? t->marks->blank : t->marks->bar);
	const struct tree_line line = { c->name, "container", state, view_state_color(c->state),
					c->pid };

	tree_row(t, prefix, is_last, &line);
	tree_processes(t, inner, w->name, c->name, 0, 0);
}

/* The release of the kernel that it runs on: its own, which is "" while it is not known yet, or the
 * one around it. */
static const char *tree_kernel(const Nacre__V1__Workload *w, const char *around)
{
	return str_empty(w->instance_kind) || str_eq(w->instance_kind, "cell") ? around : w->kernel;
}

/* Entries [from, to) that stand below `above`, with their own below them; the depth of paths bounds
 * the recursion. */
static void tree_draw(struct tree *t, size_t from, size_t to, const char *above, const char *prefix,
		      const char *around)
{
	size_t next;

	for (size_t i = from; i < to; i = next) {
		const Nacre__V1__Workload *w = t->sorted[i];
		_cleanup_str_ char *state =
			view_state(w->kind, w->paused ? "paused" : w->state, w->exit_code);
		const char *kernel = tree_kernel(w, around);
		_cleanup_str_ char *kind = view_level(w, kernel);
		const struct tree_line line = { w->name + strlen(above) + (*above ? 1 : 0), kind,
						state, view_state_color(w->state), w->pid };
		_cleanup_str_ char *inner = NULL;
		bool is_last;

		next = tree_skip(t, i);
		is_last = next >= to;
		inner = xformat("%s%s", prefix, is_last ? t->marks->blank : t->marks->bar);
		tree_row(t, prefix, is_last, &line);
		for (size_t c = 0; c < w->n_containers; c++)
			tree_container(t, inner, c + 1 == w->n_containers && next == i + 1, w,
				       w->containers[c]);
		tree_draw(t, i + 1, next, w->name, inner, kernel);
	}
}

static void tree_json_processes(struct json *j, const struct tree *t, const char *workload)
{
	json_put_array(j, "processes");
	for (size_t i = 0; t->processes && i < t->processes->n_processes; i++) {
		if (str_eq(t->processes->processes[i]->workload, workload))
			view_process(j, t->processes->processes[i]);
	}
	json_put_end(j);
}

static void tree_json(struct json *j, const struct tree *t, size_t from, size_t to,
		      const char *around)
{
	size_t next;

	json_put_array(j, from == 0 && to == t->n && j->depth == 0 ? NULL : "children");
	for (size_t i = from; i < to; i = next) {
		const char *kernel = tree_kernel(t->sorted[i], around);

		next = tree_skip(t, i);
		json_put_object(j, NULL);
		view_workload(j, "workload", t->sorted[i]);
		json_put_word(j, "kernel", kernel);
		tree_json_processes(j, t, t->sorted[i]->name);
		tree_json(j, t, i + 1, next, kernel);
		json_put_end(j);
	}
	json_put_end(j);
}

/* ---- the command ---- */

static void tree_forget(struct tree *t)
{
	client_message_freep(&t->list);
	client_message_freep(&t->processes);
	client_message_freep(&t->info);
	t->list = NULL;
	t->processes = NULL;
	t->info = NULL;
}

static int tree_ask(struct tree *t, struct error *err)
{
	Nacre__V1__ListRequest list = NACRE__V1__LIST_REQUEST__INIT;
	Nacre__V1__ProcessesRequest processes = NACRE__V1__PROCESSES_REQUEST__INIT;
	Nacre__V1__InfoRequest info = NACRE__V1__INFO_REQUEST__INIT;

	tree_forget(t);
	t->info = client_ask(t->client, "/nacre.v1.NodeService/Info", &info.base,
			     &nacre__v1__info_response__descriptor, err);
	if (!t->info)
		return err->code;
	t->list = listing_ask(t->client, &list, err);
	if (!t->list)
		return err->code;
	t->sorted = t->list->workloads;
	t->n = t->list->n_workloads;
	if (t->n > 0)
		qsort(t->sorted, t->n, sizeof(Nacre__V1__Workload *), tree_compare);
	if (t->is_short)
		return 0;
	t->processes = client_ask(t->client, "/nacre.v1.WorkloadService/Processes", &processes.base,
				  &nacre__v1__processes_response__descriptor, err);
	return t->processes ? 0 : err->code;
}

static void tree_show(struct tree *t, FILE *to, unsigned width, bool compact)
{
	struct json j = { .to = to, .compact = compact };

	if (t->cli->json) {
		tree_json(&j, t, 0, t->n, t->info->kernel);
		return;
	}
	t->table = (struct table)TABLE_INIT(4);
	(void)fprintf(to, "node (Linux %s)\n", t->info->kernel);
	tree_draw(t, 0, t->n, "", "", t->info->kernel);
	table_write_fit(&t->table, to, t->cli->color, width);
	table_done(&t->table);
}

/* Something has changed: after a moment the tree is drawn again, however much it was. */
struct tree_watch {
	struct client_call call;
	struct loop_timer timer;
	struct screen screen;
	bool armed, due;
};

static void tree_watch_event(struct client_call *call, const ProtobufCMessage *message)
{
	struct tree_watch *w = container_of(call, struct tree_watch, call);

	(void)message;
	if (!w->armed)
		loop_timer_set(&w->timer, TREE_GATHER);
	w->armed = true;
}

static void tree_watch_timer(struct loop_timer *timer)
{
	struct tree_watch *w = container_of(timer, struct tree_watch, timer);

	w->armed = false;
	w->due = true;
}

/* The events are asked for before the first list, so nothing is missed in between. */
static int tree_watch_run(struct tree *t, struct tree_watch *w, struct error *err)
{
	Nacre__V1__EventsRequest request = NACRE__V1__EVENTS_REQUEST__INIT;

	client_call_start(t->client, &w->call, "/nacre.v1.EventService/Events", &request.base);
	for (w->due = true; !w->call.done && !w->screen.ended;) {
		if (!w->due && !w->screen.resized) {
			loop_turn(client_loop(t->client), true);
			continue;
		}
		w->due = false;
		w->screen.resized = false;
		if (tree_ask(t, err) < 0)
			return err->code;
		tree_show(t, screen_begin(&w->screen), screen_width(&w->screen), true);
		screen_show(&w->screen);
	}
	return error_copy(err, &w->call.err);
}

static int tree_watch(struct tree *t, struct error *err)
{
	struct tree_watch w = {
		.call = { .type = &nacre__v1__events_response__descriptor,
			  .on_message = tree_watch_event },
	};
	int r;

	r = screen_init(&w.screen, client_loop(t->client), t->cli->json);
	if (r < 0)
		return error_set(err, r, "watch the terminal");
	loop_timer_init(&w.timer, client_loop(t->client), tree_watch_timer);
	r = tree_watch_run(t, &w, err);
	client_call_done(&w.call);
	loop_timer_done(&w.timer);
	screen_done(&w.screen);
	return r;
}

int cmd_tree(const struct cli *cli, const struct args *args)
{
	struct tree tree = {
		.cli = cli,
		.is_short = args_flag(args, "short"),
		.marks = output_has_utf8() ? &marks_utf8 : &marks_ascii,
	};
	struct error err = ERROR_INIT;
	int r;

	tree.client = client_open(&cli->daemon, &err);
	if (!tree.client)
		return cli_fail(&err);
	if (args_flag(args, "watch")) {
		r = tree_watch(&tree, &err);
	} else {
		r = tree_ask(&tree, &err);
		if (r == 0)
			tree_show(&tree, stdout, output_width(STDOUT_FILENO), false);
	}
	tree_forget(&tree);
	(void)client_free(tree.client);
	return r < 0 ? cli_fail(&err) : 0;
}
