/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/macros.h"
#include "base/text/str.h"

#define METRICS_USEC_PER_SEC 1000000
#define METRICS_NSEC_PER_SEC 1000000000
/* Of one reading beside those that each device, size of page or link has. */
#define METRICS_SINGLE_MAX 64

/* The source of a value, which decides whether the value exists. */
enum metrics_part {
	METRICS_GROUP,        /* any group */
	METRICS_MEMORY,       /* a group that counts memory */
	METRICS_MEMORY_PARTS, /* likewise, one of this kernel */
	METRICS_SWAP,
	METRICS_PIDS,
	METRICS_CPU_STALL,
	METRICS_MEMORY_STALL,
	METRICS_IO_STALL,
	METRICS_PROCESSES,
	METRICS_DESCRIPTORS,
	METRICS_FILES, /* a container */
	METRICS_LAYER, /* a container whose layer was measured */
	METRICS_CONTAINER,
	METRICS_QUOTA,     /* a container with a quota of CPU time */
	METRICS_DEVICE,    /* of each device with traffic */
	METRICS_OPERATION, /* of each operation of those */
	METRICS_PAGES,     /* of each size of huge pages */
	METRICS_FAULTS,
	METRICS_LINK, /* of the pod's link */
	METRICS_ULIMIT,
};

/* Labels of a metric beside those of every metric. */
static const char *const metrics_base[] = {
	"container", "id", "image", "name", "namespace", "pod"
};
static const struct {
	const char *keys[4];
} metrics_more[METRICS_ULIMIT + 1] = {
	[METRICS_DEVICE] = { { "device" } },
	[METRICS_OPERATION] = { { "device", "major", "minor", "operation" } },
	[METRICS_PAGES] = { { "pagesize" } },
	[METRICS_FAULTS] = { { "failure_type", "scope" } },
	[METRICS_LINK] = { { "interface" } },
	[METRICS_ULIMIT] = { { "ulimit" } },
};

#define COUNTER RUNTIME__V1__METRIC_TYPE__COUNTER
#define GAUGE RUNTIME__V1__METRIC_TYPE__GAUGE
#define USAGE(member) offsetof(struct cri_reading, usage.member)
#define DETAIL(member) offsetof(struct cri_reading, details.member)
#define READING(member) offsetof(struct cri_reading, member)
#define NO_NUMBER 0 /* the offset of `result`, which is no metric */

/*
 * cAdvisor's names. A number is at an offset of the reading, and divided; those with NO_NUMBER are
 * put together below.
 */
