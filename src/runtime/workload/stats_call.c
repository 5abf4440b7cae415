/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/stats_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "rpc/server/server.h"
#include "runtime/core/pool_call.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/workload/stats_look.h"

struct stats_call {
	struct pool_call base;
	struct stats_look *look;
	struct pool *pool;
};

static int stats_add_targets(struct stats_look *l, struct workload_service *s, char *const *targets,
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
		r = t.workload ? stats_look_add_workload(l, s, t.workload)
			       : stats_look_add_instance(l, s, t.instance);
	}
	return r < 0 ? error_set(err, r, "look at what runs") : 0;
}

static void stats_run(struct pool_call *p)
{
	stats_look_read(container_of(p, struct stats_call, base)->look);
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
	m->files.limit = e->files.limit;
	m->usage.cpu = &m->cpu;
	m->usage.memory = u->has_memory ? &m->memory : NULL;
	m->usage.pids = u->has_pids ? &m->pids : NULL;
	m->usage.io = u->has_io ? &m->io : NULL;
	m->usage.files = e->files.at ? &m->files : NULL;
	return &m->usage;
}

/* The entry at `at` and its containers behind it; *ret is NULL where its group is gone. Returns the
 * entry behind them; 0 without memory. */
static size_t stats_convert(struct arena *a, const struct stats_look *l, size_t at,
			    Nacre__V1__WorkloadStats **ret)
{
	const struct stats_entry *e = &l->entries[at];
	Nacre__V1__WorkloadStats *m = arena_alloc(a, sizeof(*m));
	size_t end = at + 1;

	while (end < l->n && !l->entries[end].kind)
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
		const struct stats_entry *inner = &l->entries[i];
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
	const struct stats_look *l = container_of(p, struct stats_call, base)->look;
	Nacre__V1__StatsResponse m = NACRE__V1__STATS_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	size_t next = 0;
	bool failed;

	m.time = l->time;
	m.workloads = arena_zalloc(a, l->n_workloads + 1, sizeof(*m.workloads));
	failed = !m.workloads;
	for (size_t i = 0; !failed && i < l->n; i = next) {
		Nacre__V1__WorkloadStats *w;

		next = stats_convert(a, l, i, &w);
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

	(void)stats_look_free(c->look);
	free(c);
}

static void stats_ready(void *userdata)
{
	struct stats_call *c = userdata;

	pool_call_submit(&c->base, c->pool);
}

int stats_call_start(struct rpc_call *call, struct workload_service *s, char *const *targets,
		     size_t n_targets, struct error *err)
{
	static const struct pool_call_ops ops = { stats_run, stats_reply, stats_free };
	struct stats_call *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "look at what runs");
	c->look = stats_look_new(s, NULL);
	if (!c->look) {
		r = error_set(err, -ENOMEM, "look at what runs");
	} else if (n_targets > 0) {
		r = stats_add_targets(c->look, s, targets, n_targets, err);
	} else {
		r = stats_look_add_all(c->look, s);
		if (r < 0)
			(void)error_set(err, r, "look at what runs");
	}
	if (r < 0) {
		stats_free(&c->base);
		return r;
	}
	c->pool = s->pool;
	pool_call_begin(&c->base, &ops, call);
	stats_look_ask(c->look, stats_ready, c);
	return 0;
}
