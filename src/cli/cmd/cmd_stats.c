/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/output/alloc.h"
#include "cli/output/screen.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

/* Between two looks of `nacre top` and of `nacre stats --watch`. The second look of top comes
 * sooner, since only then it knows a rate; without a terminal it is the last. */
#define STATS_PERIOD (2 * NSEC_PER_SEC)
#define STATS_PERIOD_FIRST NSEC_PER_SEC

struct stats {
	const struct cli *cli;
	const struct args *args;
	struct client *client;
	struct screen screen;
	struct loop_timer timer;
	bool due;
	bool is_top;
	Nacre__V1__StatsResponse *before, *now;
};

static void stats_timer(struct loop_timer *timer)
{
	container_of(timer, struct stats, timer)->due = true;
}

/* The next look; the one before is kept. */
static int stats_ask(struct stats *s, struct error *err)
{
	Nacre__V1__StatsRequest request = NACRE__V1__STATS_REQUEST__INIT;
	Nacre__V1__StatsResponse *answer;

	request.targets = s->args->operands;
	request.n_targets = s->args->n_operands;
	answer = client_ask(s->client, "/nacre.v1.WorkloadService/Stats", &request.base,
			    &nacre__v1__stats_response__descriptor, err);
	if (!answer)
		return err->code;
	client_message_freep(&s->before);
	s->before = s->now;
	s->now = answer;
	return 0;
}

/* ---- as JSON ---- */

static void stats_json_cpu(struct json *j, const Nacre__V1__CpuUsage *cpu)
{
	json_put_object(j, "cpu");
	json_put_unsigned(j, "total_us", cpu->total_us);
	json_put_unsigned(j, "user_us", cpu->user_us);
	json_put_unsigned(j, "system_us", cpu->system_us);
	json_put_unsigned(j, "throttled_us", cpu->throttled_us);
	json_put_end(j);
}

static void stats_json_machine(struct json *j, const Nacre__V1__MachineUsage *m)
{
	json_put_object(j, "machine");
	json_put_unsigned(j, "memory", m->memory);
	json_put_unsigned(j, "cpus", m->cpus);
	if (m->cpu)
		stats_json_cpu(j, m->cpu);
	json_put_unsigned(j, "host_memory", m->host_memory);
	json_put_unsigned(j, "overhead", m->overhead);
	json_put_unsigned(j, "limit", m->limit);
	json_put_end(j);
}

static void stats_json_usage(struct json *j, const Nacre__V1__Usage *u)
{
	stats_json_cpu(j, u->cpu);
	if (u->memory) {
		json_put_object(j, "memory");
		json_put_unsigned(j, "current", u->memory->current);
		json_put_unsigned(j, "peak", u->memory->peak);
		json_put_unsigned(j, "limit", u->memory->limit);
		json_put_unsigned(j, "file", u->memory->file);
		json_put_unsigned(j, "anon", u->memory->anon);
		json_put_unsigned(j, "oom_kills", u->memory->oom_kills);
		json_put_end(j);
	}
	if (u->pids) {
		json_put_object(j, "pids");
		json_put_unsigned(j, "current", u->pids->current);
		json_put_unsigned(j, "limit", u->pids->limit);
		json_put_end(j);
	}
	if (u->io) {
		json_put_object(j, "io");
		json_put_unsigned(j, "read_bytes", u->io->read_bytes);
		json_put_unsigned(j, "written_bytes", u->io->written_bytes);
		json_put_unsigned(j, "reads", u->io->reads);
		json_put_unsigned(j, "writes", u->io->writes);
		json_put_end(j);
	}
	if (u->files) {
		json_put_object(j, "files");
		json_put_unsigned(j, "bytes", u->files->bytes);
		json_put_unsigned(j, "logs", u->files->logs);
		json_put_unsigned(j, "limit", u->files->limit);
		json_put_time(j, "time", u->files->time);
		json_put_end(j);
	}
}

static void stats_json(const struct stats *s, FILE *to, bool compact)
{
	struct json j = { .to = to, .compact = compact };

	json_put_object(&j, NULL);
	json_put_time(&j, "time", s->now->time);
	json_put_array(&j, "workloads");
	for (size_t i = 0; i < s->now->n_workloads; i++) {
		const Nacre__V1__WorkloadStats *w = s->now->workloads[i];

		if ((!w->usage || !w->usage->cpu) && !w->machine)
			continue;
		json_put_object(&j, NULL);
		json_put_string(&j, "id", w->id);
		json_put_string(&j, "name", w->name);
		json_put_string(&j, "kind", w->kind);
		if (w->usage && w->usage->cpu)
			stats_json_usage(&j, w->usage);
		if (w->machine)
			stats_json_machine(&j, w->machine);
		json_put_array(&j, "containers");
		for (size_t k = 0; k < w->n_containers; k++) {
			json_put_object(&j, NULL);
			json_put_string(&j, "id", w->containers[k]->id);
			json_put_string(&j, "name", w->containers[k]->name);
			if (w->containers[k]->usage && w->containers[k]->usage->cpu)
				stats_json_usage(&j, w->containers[k]->usage);
			json_put_end(&j);
		}
		json_put_end(&j);
		json_put_end(&j);
	}
	json_put_end(&j);
	json_put_end(&j);
}

