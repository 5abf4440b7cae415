/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/stats_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/clock.h"
#include "base/str.h"
#include "instance/instance.h"
#include "isolate/usage.h"
#include "pod/workload.h"
#include "rpc/server.h"
#include "runtime/groups.h"
#include "runtime/pool_call.h"
#include "runtime/services.h"
#include "runtime/target.h"

/*
 * The loop writes down which groups to read, a thread reads them, the loop answers. What an entry
 * says is copied: its workload may be gone by then.
 */

struct stats_entry {
	char *group; /* NULL: none, only its containers' (never so today) */
	char *id, *name;
	const char *kind; /* NULL: a container of the workload entry in front of it */
	struct usage usage;
	int result; /* of usage_read() */
};

struct stats_call {
	struct pool_call base;
	struct arena arena;
	int cgroup_fd;
	struct stats_entry *entries;
	size_t n, size;
	size_t n_workloads;
	uint64_t time;
};

static int stats_add(struct stats_call *c, const char *group, const char *id, const char *name,
		     const char *kind)
{
	struct stats_entry *entries = c->entries;
	size_t size = c->size;

	if (c->n == size) {
		size = size ? 2 * size : 64;
		entries = reallocarray(c->entries, size, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		c->entries = entries;
		c->size = size;
	}
	entries[c->n] = (struct stats_entry){
		.group = arena_strdup(&c->arena, group),
		.id = arena_strdup(&c->arena, id),
		.name = arena_strdup(&c->arena, name),
		.kind = kind,
	};
	if (!entries[c->n].group || !entries[c->n].id || !entries[c->n].name)
		return -ENOMEM;
	c->n++;
	c->n_workloads += kind != NULL;
	return 0;
}

static int stats_add_workload(struct stats_call *c, struct workload_service *s, struct workload *w)
{
	char group[GROUP_PATH_MAX];
	int r;

	if (workload_has_ended(w) || group_of_workload(s, w, group) < 0)
		return 0;
	r = stats_add(c, group, w->id, w->path, workload_kind_word(w->kind));
	for (size_t i = 0; r == 0 && i < w->n_containers; i++) {
		const struct pod_container *pc = &w->containers[i];

		if (!pod_container_has_ended(pc) && group_of_container(s, pc, group) == 0)
			r = stats_add(c, group, pc->id, pc->name, NULL);
	}
	return r;
}

static int stats_add_instance(struct stats_call *c, struct workload_service *s, struct instance *i)
{
	char group[GROUP_PATH_MAX];

	if (instance_has_ended(i) || group_of_instance(s, i, group) < 0)
		return 0;
	return stats_add(c, group, i->id, i->path, "instance");
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

		e->result = usage_read(c->cgroup_fd, e->group, &e->usage);
	}
}

static Nacre__V1__Usage *stats_usage(struct arena *a, const struct usage *u)
{
	struct {
		Nacre__V1__Usage usage;
		Nacre__V1__CpuUsage cpu;
		Nacre__V1__MemoryUsage memory;
		Nacre__V1__PidsUsage pids;
		Nacre__V1__IoUsage io;
	} *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__usage__init(&m->usage);
	nacre__v1__cpu_usage__init(&m->cpu);
	nacre__v1__memory_usage__init(&m->memory);
	nacre__v1__pids_usage__init(&m->pids);
	nacre__v1__io_usage__init(&m->io);
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
	m->usage.cpu = &m->cpu;
	m->usage.memory = u->has_memory ? &m->memory : NULL;
	m->usage.pids = u->has_pids ? &m->pids : NULL;
	m->usage.io = u->has_io ? &m->io : NULL;
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
	if (e->result < 0)
		return end;
	if (!m)
		return 0;
	nacre__v1__workload_stats__init(m);
	m->id = e->id;
	m->name = e->name;
	m->kind = (char *)(uintptr_t)e->kind;
	m->usage = stats_usage(a, &e->usage);
	m->containers = arena_zalloc(a, end - at, sizeof(*m->containers));
	if (!m->usage || !m->containers)
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
		k->usage = stats_usage(a, &inner->usage);
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
	free(c);
}

int stats_call_start(struct rpc_call *call, struct workload_service *s, char *const *targets,
		     size_t n_targets, struct error *err)
{
	static const struct pool_call_ops ops = { stats_run, stats_reply, stats_free };
	struct stats_call *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "look at what runs");
	c->cgroup_fd = s->cgroup_fd;
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
	pool_call_start(&c->base, &ops, s->pool, call);
	return 0;
}
