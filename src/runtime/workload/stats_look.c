/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/stats_look.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/array.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "instance/instance.h"
#include "pod/workload/workload.h"
#include "runtime/core/groups.h"
#include "runtime/services.h"

/* A keeper that is asked, once for all that it has. */
struct stats_question {
	struct stats_look *look;
	struct instance *instance; /* until it was asked */
};

struct stats_look *stats_look_new(const struct workload_service *s, unsigned *n_late)
{
	struct stats_look *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->top_fd = s->top_fd;
	l->n_late = n_late;
	return l;
}

/* All of its questions are answered. */
static void stats_look_drop(struct stats_look *l)
{
	if (l->is_freed && l->n_late)
		--*l->n_late;
	arena_done(&l->arena);
	free(l->entries);
	free(l->questions);
	free(l);
}

void stats_look_close(struct stats_look *l)
{
	l->is_closed = true;
}

struct stats_look *stats_look_free(struct stats_look *l)
{
	if (!l)
		return NULL;
	stats_look_close(l);
	if (l->n_pending == 0) {
		stats_look_drop(l);
		return NULL;
	}
	l->is_freed = true;
	if (l->n_late)
		++*l->n_late;
	return NULL;
}

/* group NULL: its keeper is asked (stats_question()). */
static int stats_add(struct stats_look *l, const char *group, const char *id, const char *name,
		     const char *kind)
{
	void *room = l->entries;
	int r = array_grow(&room, l->n, &l->size, sizeof(*l->entries));
	struct stats_entry *entries = room;

	l->entries = entries;
	if (r < 0)
		return r;
	entries[l->n] = (struct stats_entry){
		.group = group ? arena_strdup(&l->arena, group) : NULL,
		.cell = arena_strdup(&l->arena, ""),
		.id = arena_strdup(&l->arena, id),
		.name = arena_strdup(&l->arena, name),
		.kind = kind,
		.question = l->question,
		.result = group ? 0 : -ENOENT,
	};
	if ((group && !entries[l->n].group) || !entries[l->n].cell || !entries[l->n].id ||
	    !entries[l->n].name)
		return -ENOMEM;
	l->n++;
	l->n_workloads += kind != NULL;
	return 0;
}

/* What follows is asked of its keeper. */
static int stats_begin_question(struct stats_look *l, struct instance *i)
{
	void *questions = l->questions;
	int r;

	for (l->question = 0; l->question < l->n_questions; l->question++)
		if (l->questions[l->question].instance == i)
			return 0;
	r = array_grow(&questions, l->n_questions, &l->questions_size, sizeof(*l->questions));
	l->questions = questions;
	if (r == 0)
		l->questions[l->n_questions++] =
			(struct stats_question){ .look = l, .instance = i };
	return r;
}

static int stats_add_remote(struct stats_look *l, struct workload_service *s, struct workload *w)
{
	const char *kind = workload_kind_word(w->kind);
	int r = stats_begin_question(l, w->instance);

	if (r == 0)
		r = stats_add(l, NULL, w->id, w->path, kind);
	if (r == 0 && w->kind == WORKLOAD_POD)
		r = machine_usage_plan(&l->entries[l->n - 1].machine, &l->arena, s, w->instance);
	else if (r == 0)
		l->entries[l->n - 1].cell = arena_strdup(&l->arena, w->handle);
	if (r == 0 && !l->entries[l->n - 1].cell)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < w->n_containers; i++)
		if (!pod_container_has_ended(w->containers[i]))
			r = stats_add(l, NULL, w->containers[i]->id, w->containers[i]->name, NULL);
	return r;
}

/* Of the last entry. */
static void stats_add_files(struct stats_look *l, const struct disk_written *files, uint64_t logs)
{
	struct stats_entry *e = &l->entries[l->n - 1];

	e->files.bytes += files->bytes;
	e->files.at = MAX(e->files.at, files->at);
	e->files.limit = files->limit;
	e->logs += logs;
}

