/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/stats.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"

#define STATS_FILE_MAX 64
#define STATS_NSEC_PER_USEC 1000

/* ---- reading ---- */

/* A counter of the node's end of a link. */
static int stats_read_counter(int root_fd, const char *device, const char *name, uint64_t *ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char path[128];
	int r;

	(void)str_printf(path, sizeof(path), "sys/class/net/%s/statistics/%s", device, name);
	r = rootfd_read(root_fd, path, STATS_FILE_MAX, &b);
	if (r < 0)
		return r;
	text = buf_take_str(&b);
	if (!text)
		return -ENOMEM;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, 0, UINT64_MAX, ret);
}

/* What goes in at one end comes out at the other. */
static void stats_read_traffic(struct cri_usage *u, const char *device)
{
	const struct {
		const char *name;
		uint64_t *to;
	} counters[] = {
		{ "tx_bytes", &u->received },
		{ "rx_bytes", &u->sent },
		{ "tx_errors", &u->receive_errors },
		{ "rx_errors", &u->send_errors },
	};
	_cleanup_fd_ int root_fd = rootfd_point(AT_FDCWD, "/");

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		if (root_fd < 0 ||
		    stats_read_counter(root_fd, device, counters[i].name, counters[i].to) < 0)
			return;
	u->has_traffic = true;
}

void cri_usage_read(struct cri_usage *u, int cgroup_fd, const char *group, const char *device)
{
	struct usage_details details = { .n_devices = 0 };

	*u = (struct cri_usage){ .at = clock_real() };
	u->result = usage_read(cgroup_fd, group, &u->usage);
	if (u->result == 0 && usage_read_details(cgroup_fd, group, &details) == 0) {
		u->cpu = details.cpu;
		u->memory = details.memory;
		u->io = details.io;
	}
	if (*device)
		stats_read_traffic(u, device);
}

void cri_usage_take(struct cri_usage *u, const struct usage *told)
{
	u->at = clock_real();
	u->result = 0;
	u->usage = *told;
}

void cri_usage_read_machine(struct cri_usage *u, struct machine_usage *m, int cgroup_fd,
			    const char *device)
{
	struct usage inside = u->usage;
	bool told = u->result == 0;

	machine_usage_read(m, cgroup_fd);
	u->result = m->vmm ? m->result : -ENOENT;
	if (u->result < 0)
		return;
	cri_usage_take(u, &m->usage);
	u->usage.has_memory = true;
	u->usage.has_swap = false;
	u->usage.memory_current = u->usage.memory_anon = m->host_memory + m->overhead;
	u->usage.memory_inactive_file = 0;
	u->usage.has_pids = told && inside.has_pids;
	u->usage.pids_current = inside.pids_current;
	if (*device)
		stats_read_traffic(u, device);
}

/* ---- messages ---- */

static Runtime__V1__UInt64Value *stats_number(struct arena *a, uint64_t n)
{
	Runtime__V1__UInt64Value *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__uint64_value__init(m);
	m->value = n;
	return m;
}

/* Hundredths of a percent. */
static Runtime__V1__PsiData *stats_stall(struct arena *a, const struct usage_stall *s)
{
	Runtime__V1__PsiData *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__psi_data__init(m);
	m->total = s->total_us * STATS_NSEC_PER_USEC;
	m->avg10 = s->avg10 / 100.0;
	m->avg60 = s->avg60 / 100.0;
	m->avg300 = s->avg300 / 100.0;
	return m;
}

/* *ret stays NULL where the kernel does not count. 0 or -ENOMEM. */
static int stats_pressure(struct arena *a, const struct usage_pressure *p,
			  Runtime__V1__PsiStats **ret)
{
	Runtime__V1__PsiStats *m;

	if (!p->there)
		return 0;
	m = arena_alloc(a, sizeof(*m));
	if (!m)
		return -ENOMEM;
	runtime__v1__psi_stats__init(m);
	m->some = stats_stall(a, &p->some);
	m->full = stats_stall(a, &p->full);
	*ret = m;
	return m->some && m->full ? 0 : -ENOMEM;
}

static Runtime__V1__CpuUsage *stats_cpu(struct arena *a, const struct cri_usage *u)
{
	Runtime__V1__CpuUsage *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__cpu_usage__init(m);
	m->timestamp = (int64_t)u->at;
	m->usage_core_nano_seconds = stats_number(a, u->usage.cpu_total_us * STATS_NSEC_PER_USEC);
	return m->usage_core_nano_seconds && stats_pressure(a, &u->cpu, &m->psi) == 0 ? m : NULL;
}

static int stats_fill_memory(struct arena *a, const struct usage *u, Runtime__V1__MemoryUsage *m)
{
	uint64_t working_set = u->memory_current > u->memory_inactive_file
				       ? u->memory_current - u->memory_inactive_file
				       : 0;

	m->usage_bytes = stats_number(a, u->memory_current);
	m->working_set_bytes = stats_number(a, working_set);
	m->rss_bytes = stats_number(a, u->memory_anon);
	if (u->memory_limit) {
		m->available_bytes = stats_number(
			a, u->memory_limit > working_set ? u->memory_limit - working_set : 0);
		if (!m->available_bytes)
			return -ENOMEM;
	}
	return m->usage_bytes && m->working_set_bytes && m->rss_bytes ? 0 : -ENOMEM;
}

static Runtime__V1__MemoryUsage *stats_memory(struct arena *a, const struct cri_usage *u)
{
	Runtime__V1__MemoryUsage *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__memory_usage__init(m);
	m->timestamp = (int64_t)u->at;
	if (u->usage.has_memory && stats_fill_memory(a, &u->usage, m) < 0)
		return NULL;
	return stats_pressure(a, &u->memory, &m->psi) == 0 ? m : NULL;
}

