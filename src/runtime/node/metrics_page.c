/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/metrics_page.h"

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "wire/format/exposition.h"

/*
 * Families of workloads and of containers have the same tables and differ in their prefix, so that
 * a sum over one of them counts nothing twice. Calls have the names that the middlewares of gRPC
 * have given to them, the process those of Prometheus' clients.
 */

#define METRICS_NAME_MAX 96

struct page {
	struct exposition e;
	const struct metrics_snapshot *s;
	bool containers; /* the rows that are told of: these, or all others */
	char name[METRICS_NAME_MAX];
};

static const char *page_prefix(const struct page *p)
{
	return p->containers ? "nacre_container" : "nacre_workload";
}

static void page_family(struct page *p, const char *name, const char *kind, const char *help)
{
	(void)str_printf(p->name, sizeof(p->name), "%s_%s", page_prefix(p), name);
	exposition_family(&p->e, p->name, kind, help);
}

/* The next row of those that are told of, from *at on. */
static const struct metrics_row *page_next(const struct page *p, size_t *at)
{
	while (*at < p->s->n_rows) {
		const struct metrics_row *row = &p->s->rows[(*at)++];

		if (!row->workload == !p->containers)
			return row;
	}
	return NULL;
}

/* more: a further label; its value NULL: none. */
static void page_sample(struct page *p, const struct metrics_row *row, const char *label,
			const char *more, double value)
{
	const struct exposition_label labels[] = {
		{ "id", row->id },     { "name", row->name },
		{ "kind", row->kind }, { "workload", row->workload },
		{ label, more },
	};

	exposition_sample(&p->e, "", labels, ARRAY_SIZE(labels), value);
}

/* ---- what groups use ---- */

enum usage_part { USAGE_CPU, USAGE_MEMORY, USAGE_PIDS, USAGE_IO };

#define USAGE(member) offsetof(struct usage, member)
#define MICROSECONDS 1e6
#define NANOSECONDS 1e9

static const struct {
	const char *name, *kind, *help;
	enum usage_part part;
	size_t offset;
	double scale;
	bool is_limit; /* 0 is none */
} usage_families[] = {
	{ "cpu_usage_seconds_total", "counter", "Processor time.", USAGE_CPU, USAGE(cpu_total_us),
	  MICROSECONDS, false },
	{ "cpu_user_seconds_total", "counter", "Processor time in user mode.", USAGE_CPU,
	  USAGE(cpu_user_us), MICROSECONDS, false },
	{ "cpu_system_seconds_total", "counter", "Processor time in the kernel.", USAGE_CPU,
	  USAGE(cpu_system_us), MICROSECONDS, false },
	{ "cpu_throttled_seconds_total", "counter", "Time held back by a limit of processors.",
	  USAGE_CPU, USAGE(cpu_throttled_us), MICROSECONDS, false },
	{ "memory_usage_bytes", "gauge", "Memory, page cache and kernel memory included.",
	  USAGE_MEMORY, USAGE(memory_current), 1, false },
	{ "memory_peak_bytes", "gauge", "The most memory that was used at once.", USAGE_MEMORY,
	  USAGE(memory_peak), 1, false },
	{ "memory_limit_bytes", "gauge", "The limit of memory; absent without one.", USAGE_MEMORY,
	  USAGE(memory_limit), 1, true },
	{ "memory_anonymous_bytes", "gauge", "Memory that is no page cache.", USAGE_MEMORY,
	  USAGE(memory_anon), 1, false },
	{ "memory_cache_bytes", "gauge", "Page cache.", USAGE_MEMORY, USAGE(memory_file), 1,
	  false },
	{ "memory_oom_kills_total", "counter", "Processes killed for want of memory.", USAGE_MEMORY,
	  USAGE(oom_kills), 1, false },
	{ "pids", "gauge", "Processes and threads.", USAGE_PIDS, USAGE(pids_current), 1, false },
	{ "pids_limit", "gauge", "The limit of processes and threads; absent without one.",
	  USAGE_PIDS, USAGE(pids_limit), 1, true },
	{ "io_read_bytes_total", "counter", "Bytes read from block devices.", USAGE_IO,
	  USAGE(read_bytes), 1, false },
	{ "io_written_bytes_total", "counter", "Bytes written to block devices.", USAGE_IO,
	  USAGE(written_bytes), 1, false },
	{ "io_reads_total", "counter", "Reads from block devices.", USAGE_IO, USAGE(reads), 1,
	  false },
	{ "io_writes_total", "counter", "Writes to block devices.", USAGE_IO, USAGE(writes), 1,
	  false },
};