int stats_look_add_workload(struct stats_look *l, struct workload_service *s, struct workload *w)
{
	char group[GROUP_PATH_MAX];
	int r;

	if (workload_has_ended(w))
		return 0;
	if (w->instance && instance_is_remote(w->instance))
		return stats_add_remote(l, s, w);
	if (group_of_workload(s, w, group) < 0)
		return 0;
	r = stats_add(l, group, w->id, w->path, workload_kind_word(w->kind));
	if (r == 0)
		stats_add_files(l, &(struct disk_written){ .at = w->log_written.at },
				w->log_written.bytes);
	for (size_t i = 0; r == 0 && i < w->n_containers; i++)
		stats_add_files(l, &w->containers[i]->written, 0);
	/* A limit is one container's. */
	l->entries[l->n - 1].files.limit = 0;
	for (size_t i = 0; r == 0 && i < w->n_containers; i++) {
		const struct pod_container *pc = w->containers[i];

		if (!pod_container_has_ended(pc) && group_of_container(s, pc, group) == 0)
			r = stats_add(l, group, pc->id, pc->name, NULL);
		else
			continue;
		if (r == 0)
			stats_add_files(l, &pc->written, 0);
	}
	return r;
}

int stats_look_add_instance(struct stats_look *l, struct workload_service *s, struct instance *i)
{
	char group[GROUP_PATH_MAX];
	int r;

	if (instance_has_ended(i))
		return 0;
	if (!instance_is_remote(i))
		return group_of_instance(s, i, group) < 0
			       ? 0
			       : stats_add(l, group, i->id, i->path, "instance");
	r = stats_begin_question(l, i);
	if (r == 0)
		r = stats_add(l, NULL, i->id, i->path, "instance");
	if (r == 0)
		r = machine_usage_plan(&l->entries[l->n - 1].machine, &l->arena, s, i);
	return r;
}

int stats_look_add_all(struct stats_look *l, struct workload_service *s)
{
	struct instance *i;
	struct workload *w;
	int r = 0;

	list_for_each (i, instances_list(s->instances), struct instance, link)
		if (r == 0 && i->path[0] && !i->owner[0])
			r = stats_look_add_instance(l, s, i);
	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		if (r == 0)
			r = stats_look_add_workload(l, s, w);
	return r;
}

/* ---- what keepers are asked ---- */

static bool stats_is_about(const struct stats_entry *e, const struct peer_group *group)
{
	if (!e->kind)
		return str_eq(group->id, e->id);
	return !*group->id && str_eq(group->cell, e->cell);
}

static void stats_answered(struct stats_look *l)
{
	if (--l->n_pending > 0)
		return;
	if (l->is_freed)
		stats_look_drop(l);
	else if (!l->is_closed)
		l->ready(l->userdata);
}

static void stats_on_usage(void *userdata, const struct peer_group *groups, size_t n,
			   const struct error *err)
{
	const struct stats_question *q = userdata;
	struct stats_look *l = q->look;
	size_t question = (size_t)(q - l->questions);

	(void)err;
	for (size_t i = 0; !l->is_closed && i < l->n; i++) {
		struct stats_entry *e = &l->entries[i];

		if (e->group || e->question != question)
			continue;
		for (size_t k = 0; e->result < 0 && k < n; k++) {
			if (!stats_is_about(e, &groups[k]))
				continue;
			e->usage = groups[k].usage;
			e->result = 0;
		}
	}
	stats_answered(l);
}

void stats_look_ask(struct stats_look *l, void (*ready)(void *userdata), void *userdata)
{
	l->ready = ready;
	l->userdata = userdata;
	l->n_pending = 1;
	for (size_t k = 0; k < l->n_questions; k++) {
		struct stats_question *q = &l->questions[k];
		struct peer *peer = q->instance->state == INSTANCE_READY ? q->instance->peer : NULL;

		q->instance = NULL;
		if (!peer)
			continue;
		l->n_pending++;
		peer->ops->usage(peer, stats_on_usage, q);
	}
	stats_answered(l);
}

void stats_look_read(struct stats_look *l)
{
	l->time = clock_real();
	for (size_t i = 0; i < l->n; i++) {
		struct stats_entry *e = &l->entries[i];

		if (e->group)
			e->result = usage_read(l->top_fd, e->group, &e->usage);
		machine_usage_read(&e->machine, l->top_fd);
	}
}