static Runtime__V1__IoUsage *stats_io(struct arena *a, const struct cri_usage *u)
{
	Runtime__V1__IoUsage *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__io_usage__init(m);
	m->timestamp = (int64_t)u->at;
	return stats_pressure(a, &u->io, &m->psi) == 0 ? m : NULL;
}

/* *ret stays NULL where the kernel does not count it. */
static int stats_swap(struct arena *a, const struct cri_usage *u, Runtime__V1__SwapUsage **ret)
{
	const struct usage *of = &u->usage;
	Runtime__V1__SwapUsage *m;

	if (!of->has_swap)
		return 0;
	m = arena_alloc(a, sizeof(*m));
	if (!m)
		return -ENOMEM;
	runtime__v1__swap_usage__init(m);
	m->timestamp = (int64_t)u->at;
	m->swap_usage_bytes = stats_number(a, of->swap_current);
	if (of->swap_limit > of->swap_current)
		m->swap_available_bytes = stats_number(a, of->swap_limit - of->swap_current);
	*ret = m;
	return m->swap_usage_bytes ? 0 : -ENOMEM;
}

/* What is measured now and then; before the first time it is absent. */
static int stats_layer(struct arena *a, const struct disk_written *files, const char *root,
		       Runtime__V1__FilesystemUsage **ret)
{
	Runtime__V1__FilesystemUsage *m;

	if (!files->at)
		return 0;
	m = arena_alloc(a, sizeof(*m));
	if (!m)
		return -ENOMEM;
	runtime__v1__filesystem_usage__init(m);
	m->timestamp = (int64_t)files->at;
	m->fs_id = arena_alloc(a, sizeof(*m->fs_id));
	m->used_bytes = stats_number(a, files->bytes);
	if (!m->fs_id || !m->used_bytes)
		return -ENOMEM;
	runtime__v1__filesystem_identifier__init(m->fs_id);
	m->fs_id->mountpoint = (char *)(uintptr_t)root;
	*ret = m;
	return 0;
}

Runtime__V1__ContainerStats *cri_stats_container(struct arena *a, const struct cri_usage *u,
						 Runtime__V1__ContainerAttributes *attributes,
						 const struct disk_written *files, const char *root)
{
	Runtime__V1__ContainerStats *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__container_stats__init(m);
	m->attributes = attributes;
	if (stats_layer(a, files, root, &m->writable_layer) < 0)
		return NULL;
	if (u->result < 0)
		return m;
	m->cpu = stats_cpu(a, u);
	m->memory = stats_memory(a, u);
	m->io = stats_io(a, u);
	return m->cpu && m->memory && m->io && stats_swap(a, u, &m->swap) == 0 ? m : NULL;
}

static int stats_network(struct arena *a, const struct cri_usage *u,
			 Runtime__V1__NetworkUsage **ret)
{
	Runtime__V1__NetworkUsage *m;
	Runtime__V1__NetworkInterfaceUsage *i;

	if (!u->has_traffic)
		return 0;
	m = arena_alloc(a, sizeof(*m));
	i = arena_alloc(a, sizeof(*i));
	if (!m || !i)
		return -ENOMEM;
	runtime__v1__network_usage__init(m);
	runtime__v1__network_interface_usage__init(i);
	i->name = (char *)(uintptr_t) "eth0";
	i->rx_bytes = stats_number(a, u->received);
	i->tx_bytes = stats_number(a, u->sent);
	i->rx_errors = stats_number(a, u->receive_errors);
	i->tx_errors = stats_number(a, u->send_errors);
	m->timestamp = (int64_t)u->at;
	m->default_interface = i;
	*ret = m;
	return i->rx_bytes && i->tx_bytes && i->rx_errors && i->tx_errors ? 0 : -ENOMEM;
}

static int stats_processes(struct arena *a, const struct cri_usage *u,
			   Runtime__V1__ProcessUsage **ret)
{
	Runtime__V1__ProcessUsage *m;

	if (!u->usage.has_pids)
		return 0;
	m = arena_alloc(a, sizeof(*m));
	if (!m)
		return -ENOMEM;
	runtime__v1__process_usage__init(m);
	m->timestamp = (int64_t)u->at;
	m->process_count = stats_number(a, u->usage.pids_current);
	*ret = m;
	return m->process_count ? 0 : -ENOMEM;
}

Runtime__V1__PodSandboxStats *cri_stats_sandbox(struct arena *a, const struct cri_usage *u,
						Runtime__V1__PodSandboxAttributes *attributes,
						Runtime__V1__ContainerStats **containers,
						size_t n_containers)
{
	Runtime__V1__PodSandboxStats *m = arena_alloc(a, sizeof(*m));
	Runtime__V1__LinuxPodSandboxStats *own = arena_alloc(a, sizeof(*own));

	if (!m || !own)
		return NULL;
	runtime__v1__pod_sandbox_stats__init(m);
	runtime__v1__linux_pod_sandbox_stats__init(own);
	m->attributes = attributes;
	m->linux = own;
	own->containers = containers;
	own->n_containers = n_containers;
	if (u->result < 0)
		return m;
	own->cpu = stats_cpu(a, u);
	own->memory = stats_memory(a, u);
	own->io = stats_io(a, u);
	if (!own->cpu || !own->memory || !own->io)
		return NULL;
	return stats_network(a, u, &own->network) == 0 && stats_processes(a, u, &own->process) == 0
		       ? m
		       : NULL;
}
