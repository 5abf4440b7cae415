/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/stats_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/memory/array.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "instance/instance.h"
#include "isolate/cgroup/usage.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/groups.h"
#include "runtime/core/pool_call.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/workload/machine_usage.h"

/*
 * The loop writes down which groups to read, asks the keepers that have groups of another kernel,
 * and when all of them have answered, or could not, a thread reads those that are here, and the
 * loop answers. What an entry says is copied: its workload may be gone by then.
 */

struct stats_entry {
	char *group; /* NULL: its keeper is asked */
	char *cell;  /* then: of a cell; "": of a container (by its id), or all that the keeper has
		      */
	char *id, *name;
	const char *kind; /* NULL: a container of the workload entry in front of it */
	size_t question;
	struct machine_usage machine;
	struct usage usage;
	struct disk_written files; /* at 0: they are not here, or not measured yet */
	uint64_t logs;
	int result; /* of usage_read() */
};

/* A keeper that is asked, once for all that it has. */
struct stats_question {
	struct stats_call *call;
	struct instance *instance; /* until it was asked */
};

struct stats_call {
	struct pool_call base;
	struct arena arena;
	int top_fd;
	struct stats_entry *entries;
	size_t n, size;
	size_t n_workloads;
	struct stats_question *questions;
	size_t n_questions, questions_size;
	size_t question;  /* of what is added */
	size_t n_pending; /* of them, and one for who asks */
	struct pool *pool;
	uint64_t time;
};

/* group NULL: its keeper is asked (stats_question()). */
static int stats_add(struct stats_call *c, const char *group, const char *id, const char *name,
		     const char *kind)
{
	void *room = c->entries;
	int r = array_grow(&room, c->n, &c->size, sizeof(*c->entries));
	struct stats_entry *entries = room;

	c->entries = entries;
	if (r < 0)
		return r;
	entries[c->n] = (struct stats_entry){
		.group = group ? arena_strdup(&c->arena, group) : NULL,
		.cell = arena_strdup(&c->arena, ""),
		.id = arena_strdup(&c->arena, id),
		.name = arena_strdup(&c->arena, name),
		.kind = kind,
		.question = c->question,
		.result = group ? 0 : -ENOENT,
	};
	if ((group && !entries[c->n].group) || !entries[c->n].cell || !entries[c->n].id ||
	    !entries[c->n].name)
		return -ENOMEM;
	c->n++;
	c->n_workloads += kind != NULL;
	return 0;
}

/* What follows is asked of its keeper. */
static int stats_begin_question(struct stats_call *c, struct instance *i)
{
	void *questions = c->questions;
	int r;

	for (c->question = 0; c->question < c->n_questions; c->question++)
		if (c->questions[c->question].instance == i)
			return 0;
	r = array_grow(&questions, c->n_questions, &c->questions_size, sizeof(*c->questions));
	c->questions = questions;
	if (r == 0)
		c->questions[c->n_questions++] =
			(struct stats_question){ .call = c, .instance = i };
	return r;
}

static int stats_add_remote(struct stats_call *c, struct workload_service *s, struct workload *w)
{
	const char *kind = workload_kind_word(w->kind);
	int r = stats_begin_question(c, w->instance);

	if (r == 0)
		r = stats_add(c, NULL, w->id, w->path, kind);
	if (r == 0 && w->kind == WORKLOAD_POD)
		r = machine_usage_plan(&c->entries[c->n - 1].machine, &c->arena, s, w->instance);
	else if (r == 0)
		c->entries[c->n - 1].cell = arena_strdup(&c->arena, w->handle);
	if (r == 0 && !c->entries[c->n - 1].cell)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < w->n_containers; i++)
		if (!pod_container_has_ended(w->containers[i]))
			r = stats_add(c, NULL, w->containers[i]->id, w->containers[i]->name, NULL);
	return r;
}

/* Of the last entry. */
static void stats_add_files(struct stats_call *c, const struct disk_written *files, uint64_t logs)
{
	struct stats_entry *e = &c->entries[c->n - 1];

	e->files.bytes += files->bytes;
	e->files.at = MAX(e->files.at, files->at);
	e->logs += logs;
}

static int stats_add_workload(struct stats_call *c, struct workload_service *s, struct workload *w)
{
	char group[GROUP_PATH_MAX];
	int r;

	if (workload_has_ended(w))
		return 0;
	if (w->instance && instance_is_remote(w->instance))
		return stats_add_remote(c, s, w);
	if (group_of_workload(s, w, group) < 0)
		return 0;
	r = stats_add(c, group, w->id, w->path, workload_kind_word(w->kind));
	if (r == 0)
		stats_add_files(c, &(struct disk_written){ .at = w->log_written.at },
				w->log_written.bytes);
	for (size_t i = 0; r == 0 && i < w->n_containers; i++)
		stats_add_files(c, &w->containers[i]->written, 0);
	for (size_t i = 0; r == 0 && i < w->n_containers; i++) {
		const struct pod_container *pc = w->containers[i];

		if (!pod_container_has_ended(pc) && group_of_container(s, pc, group) == 0)
			r = stats_add(c, group, pc->id, pc->name, NULL);
		else
			continue;
		if (r == 0)
			stats_add_files(c, &pc->written, 0);
	}
	return r;
}