static const struct metrics_kind {
	const char *name, *help;
	enum metrics_part part;
	Runtime__V1__MetricType type;
	size_t at;
	uint64_t divide;
} metrics_kinds[] = {
	{ "container_cpu_usage_seconds_total", "CPU time used, in seconds", METRICS_GROUP, COUNTER,
	  USAGE(cpu_total_us), METRICS_USEC_PER_SEC },
	{ "container_cpu_user_seconds_total", "CPU time used outside of the kernel, in seconds",
	  METRICS_GROUP, COUNTER, USAGE(cpu_user_us), METRICS_USEC_PER_SEC },
	{ "container_cpu_system_seconds_total", "CPU time used in the kernel, in seconds",
	  METRICS_GROUP, COUNTER, USAGE(cpu_system_us), METRICS_USEC_PER_SEC },
	{ "container_cpu_cfs_periods_total", "Periods in which a quota of CPU time counted",
	  METRICS_GROUP, COUNTER, USAGE(cpu_periods), 1 },
	{ "container_cpu_cfs_throttled_periods_total", "Periods in which the quota was used up",
	  METRICS_GROUP, COUNTER, USAGE(cpu_periods_throttled), 1 },
	{ "container_cpu_cfs_throttled_seconds_total",
	  "Time spent waiting for the next period, in seconds", METRICS_GROUP, COUNTER,
	  USAGE(cpu_throttled_us), METRICS_USEC_PER_SEC },

	{ "container_memory_usage_bytes", "Memory used, with the page cache", METRICS_MEMORY, GAUGE,
	  USAGE(memory_current), 1 },
	{ "container_memory_max_usage_bytes", "Most memory ever used", METRICS_MEMORY, GAUGE,
	  USAGE(memory_peak), 1 },
	{ "container_memory_working_set_bytes", "Memory used, less what is cheap to reclaim",
	  METRICS_MEMORY, GAUGE, NO_NUMBER, 1 },
	{ "container_memory_cache", "Bytes of the page cache", METRICS_MEMORY, GAUGE,
	  USAGE(memory_file), 1 },
	{ "container_memory_rss", "Bytes of anonymous memory", METRICS_MEMORY, GAUGE,
	  USAGE(memory_anon), 1 },
	{ "container_memory_kernel_usage", "Bytes of the kernel's own memory", METRICS_MEMORY,
	  GAUGE, USAGE(memory_kernel), 1 },
	{ "container_memory_mapped_file", "Bytes of mapped files", METRICS_MEMORY_PARTS, GAUGE,
	  DETAIL(memory_mapped), 1 },
	{ "container_memory_total_active_anon_bytes", "Bytes of anonymous memory in recent use",
	  METRICS_MEMORY_PARTS, GAUGE, DETAIL(memory_active_anon), 1 },
	{ "container_memory_total_inactive_anon_bytes",
	  "Bytes of anonymous memory not in recent use", METRICS_MEMORY_PARTS, GAUGE,
	  DETAIL(memory_inactive_anon), 1 },
	{ "container_memory_anon_hugepages_bytes", "Bytes of transparent huge pages",
	  METRICS_MEMORY_PARTS, GAUGE, DETAIL(memory_anon_huge), 1 },
	{ "container_memory_failcnt", "Times that the limit of memory was reached", METRICS_MEMORY,
	  COUNTER, USAGE(memory_max_hits), 1 },
	{ "container_oom_events_total", "Processes killed for want of memory", METRICS_MEMORY,
	  COUNTER, USAGE(oom_kills), 1 },
	{ "container_memory_swap", "Bytes of swap used", METRICS_SWAP, GAUGE, USAGE(swap_current),
	  1 },
	{ "container_memory_failures_total", "Page faults, by kind", METRICS_FAULTS, COUNTER,
	  NO_NUMBER, 1 },

	{ "container_processes", "Processes", METRICS_PROCESSES, GAUGE, READING(processes), 1 },
	{ "container_threads", "Threads of all processes", METRICS_PIDS, GAUGE, USAGE(pids_current),
	  1 },
	{ "container_threads_max", "Threads that it may have, 0 for any number", METRICS_PIDS,
	  GAUGE, USAGE(pids_limit), 1 },
	{ "container_file_descriptors", "Open descriptors of all processes", METRICS_DESCRIPTORS,
	  GAUGE, READING(descriptors), 1 },
	{ "container_sockets", "Open sockets of all processes", METRICS_DESCRIPTORS, GAUGE,
	  READING(sockets), 1 },
	{ "container_ulimits_soft", "Soft limits of the first process", METRICS_ULIMIT, GAUGE,
	  NO_NUMBER, 1 },

	{ "container_fs_usage_bytes", "Bytes that the container's layer takes", METRICS_LAYER,
	  GAUGE, NO_NUMBER, 1 },
	{ "container_fs_limit_bytes", "Bytes of the file system that the layer is in",
	  METRICS_FILES, GAUGE, READING(files_bytes), 1 },
	{ "container_fs_inodes_total", "Inodes of the file system that the layer is in",
	  METRICS_FILES, GAUGE, READING(inodes), 1 },
	{ "container_fs_inodes_free", "Free inodes of the file system that the layer is in",
	  METRICS_FILES, GAUGE, READING(inodes_free), 1 },
	{ "container_fs_reads_bytes_total", "Bytes read from a device", METRICS_DEVICE, COUNTER,
	  offsetof(struct usage_device, read_bytes), 1 },
	{ "container_fs_reads_total", "Reads from a device", METRICS_DEVICE, COUNTER,
	  offsetof(struct usage_device, reads), 1 },
	{ "container_fs_writes_bytes_total", "Bytes written to a device", METRICS_DEVICE, COUNTER,
	  offsetof(struct usage_device, written_bytes), 1 },
	{ "container_fs_writes_total", "Writes to a device", METRICS_DEVICE, COUNTER,
	  offsetof(struct usage_device, writes), 1 },
	{ "container_blkio_device_usage_total", "Bytes moved from or to a device, by operation",
	  METRICS_OPERATION, COUNTER, NO_NUMBER, 1 },

	{ "container_hugetlb_usage_bytes", "Bytes of huge pages used", METRICS_PAGES, GAUGE,
	  offsetof(struct usage_hugetlb, current), 1 },

	{ "container_network_receive_bytes_total", "Bytes received", METRICS_LINK, COUNTER,
	  READING(traffic[CRI_RECEIVED_BYTES]), 1 },
	{ "container_network_receive_packets_total", "Packets received", METRICS_LINK, COUNTER,
	  READING(traffic[CRI_RECEIVED_PACKETS]), 1 },
	{ "container_network_receive_packets_dropped_total", "Packets dropped on the way in",
	  METRICS_LINK, COUNTER, READING(traffic[CRI_RECEIVED_DROPPED]), 1 },
	{ "container_network_receive_errors_total", "Errors on the way in", METRICS_LINK, COUNTER,
	  READING(traffic[CRI_RECEIVED_ERRORS]), 1 },
	{ "container_network_transmit_bytes_total", "Bytes sent", METRICS_LINK, COUNTER,
	  READING(traffic[CRI_SENT_BYTES]), 1 },
	{ "container_network_transmit_packets_total", "Packets sent", METRICS_LINK, COUNTER,
	  READING(traffic[CRI_SENT_PACKETS]), 1 },
	{ "container_network_transmit_packets_dropped_total", "Packets dropped on the way out",
	  METRICS_LINK, COUNTER, READING(traffic[CRI_SENT_DROPPED]), 1 },
	{ "container_network_transmit_errors_total", "Errors on the way out", METRICS_LINK, COUNTER,
	  READING(traffic[CRI_SENT_ERRORS]), 1 },

	{ "container_pressure_cpu_waiting_seconds_total",
	  "Time in which some process waited for a processor", METRICS_CPU_STALL, COUNTER,
	  DETAIL(cpu.some.total_us), METRICS_USEC_PER_SEC },
	{ "container_pressure_cpu_stalled_seconds_total",
	  "Time in which all processes waited for a processor", METRICS_CPU_STALL, COUNTER,
	  DETAIL(cpu.full.total_us), METRICS_USEC_PER_SEC },
	{ "container_pressure_memory_waiting_seconds_total",
	  "Time in which some process waited for memory", METRICS_MEMORY_STALL, COUNTER,
	  DETAIL(memory.some.total_us), METRICS_USEC_PER_SEC },
	{ "container_pressure_memory_stalled_seconds_total",
	  "Time in which all processes waited for memory", METRICS_MEMORY_STALL, COUNTER,
	  DETAIL(memory.full.total_us), METRICS_USEC_PER_SEC },
	{ "container_pressure_io_waiting_seconds_total",
	  "Time in which some process waited for a device", METRICS_IO_STALL, COUNTER,
	  DETAIL(io.some.total_us), METRICS_USEC_PER_SEC },
	{ "container_pressure_io_stalled_seconds_total",
	  "Time in which all processes waited for a device", METRICS_IO_STALL, COUNTER,
	  DETAIL(io.full.total_us), METRICS_USEC_PER_SEC },

	{ "container_last_seen", "When this was read, in seconds since 1970", METRICS_GROUP, GAUGE,
	  READING(at), METRICS_NSEC_PER_SEC },
	{ "container_start_time_seconds", "When it was started, in seconds since 1970",
	  METRICS_GROUP, GAUGE, NO_NUMBER, 1 },
	{ "container_spec_cpu_period", "Microseconds of a period", METRICS_CONTAINER, GAUGE,
	  NO_NUMBER, 1 },
	{ "container_spec_cpu_quota", "Microseconds of CPU time in each period", METRICS_QUOTA,
	  GAUGE, NO_NUMBER, 1 },
	{ "container_spec_cpu_shares", "Share of CPU time beside others", METRICS_CONTAINER, GAUGE,
	  NO_NUMBER, 1 },
	{ "container_spec_memory_limit_bytes", "Memory that it may use, 0 for any",
	  METRICS_CONTAINER, GAUGE, NO_NUMBER, 1 },
	{ "container_spec_memory_swap_limit_bytes",
	  "Memory and swap that it may use together, 0 for any", METRICS_CONTAINER, GAUGE,
	  NO_NUMBER, 1 },
	{ "container_spec_memory_reservation_limit_bytes", "Memory that is kept for it, 0 for none",
	  METRICS_CONTAINER, GAUGE, NO_NUMBER, 1 },
};