/* ---- as a table ---- */

/* What a workload of this look had used at the one before; NULL where it was not there. */
static const Nacre__V1__Usage *stats_before(const struct stats *s,
					    const Nacre__V1__WorkloadStats *w)
{
	for (size_t i = 0; s->before && i < s->before->n_workloads; i++) {
		if (str_eq(s->before->workloads[i]->id, w->id))
			return s->before->workloads[i]->usage;
	}
	return NULL;
}

/* Thousandths of one CPU since the look before; -1: unknown. */
static int64_t stats_rate(const struct stats *s, const Nacre__V1__WorkloadStats *w)
{
	const Nacre__V1__Usage *then = stats_before(s, w);
	uint64_t us;

	if (!then || !then->cpu || !w->usage || !w->usage->cpu || s->now->time <= s->before->time)
		return -1;
	us = (s->now->time - s->before->time) / 1000;
	if (us == 0 || w->usage->cpu->total_us < then->cpu->total_us)
		return -1;
	return (int64_t)((w->usage->cpu->total_us - then->cpu->total_us) * 1000 / us);
}

static void stats_bytes(struct table *t, bool there, uint64_t n)
{
	char text[TEXT_SIZE];

	text_bytes(text, n);
	table_add(t, there ? text : "-");
}

static void stats_cells(struct table *t, const Nacre__V1__Usage *u)
{
	_cleanup_str_ char *pids = u->pids ? xformat("%" PRIu64, u->pids->current) : xstrdup("-");
	char cpu[TEXT_SIZE];

	text_cpu(cpu, u->cpu->total_us);
	table_add(t, cpu);
	stats_bytes(t, u->memory, u->memory ? u->memory->current : 0);
	stats_bytes(t, u->memory && u->memory->limit, u->memory ? u->memory->limit : 0);
	table_add(t, pids);
	stats_bytes(t, u->io, u->io ? u->io->read_bytes : 0);
	stats_bytes(t, u->io, u->io ? u->io->written_bytes : 0);
	stats_bytes(t, u->files, u->files ? u->files->bytes + u->files->logs : 0);
}

/* What its machine takes of the node: behind TIME comes all of its memory there, and the most that
 * it may be. */
static void stats_machine_row(struct table *t, const struct stats *s,
			      const Nacre__V1__MachineUsage *m)
{
	char cpu[TEXT_SIZE];

	text_cpu(cpu, m->cpu ? m->cpu->total_us : 0);
	table_add(t, "  its machine");
	table_add_color(t, TABLE_DIM, "vm");
	if (s->is_top)
		table_add(t, "-");
	table_add(t, cpu);
	stats_bytes(t, true, m->host_memory + m->overhead);
	stats_bytes(t, m->limit > 0, m->limit);
	for (size_t i = 0; i < 4; i++)
		table_add(t, "-");
}

/* A keeper that does not answer. */
static void stats_no_row(struct table *t, const struct stats *s, const Nacre__V1__WorkloadStats *w)
{
	table_add(t, w->name);
	table_add_color(t, TABLE_DIM, w->kind);
	for (size_t i = 0; i < (s->is_top ? 8U : 7U); i++)
		table_add(t, "-");
}

static void stats_row(struct table *t, const struct stats *s, const Nacre__V1__WorkloadStats *w)
{
	int64_t rate = stats_rate(s, w);
	_cleanup_str_ char *percent =
		rate < 0 ? xstrdup("-")
			 : xformat("%" PRId64 ".%" PRId64 "%%", rate / 10, rate % 10);

	if (w->usage && w->usage->cpu) {
		table_add(t, w->name);
		table_add_color(t, TABLE_DIM, w->kind);
		if (s->is_top)
			table_add_color(t, rate >= 500 ? TABLE_YELLOW : TABLE_PLAIN, percent);
		stats_cells(t, w->usage);
	} else if (w->machine) {
		stats_no_row(t, s, w);
	}
	if (w->machine)
		stats_machine_row(t, s, w->machine);
	/* Where there is only one, its numbers are the workload's. */
	if (s->is_top || w->n_containers < 2)
		return;
	for (size_t i = 0; i < w->n_containers; i++) {
		_cleanup_str_ char *name = xformat("  %s", w->containers[i]->name);

		table_add(t, name);
		table_add_color(t, TABLE_DIM, "container");
		stats_cells(t, w->containers[i]->usage);
	}
}