static int stats_add_instance(struct stats_call *c, struct workload_service *s, struct instance *i)
{
	char group[GROUP_PATH_MAX];
	int r;

	if (instance_has_ended(i))
		return 0;
	if (!instance_is_remote(i))
		return group_of_instance(s, i, group) < 0
			       ? 0
			       : stats_add(c, group, i->id, i->path, "instance");
	r = stats_begin_question(c, i);
	if (r == 0)
		r = stats_add(c, NULL, i->id, i->path, "instance");
	if (r == 0)
		r = machine_usage_plan(&c->entries[c->n - 1].machine, &c->arena, s, i);
	return r;
}

static int stats_add_all(struct stats_call *c, struct workload_service *s)
{
	struct instance *i;
	struct workload *w;
	int r = 0;

	list_for_each (i, instances_list(s->instances), struct instance, link)
		if (r == 0 && i->path[0] && !i->owner[0])
			r = stats_add_instance(c, s, i);
	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		if (r == 0)
			r = stats_add_workload(c, s, w);
	return r;
}

static int stats_add_targets(struct stats_call *c, struct workload_service *s, char *const *targets,
			     size_t n, struct error *err)
{
	int r = 0;

	if (n > STATS_TARGETS_MAX)
		return error_field(err, ERROR_INVALID, "targets",
				   "%zu are more than the limit of %d", n, STATS_TARGETS_MAX);
	for (size_t k = 0; r == 0 && k < n; k++) {
		char field[ERROR_FIELD_MAX];
		struct target t;

		(void)str_printf(field, sizeof(field), "targets[%zu]", k);
		r = target_find_field(s, field, targets[k], &t, err);
		if (r < 0)
			return r;
		r = t.workload ? stats_add_workload(c, s, t.workload)
			       : stats_add_instance(c, s, t.instance);
	}
	return r < 0 ? error_set(err, r, "look at what runs") : 0;
}

static void stats_run(struct pool_call *p)
{
	struct stats_call *c = container_of(p, struct stats_call, base);

	c->time = clock_real();
	for (size_t i = 0; i < c->n; i++) {
		struct stats_entry *e = &c->entries[i];

		if (e->group)
			e->result = usage_read(c->top_fd, e->group, &e->usage);
		machine_usage_read(&e->machine, c->top_fd);
	}
}

static Nacre__V1__Usage *stats_usage(struct arena *a, const struct stats_entry *e)
{
	const struct usage *u = &e->usage;
	struct {
		Nacre__V1__Usage usage;
		Nacre__V1__CpuUsage cpu;
		Nacre__V1__MemoryUsage memory;
		Nacre__V1__PidsUsage pids;
		Nacre__V1__IoUsage io;
		Nacre__V1__FilesUsage files;
	} *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__usage__init(&m->usage);
	nacre__v1__cpu_usage__init(&m->cpu);
	nacre__v1__memory_usage__init(&m->memory);
	nacre__v1__pids_usage__init(&m->pids);
	nacre__v1__io_usage__init(&m->io);
	nacre__v1__files_usage__init(&m->files);
	m->cpu.total_us = u->cpu_total_us;
	m->cpu.user_us = u->cpu_user_us;
	m->cpu.system_us = u->cpu_system_us;
	m->cpu.throttled_us = u->cpu_throttled_us;
	m->memory.current = u->memory_current;
	m->memory.peak = u->memory_peak;
	m->memory.limit = u->memory_limit;
	m->memory.file = u->memory_file;
	m->memory.anon = u->memory_anon;
	m->memory.oom_kills = u->oom_kills;
	m->pids.current = u->pids_current;
	m->pids.limit = u->pids_limit;
	m->io.read_bytes = u->read_bytes;
	m->io.written_bytes = u->written_bytes;
	m->io.reads = u->reads;
	m->io.writes = u->writes;
	m->files.bytes = e->files.bytes;
	m->files.logs = e->logs;
	m->files.time = e->files.at;
	m->usage.cpu = &m->cpu;
	m->usage.memory = u->has_memory ? &m->memory : NULL;
	m->usage.pids = u->has_pids ? &m->pids : NULL;
	m->usage.io = u->has_io ? &m->io : NULL;
	m->usage.files = e->files.at ? &m->files : NULL;
	return &m->usage;
}

/* The entry at `at` and its containers behind it; *ret is NULL where its group is gone. Returns the
 * entry behind them; 0 without memory. */