static size_t metrics_n_more(enum metrics_part part)
{
	size_t n = 0;

	while (n < ARRAY_SIZE(metrics_more[part].keys) && metrics_more[part].keys[n])
		n++;
	return n;
}

static char *metrics_str(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* ---- what there can be ---- */

static Runtime__V1__MetricDescriptor *metrics_descriptor(struct arena *a,
							 const struct metrics_kind *k)
{
	Runtime__V1__MetricDescriptor *m = arena_alloc(a, sizeof(*m));
	size_t n_base = ARRAY_SIZE(metrics_base), n = n_base + metrics_n_more(k->part);

	if (!m)
		return NULL;
	runtime__v1__metric_descriptor__init(m);
	m->name = metrics_str(k->name);
	m->help = metrics_str(k->help);
	m->label_keys = arena_zalloc(a, n, sizeof(char *));
	if (!m->label_keys)
		return NULL;
	for (size_t i = 0; i < n; i++)
		m->label_keys[i] = metrics_str(i < n_base ? metrics_base[i]
							  : metrics_more[k->part].keys[i - n_base]);
	m->n_label_keys = n;
	return m;
}

Runtime__V1__MetricDescriptor **cri_metrics_descriptors(struct arena *a, size_t *n)
{
	Runtime__V1__MetricDescriptor **list =
		arena_zalloc(a, ARRAY_SIZE(metrics_kinds), sizeof(*list));

	*n = ARRAY_SIZE(metrics_kinds);
	for (size_t i = 0; list && i < *n; i++) {
		list[i] = metrics_descriptor(a, &metrics_kinds[i]);
		if (!list[i])
			return NULL;
	}
	return list;
}

/* ---- what there is ---- */

struct metrics_list {
	struct arena *arena;
	const struct cri_reading *of;
	const struct cri_metrics_owner *owner;
	const char *id; /* the label */
	Runtime__V1__Metric **items;
	size_t n, size;
	bool failed; /* no memory */
};

/* more: values of the labels that the metric has beside those of every one. */
static void metrics_add(struct metrics_list *l, const struct metrics_kind *k, uint64_t value,
			const char *const *more)
{
	size_t n_base = ARRAY_SIZE(metrics_base), n = n_base + metrics_n_more(k->part);
	Runtime__V1__Metric *m = arena_alloc(l->arena, sizeof(*m));
	Runtime__V1__UInt64Value *number = arena_alloc(l->arena, sizeof(*number));
	char **labels = arena_zalloc(l->arena, n, sizeof(*labels));
	const char *const base[] = { l->owner->container, l->id,           l->owner->image,
				     l->owner->id,        l->owner->space, l->owner->pod };

	if (!m || !number || !labels || l->n == l->size) {
		l->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		labels[i] = metrics_str(i < n_base ? base[i] : more[i - n_base]);
	runtime__v1__metric__init(m);
	runtime__v1__uint64_value__init(number);
	number->value = value / k->divide;
	m->name = metrics_str(k->name);
	m->timestamp = (int64_t)l->of->at;
	m->metric_type = k->type;
	m->label_values = labels;
	m->n_label_values = n;
	m->value = number;
	l->items[l->n++] = m;
}

static uint64_t metrics_at(const void *of, size_t at)
{
	return *(const uint64_t *)(const void *)((const char *)of + at);
}

static void metrics_add_devices(struct metrics_list *l, const struct metrics_kind *k)
{
	const struct usage_details *d = &l->of->details;

	for (size_t i = 0; i < d->n_devices; i++)
		metrics_add(l, k, metrics_at(&d->devices[i], k->at),
			    (const char *const[]){ l->of->devices[i] });
}

static void metrics_add_operations(struct metrics_list *l, const struct metrics_kind *k)
{
	const struct usage_details *d = &l->of->details;

	for (size_t i = 0; i < d->n_devices; i++) {
		const char *major = arena_printf(l->arena, "%u", d->devices[i].major);
		const char *minor = arena_printf(l->arena, "%u", d->devices[i].minor);

		l->failed = l->failed || !major || !minor;
		if (l->failed)
			return;
		metrics_add(l, k, d->devices[i].read_bytes,
			    (const char *const[]){ l->of->devices[i], major, minor, "Read" });
		metrics_add(l, k, d->devices[i].written_bytes,
			    (const char *const[]){ l->of->devices[i], major, minor, "Write" });
	}
}

static void metrics_add_pages(struct metrics_list *l, const struct metrics_kind *k)
{
	const struct usage_details *d = &l->of->details;

	for (size_t i = 0; i < d->n_hugetlb; i++)
		metrics_add(l, k, metrics_at(&d->hugetlb[i], k->at),
			    (const char *const[]){ d->hugetlb[i].size });
}

/* A group's numbers include those of the groups below it: both scopes have the same. */
static void metrics_add_faults(struct metrics_list *l, const struct metrics_kind *k)
{
	static const char *const scopes[] = { "container", "hierarchy" };

	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
		metrics_add(l, k, l->of->details.page_faults,
			    (const char *const[]){ "pgfault", scopes[i] });
		metrics_add(l, k, l->of->details.major_page_faults,
			    (const char *const[]){ "pgmajfault", scopes[i] });
	}
}

static bool metrics_are_there(const struct metrics_list *l, enum metrics_part part)
{
	const struct cri_reading *r = l->of;
	const bool there[] = {
		[METRICS_GROUP] = true,
		[METRICS_MEMORY] = r->usage.has_memory,
		[METRICS_MEMORY_PARTS] = r->usage.has_memory && r->has_details,
		[METRICS_SWAP] = r->usage.has_swap,
		[METRICS_PIDS] = r->usage.has_pids,
		[METRICS_CPU_STALL] = r->details.cpu.there,
		[METRICS_MEMORY_STALL] = r->details.memory.there,
		[METRICS_IO_STALL] = r->details.io.there,
		[METRICS_PROCESSES] = r->has_processes,
		[METRICS_DESCRIPTORS] = r->has_descriptors,
		[METRICS_FILES] = r->has_files,
		[METRICS_LAYER] = l->owner->files.at > 0,
		[METRICS_CONTAINER] = l->owner->limits != NULL,
		[METRICS_QUOTA] = l->owner->limits && l->owner->limits->cpu_quota > 0,
		[METRICS_DEVICE] = true,
		[METRICS_OPERATION] = true,
		[METRICS_PAGES] = true,
		[METRICS_FAULTS] = r->usage.has_memory && r->has_details,
		[METRICS_LINK] = r->has_traffic,
		[METRICS_ULIMIT] = r->has_open_files,
	};

	return there[part];
}

/* A negative one says that there is no limit. */
static uint64_t metrics_limit(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

/* Numbers that no member holds as they are. */
static uint64_t metrics_made(const struct metrics_list *l, const struct metrics_kind *k)
{
	static const Runtime__V1__LinuxContainerResources none =
		RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	const Runtime__V1__LinuxContainerResources *limits =
		l->owner->limits ? l->owner->limits : &none;
	const struct usage *u = &l->of->usage;
	const struct {
		const char *name;
		uint64_t value;
	} made[] = {
		{ "container_memory_working_set_bytes",
		  u->memory_current > u->memory_inactive_file
			  ? u->memory_current - u->memory_inactive_file
			  : 0 },
		{ "container_fs_usage_bytes", l->owner->files.bytes },
		{ "container_start_time_seconds", l->owner->started_at / METRICS_NSEC_PER_SEC },
		{ "container_spec_cpu_period", (uint64_t)(limits->cpu_period ?: 100000) },
		{ "container_spec_cpu_quota", metrics_limit(limits->cpu_quota) },
		{ "container_spec_cpu_shares", (uint64_t)(limits->cpu_shares ?: 1024) },
		{ "container_spec_memory_limit_bytes",
		  metrics_limit(limits->memory_limit_in_bytes) },
		{ "container_spec_memory_swap_limit_bytes",
		  metrics_limit(limits->memory_swap_limit_in_bytes) },
		{ "container_spec_memory_reservation_limit_bytes", l->owner->reserved },
	};

	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		if (str_eq(made[i].name, k->name))
			return made[i].value;
	return 0;
}

static void metrics_add_kind(struct metrics_list *l, const struct metrics_kind *k)
{
	static void (*const lists[METRICS_ULIMIT + 1])(struct metrics_list *,
						       const struct metrics_kind *) = {
		[METRICS_DEVICE] = metrics_add_devices,
		[METRICS_OPERATION] = metrics_add_operations,
		[METRICS_PAGES] = metrics_add_pages,
		[METRICS_FAULTS] = metrics_add_faults,
	};

	if (!metrics_are_there(l, k->part))
		return;
	if (lists[k->part])
		lists[k->part](l, k);
	else if (k->part == METRICS_ULIMIT)
		metrics_add(l, k, l->of->open_files, (const char *const[]){ "max_open_files" });
	else if (k->part == METRICS_LINK)
		metrics_add(l, k, metrics_at(l->of, k->at), (const char *const[]){ "eth0" });
	else
		metrics_add(l, k,
			    k->at == NO_NUMBER ? metrics_made(l, k) : metrics_at(l->of, k->at),
			    NULL);
}

Runtime__V1__Metric **cri_metrics(struct arena *a, const struct cri_reading *r,
				  const struct cri_metrics_owner *owner, size_t *n)
{
	struct metrics_list l = { .arena = a, .of = r, .owner = owner };

	/* Of each device: reads and writes, in bytes and in number, and two operations. */
	l.size = METRICS_SINGLE_MAX + ARRAY_SIZE(metrics_kinds) + 6 * r->details.n_devices +
		 r->details.n_hugetlb;
	l.items = arena_zalloc(a, l.size, sizeof(*l.items));
	l.id = arena_printf(a, "/%s", owner->group);
	if (!l.items || !l.id)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(metrics_kinds) && r->result == 0 && !l.failed; i++)
		metrics_add_kind(&l, &metrics_kinds[i]);
	*n = l.n;
	return l.failed ? NULL : l.items;
}