static bool usage_has(const struct usage *u, enum usage_part part)
{
	switch (part) {
	case USAGE_CPU:
		return true;
	case USAGE_MEMORY:
		return u->has_memory;
	case USAGE_PIDS:
		return u->has_pids;
	case USAGE_IO:
		return u->has_io;
	}
	return false;
}

static uint64_t usage_value(const struct usage *u, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)u + offset, sizeof(value));
	return value;
}

static void page_usage(struct page *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(usage_families); i++) {
		const struct metrics_row *row;
		size_t at = 0;

		page_family(p, usage_families[i].name, usage_families[i].kind,
			    usage_families[i].help);
		for (row = page_next(p, &at); row; row = page_next(p, &at)) {
			const struct usage *u =
				row->entry && row->entry->result == 0 ? &row->entry->usage : NULL;
			uint64_t value = u ? usage_value(u, usage_families[i].offset) : 0;

			if (u && usage_has(u, usage_families[i].part) &&
			    (value > 0 || !usage_families[i].is_limit))
				page_sample(p, row, "", NULL,
					    (double)value / usage_families[i].scale);
		}
	}
}

/* ---- what a row says itself ---- */

static bool row_state(const struct metrics_row *row, const char **label, double *value)
{
	*label = row->state;
	*value = 1;
	return true;
}

static bool row_health(const struct metrics_row *row, const char **label, double *value)
{
	*label = row->health;
	*value = 1;
	return !str_empty(row->health);
}

static bool row_time(uint64_t time, double *value)
{
	*value = (double)time / NANOSECONDS;
	return time > 0;
}

static bool row_created(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	return row_time(row->created_at, value);
}

static bool row_started(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	return row_time(row->started_at, value);
}

static bool row_finished(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	return row_time(row->finished_at, value);
}

static bool row_restarts(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	*value = (double)row->restarts;
	return row->has_restarts;
}

static bool row_exit(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	*value = row->exit_code;
	return row->has_ended;
}

static bool row_out_of_memory(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	*value = row->was_out_of_memory;
	return row->has_ended;
}

static bool row_log_lost(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	*value = (double)row->log_lost;
	return row->workload;
}

static bool row_files(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	*value = row->entry ? (double)row->entry->files.bytes : 0;
	return row->entry && row->entry->files.at;
}

static bool row_logs(const struct metrics_row *row, const char **label, double *value)
{
	(void)label;
	*value = row->entry ? (double)row->entry->logs : 0;
	return !row->workload && row->entry && row->entry->files.at;
}

static bool row_machine_cpu(const struct metrics_row *row, const char **label, double *value)
{
	const struct machine_usage *m = row->entry ? &row->entry->machine : NULL;

	(void)label;
	*value = m ? (double)m->usage.cpu_total_us / MICROSECONDS : 0;
	return m && m->vmm && m->result == 0;
}

static bool row_machine_memory(const struct metrics_row *row, const char **label, double *value)
{
	const struct machine_usage *m = row->entry ? &row->entry->machine : NULL;

	(void)label;
	*value = m ? (double)m->host_memory : 0;
	return m && m->vmm && m->result == 0;
}

static const struct {
	const char *name, *kind, *help;
	const char *label; /* a further one; NULL: none */
	bool (*value)(const struct metrics_row *row, const char **label, double *value);
} row_families[] = {
	{ "state", "gauge", "1 for the state that it is in.", "state", row_state },
	{ "health", "gauge", "1 for what its health checks say.", "health", row_health },
	{ "created_timestamp_seconds", "gauge", "When it was made.", NULL, row_created },
	{ "start_time_seconds", "gauge", "When it was started last.", NULL, row_started },
	{ "finish_time_seconds", "gauge", "When it ended.", NULL, row_finished },
	{ "restarts_total", "counter", "Restarts by its policy since somebody started it.", NULL,
	  row_restarts },
	{ "exit_code", "gauge", "How it ended.", NULL, row_exit },
	{ "out_of_memory", "gauge", "1 where it ended for want of memory.", NULL,
	  row_out_of_memory },
	{ "log_lost_bytes_total", "counter", "Output that is not in its log.", NULL, row_log_lost },
	{ "files_bytes", "gauge", "What it has written to its own files, as measured last.", NULL,
	  row_files },
	{ "log_bytes", "gauge", "What its logs take, as measured last.", NULL, row_logs },
	{ "machine_cpu_usage_seconds_total", "counter",
	  "Processor time of the host that its virtual machine took.", NULL, row_machine_cpu },
	{ "machine_memory_bytes", "gauge", "Memory of the host that its virtual machine has.", NULL,
	  row_machine_memory },
};