static size_t stats_convert(struct arena *a, const struct stats_call *c, size_t at,
			    Nacre__V1__WorkloadStats **ret)
{
	const struct stats_entry *e = &c->entries[at];
	Nacre__V1__WorkloadStats *m = arena_alloc(a, sizeof(*m));
	size_t end = at + 1;

	while (end < c->n && !c->entries[end].kind)
		end++;
	*ret = NULL;
	/* A machine is told of although its keeper says nothing. */
	if (e->result < 0 && !e->machine.vmm)
		return end;
	if (!m)
		return 0;
	nacre__v1__workload_stats__init(m);
	m->id = e->id;
	m->name = e->name;
	m->kind = (char *)(uintptr_t)e->kind;
	m->usage = e->result == 0 ? stats_usage(a, e) : NULL;
	m->containers = arena_zalloc(a, end - at, sizeof(*m->containers));
	if ((e->result == 0 && !m->usage) || !m->containers ||
	    machine_usage_convert(&e->machine, a, &m->machine) < 0)
		return 0;
	for (size_t i = at + 1; i < end; i++) {
		const struct stats_entry *inner = &c->entries[i];
		Nacre__V1__ContainerStats *k = arena_alloc(a, sizeof(*k));

		if (inner->result < 0)
			continue;
		if (!k)
			return 0;
		nacre__v1__container_stats__init(k);
		k->id = inner->id;
		k->name = inner->name;
		k->usage = stats_usage(a, inner);
		if (!k->usage)
			return 0;
		m->containers[m->n_containers++] = k;
	}
	*ret = m;
	return end;
}

static void stats_reply(struct pool_call *p, struct rpc_call *call)
{
	const struct stats_call *c = container_of(p, struct stats_call, base);
	Nacre__V1__StatsResponse m = NACRE__V1__STATS_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	size_t next = 0;
	bool failed;

	m.time = c->time;
	m.workloads = arena_zalloc(a, c->n_workloads + 1, sizeof(*m.workloads));
	failed = !m.workloads;
	for (size_t i = 0; !failed && i < c->n; i = next) {
		Nacre__V1__WorkloadStats *w;

		next = stats_convert(a, c, i, &w);
		failed = next == 0;
		if (w)
			m.workloads[m.n_workloads++] = w;
	}
	if (failed) {
		(void)error_set(&err, -ENOMEM, "answer");
		rpc_call_fail(call, &err);
		return;
	}
	rpc_call_reply(call, &m.base);
}

static void stats_free(struct pool_call *p)
{
	struct stats_call *c = container_of(p, struct stats_call, base);

	arena_done(&c->arena);
	free(c->entries);
	free(c->questions);
	free(c);
}

/* ---- what keepers are asked ---- */

static bool stats_is_about(const struct stats_entry *e, const struct peer_group *group)
{
	if (!e->kind)
		return str_eq(group->id, e->id);
	return !*group->id && str_eq(group->cell, e->cell);
}

static void stats_answered(struct stats_call *c)
{
	if (--c->n_pending == 0)
		pool_call_submit(&c->base, c->pool);
}

static void stats_on_usage(void *userdata, const struct peer_group *groups, size_t n,
			   const struct error *err)
{
	const struct stats_question *q = userdata;
	struct stats_call *c = q->call;
	size_t question = (size_t)(q - c->questions);

	(void)err;
	for (size_t i = 0; i < c->n; i++) {
		struct stats_entry *e = &c->entries[i];

		if (e->group || e->question != question)
			continue;
		for (size_t k = 0; e->result < 0 && k < n; k++) {
			if (!stats_is_about(e, &groups[k]))
				continue;
			e->usage = groups[k].usage;
			e->result = 0;
		}
	}
	stats_answered(c);
}

static void stats_ask(struct stats_call *c)
{
	c->n_pending = 1;
	for (size_t k = 0; k < c->n_questions; k++) {
		struct stats_question *q = &c->questions[k];
		struct peer *peer = q->instance->state == INSTANCE_READY ? q->instance->peer : NULL;

		q->instance = NULL;
		if (!peer)
			continue;
		c->n_pending++;
		peer->ops->usage(peer, stats_on_usage, q);
	}
	stats_answered(c);
}

int stats_call_start(struct rpc_call *call, struct workload_service *s, char *const *targets,
		     size_t n_targets, struct error *err)
{
	static const struct pool_call_ops ops = { stats_run, stats_reply, stats_free };
	struct stats_call *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "look at what runs");
	c->top_fd = s->top_fd;
	if (n_targets > 0) {
		r = stats_add_targets(c, s, targets, n_targets, err);
	} else {
		r = stats_add_all(c, s);
		if (r < 0)
			(void)error_set(err, r, "look at what runs");
	}
	if (r < 0) {
		stats_free(&c->base);
		return r;
	}
	c->pool = s->pool;
	pool_call_begin(&c->base, &ops, call);
	stats_ask(c);
	return 0;
}