static void stats_table(const struct stats *s, FILE *to)
{
	static const char *const heads[] = { "NAME",  "KIND", "CPU",  "TIME",    "MEMORY",
					     "LIMIT", "PIDS", "READ", "WRITTEN", "FILES" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads) - !s->is_top);

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		if (s->is_top || !str_eq(heads[i], "CPU"))
			table_add_color(&t, TABLE_BOLD, heads[i]);
	}
	for (size_t i = 0; i < s->now->n_workloads; i++)
		stats_row(&t, s, s->now->workloads[i]);
	if (to == stdout)
		table_write(&t, to, s->cli->color);
	else
		table_write_fit(&t, to, s->cli->color, screen_width(&s->screen));
	table_done(&t);
}

/* ---- top ---- */

static int top_compare(const void *a, const void *b, void *userdata)
{
	const struct stats *s = userdata;
	const Nacre__V1__WorkloadStats *x = *(Nacre__V1__WorkloadStats *const *)a;
	const Nacre__V1__WorkloadStats *y = *(Nacre__V1__WorkloadStats *const *)b;
	int64_t m = stats_rate(s, x), n = stats_rate(s, y);

	return m == n ? strcmp(x->name, y->name) : m < n ? 1 : -1;
}

static void top_head(const struct stats *s, FILE *to)
{
	size_t n = s->now->n_workloads;
	char time[CLOCK_TEXT_SIZE];

	clock_format(time, s->now->time);
	(void)fprintf(to, "%.19s  %zu workload%s, every 2 s; ends with Ctrl-C\n\n", time, n,
		      n == 1 ? "" : "s");
}

static void stats_show(struct stats *s)
{
	FILE *to = screen_begin(&s->screen);

	if (s->is_top && s->now->n_workloads > 0)
		qsort_r(s->now->workloads, s->now->n_workloads, sizeof(Nacre__V1__WorkloadStats *),
			top_compare, s);
	if (s->cli->json) {
		stats_json(s, to, true);
	} else {
		if (s->screen.live)
			top_head(s, to);
		stats_table(s, to);
	}
	screen_show(&s->screen);
}

static void stats_wait(struct stats *s, nsec_t time)
{
	s->due = false;
	loop_timer_set(&s->timer, time);
	while (!s->due && !s->screen.ended && !s->screen.resized)
		loop_turn(client_loop(s->client), true);
	s->screen.resized = false;
}

/* Look after look, until the user has seen enough. */
static int stats_watch(struct stats *s, struct error *err)
{
	bool once = s->is_top && !s->screen.live && !s->cli->json;
	int r;

	if (once) {
		r = stats_ask(s, err);
		if (r < 0)
			return r;
		stats_wait(s, STATS_PERIOD_FIRST);
	}
	while (!s->screen.ended) {
		r = stats_ask(s, err);
		if (r < 0)
			return r;
		stats_show(s);
		if (once)
			break;
		stats_wait(s, s->is_top && !s->before ? STATS_PERIOD_FIRST : STATS_PERIOD);
	}
	return 0;
}

static int stats_run(const struct cli *cli, const struct args *args, bool is_top, bool watch)
{
	struct stats s = { .cli = cli, .args = args, .is_top = is_top };
	struct error err = ERROR_INIT;
	int r;

	s.client = client_open(&cli->daemon, &err);
	if (!s.client)
		return cli_fail(&err);
	if (watch) {
		r = screen_init(&s.screen, client_loop(s.client), cli->json);
		if (r < 0)
			(void)error_set(&err, r, "watch the terminal");
		loop_timer_init(&s.timer, client_loop(s.client), stats_timer);
		if (r == 0)
			r = stats_watch(&s, &err);
		loop_timer_done(&s.timer);
		screen_done(&s.screen);
	} else {
		r = stats_ask(&s, &err);
		if (r == 0 && cli->json)
			stats_json(&s, stdout, false);
		else if (r == 0)
			stats_table(&s, stdout);
	}
	client_message_freep(&s.before);
	client_message_freep(&s.now);
	(void)client_free(s.client);
	return r < 0 ? cli_fail(&err) : 0;
}

int cmd_stats(const struct cli *cli, const struct args *args)
{
	return stats_run(cli, args, false, args_flag(args, "watch"));
}

int cmd_top(const struct cli *cli, const struct args *args)
{
	return stats_run(cli, args, true, true);
}