static void page_rows(struct page *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(row_families); i++) {
		const struct metrics_row *row;
		size_t at = 0;

		page_family(p, row_families[i].name, row_families[i].kind, row_families[i].help);
		for (row = page_next(p, &at); row; row = page_next(p, &at)) {
			const char *label = NULL;
			double value;

			if (row_families[i].value(row, &label, &value))
				page_sample(p, row, row_families[i].label, label, value);
		}
	}
}

/* ---- networks ---- */

#define COUNTER(member) offsetof(struct link_counters, member)

/* What goes in at one end of the link comes out at the other. */
static const struct {
	const char *name, *help;
	size_t offset;
} link_families[] = {
	{ "network_receive_bytes_total", "Bytes received.", COUNTER(tx_bytes) },
	{ "network_receive_packets_total", "Packets received.", COUNTER(tx_packets) },
	{ "network_receive_errors_total", "Packets not received for an error.",
	  COUNTER(tx_errors) },
	{ "network_receive_packets_dropped_total", "Packets dropped on their way to it.",
	  COUNTER(tx_dropped) },
	{ "network_transmit_bytes_total", "Bytes sent.", COUNTER(rx_bytes) },
	{ "network_transmit_packets_total", "Packets sent.", COUNTER(rx_packets) },
	{ "network_transmit_errors_total", "Packets not sent for an error.", COUNTER(rx_errors) },
	{ "network_transmit_packets_dropped_total", "Packets dropped on their way from it.",
	  COUNTER(rx_dropped) },
};

static void page_links(struct page *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(link_families); i++) {
		const struct metrics_row *row;
		size_t at = 0;

		page_family(p, link_families[i].name, "counter", link_families[i].help);
		for (row = page_next(p, &at); row; row = page_next(p, &at))
			for (size_t k = 0; k < row->n_links; k++) {
				uint64_t value;

				memcpy(&value,
				       (const char *)&row->links[k].counters +
					       link_families[i].offset,
				       sizeof(value));
				if (row->links[k].is_there)
					page_sample(p, row, "interface", row->links[k].device,
						    (double)value);
			}
	}
}

/* ---- the daemon ---- */

/* "/package.Service/Method"; "" of one that is not served here. */
static void page_call(struct page *p, const char *suffix, const struct rpc_measure *m,
		      const char *label, const char *more, double value)
{
	char service[METRICS_NAME_MAX] = "unknown";
	const char *method = "unknown";

	if (*m->path) {
		(void)str_printf(service, sizeof(service), "%.*s", (int)strcspn(m->path + 1, "/"),
				 m->path + 1);
		method = strrchr(m->path, '/') + 1;
	}
	exposition_sample(&p->e, suffix,
			  (const struct exposition_label[]){ { "grpc_service", service },
							     { "grpc_method", method },
							     { label, more } },
			  3, value);
}

static void page_latencies(struct page *p, const struct rpc_measure *m)
{
	uint64_t sum = 0;
	char bound[32];

	for (size_t i = 0; i < RPC_MEASURE_BOUNDS; i++) {
		sum += m->buckets[i];
		(void)str_printf(bound, sizeof(bound), "%g",
				 (double)rpc_measure_bounds[i] / NANOSECONDS);
		page_call(p, "_bucket", m, "le", bound, (double)sum);
	}
	sum += m->buckets[RPC_MEASURE_BOUNDS];
	page_call(p, "_bucket", m, "le", "+Inf", (double)sum);
	page_call(p, "_sum", m, "", NULL, (double)m->total / NANOSECONDS);
	page_call(p, "_count", m, "", NULL, (double)sum);
}

static void page_calls(struct page *p)
{
	const struct metrics_snapshot *s = p->s;

	exposition_family(&p->e, "grpc_server_started_total", "counter", "Calls that have begun.");
	for (size_t i = 0; i < s->n_measures; i++)
		page_call(p, "", &s->measures[i], "", NULL, (double)s->measures[i].started);
	exposition_family(&p->e, "grpc_server_handled_total", "counter",
			  "Calls that have ended, by their status.");
	for (size_t i = 0; i < s->n_measures; i++)
		for (unsigned code = 0; code < RPC_CODES; code++)
			if (s->measures[i].by_code[code] > 0)
				page_call(p, "", &s->measures[i], "grpc_code",
					  rpc_code_name((enum rpc_code)code),
					  (double)s->measures[i].by_code[code]);
	exposition_family(&p->e, "grpc_server_handling_seconds", "histogram",
			  "How long unary calls took.");
	for (size_t i = 0; i < s->n_measures; i++)
		if (s->measures[i].is_timed)
			page_latencies(p, &s->measures[i]);
}

static void page_number(struct page *p, const char *name, const char *kind, const char *help,
			double value)
{
	exposition_family(&p->e, name, kind, help);
	exposition_sample(&p->e, "", NULL, 0, value);
}

static void page_process(struct page *p)
{
	const struct metrics_snapshot *s = p->s;
	const struct {
		const char *name, *help;
		uint64_t value;
	} gauges[] = {
		{ "process_resident_memory_bytes", "Resident memory of the daemon.", s->resident },
		{ "process_virtual_memory_bytes", "Virtual memory of the daemon.", s->virtual },
		{ "process_open_fds", "Descriptors that the daemon has.", s->descriptors },
		{ "process_max_fds", "Descriptors that it may have.", s->descriptors_max },
	};

	page_number(p, "process_cpu_seconds_total", "counter", "Processor time of the daemon.",
		    (double)s->cpu_us / MICROSECONDS);
	page_number(p, "process_start_time_seconds", "gauge", "When the daemon was started.",
		    (double)s->started_at / NANOSECONDS);
	for (size_t i = 0; i < ARRAY_SIZE(gauges); i++)
		if (gauges[i].value)
			page_number(p, gauges[i].name, "gauge", gauges[i].help,
				    (double)gauges[i].value);
}

static void page_daemon(struct page *p)
{
	const struct metrics_snapshot *s = p->s;
	const struct exposition_label version = { "version", NACRE_VERSION };

	exposition_family(&p->e, "nacre_build_info", "gauge", "1, with the version of the daemon.");
	exposition_sample(&p->e, "", &version, 1, 1);
	page_number(p, "nacre_api_connections", "gauge", "Open connections of clients.",
		    (double)s->load.connections);
	page_number(p, "nacre_api_calls", "gauge", "Calls that have not ended.",
		    (double)s->load.calls);
	page_number(p, "nacre_api_request_bytes", "gauge", "Bytes of requests that are held.",
		    (double)s->load.request_bytes);
	page_number(p, "nacre_pool_queue_length", "gauge", "Works that wait for a thread.",
		    s->pool.queued);
	page_number(p, "nacre_pool_threads_busy", "gauge", "Threads that are at work.",
		    s->pool.busy);
	page_number(p, "nacre_events_total", "counter", "Events that were told.",
		    (double)s->events);
	page_number(p, "nacre_images", "gauge", "Images.", (double)s->n_images);
	page_number(
		p, "nacre_images_size_bytes", "gauge",
		"Bytes of their content, as registries have it; what some share counts for each.",
		(double)s->image_bytes);
}

static void page_disks(struct page *p)
{
	const struct metrics_snapshot *s = p->s;

	exposition_family(&p->e, "nacre_store_size_bytes", "gauge",
			  "Sizes of the files of the databases.");
	for (size_t i = 0; i < METRICS_SIZES; i++) {
		const struct exposition_label file = { "file", s->sizes[i].name };

		if (s->sizes[i].is_there)
			exposition_sample(&p->e, "", &file, 1, (double)s->sizes[i].bytes);
	}
	exposition_family(&p->e, "nacre_filesystem_size_bytes", "gauge",
			  "Sizes of the file systems of the node's directories.");
	for (size_t i = 0; i < METRICS_DISKS; i++) {
		const struct exposition_label of = { "directory", s->disks[i].directory };

		if (s->disks[i].is_there)
			exposition_sample(&p->e, "", &of, 1, (double)s->disks[i].bytes);
	}
	exposition_family(&p->e, "nacre_filesystem_free_bytes", "gauge",
			  "What is free in them for the daemon.");
	for (size_t i = 0; i < METRICS_DISKS; i++) {
		const struct exposition_label of = { "directory", s->disks[i].directory };

		if (s->disks[i].is_there)
			exposition_sample(&p->e, "", &of, 1, (double)s->disks[i].free);
	}
}

int metrics_page(const struct metrics_snapshot *s, struct buf *b)
{
	struct page p = { .s = s };

	exposition_init(&p.e, b);
	for (unsigned i = 0; i < 2; i++) {
		p.containers = i > 0;
		page_rows(&p);
		page_usage(&p);
		page_links(&p);
	}
	page_daemon(&p);
	page_disks(&p);
	page_calls(&p);
	page_process(&p);
	return exposition_end(&p.e);
}
