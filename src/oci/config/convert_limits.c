/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "oci/cmd/report.h"

/* The kernel's, of a group that nobody has changed. */
#define CPU_WEIGHT_DEFAULT 100

/* What version 1 had and version 2 has not. */
static int limits_gone(const char *field, struct error *err)
{
	return error_field(err, ERROR_PRECONDITION, field,
			   "cannot be enforced: cgroup version 2 has nothing like it");
}

static struct limit limit_of(struct json_int n)
{
	return (struct limit){ .set = n.set, .value = n.value < 0 ? LIMIT_MAX : (uint64_t)n.value };
}

/* Numbers of which 0 means: not said. */
static struct limit limit_unless_zero(struct json_int n)
{
	if (n.value == 0)
		n.set = false;
	return limit_of(n);
}

static int limits_memory(struct isolate_limits *to, const struct oci_memory *m, struct error *err)
{
	if (!m)
		return 0;
	if (m->swappiness.set)
		return limits_gone("linux.resources.memory.swappiness", err);
	if (m->disable_oom_killer.value)
		return limits_gone("linux.resources.memory.disableOOMKiller", err);
	if (m->kernel.value > 0)
		return limits_gone("linux.resources.memory.kernel", err);
	if (m->kernel_tcp.value > 0)
		return limits_gone("linux.resources.memory.kernelTCP", err);
	to->memory_max = limit_unless_zero(m->limit);
	to->memory_low = limit_unless_zero(m->reservation);
	to->memory_check = m->check_before_update.value;
	if (m->swap.value == 0)
		return 0;
	return limits_swap_max(&to->memory_swap_max, m->limit.value, m->swap.value, err);
}

/* The range of version 1, which the weights of version 2 stand for. */
static void limits_warn_range(const char *field, uint64_t value, uint64_t min, uint64_t max)
{
	if (value != 0 && (value < min || value > max))
		report_warning("%s: %" PRIu64 " is not within %" PRIu64 " and %" PRIu64 ", %" PRIu64
			       " is set",
			       field, value, min, max, value < min ? min : max);
}

static int limits_cpu(struct isolate_limits *to, const struct oci_cpu *c, struct error *err)
{
	if (!c)
		return 0;
	if (c->realtime_runtime.value != 0 || c->realtime_period.value != 0)
		return limits_gone("linux.resources.cpu.realtimeRuntime", err);
	limits_warn_range("linux.resources.cpu.shares", c->shares.value, 2, 262144);
	if (c->shares.value != 0)
		to->cpu_weight = LIMIT(limits_cpu_weight(c->shares.value));
	to->cpu_quota = limit_unless_zero(c->quota);
	if (c->period.value != 0)
		to->cpu_period = LIMIT(c->period.value);
	if (c->burst.set)
		to->cpu_burst = LIMIT(c->burst.value);
	if (c->idle.set)
		to->cpu_idle = LIMIT((uint64_t)c->idle.value);
	to->cpuset_cpus = str_empty(c->cpus) ? NULL : c->cpus;
	to->cpuset_mems = str_empty(c->mems) ? NULL : c->mems;
	return 0;
}

/* The entry of a device, made where it is missing. */
static struct limit_io *limits_io_of(struct limit_io *list, size_t *n, int64_t major, int64_t minor)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].major == (uint32_t)major && list[i].minor == (uint32_t)minor)
			return &list[i];
	list[*n] = (struct limit_io){ .major = (uint32_t)major, .minor = (uint32_t)minor };
	return &list[(*n)++];
}

static int limits_device(int64_t major, int64_t minor, struct error *err)
{
	if (major < 0 || minor < 0 || major > UINT32_MAX || minor > UINT32_MAX)
		return error_field(err, ERROR_INVALID, "linux.resources.blockIO",
				   "%lld:%lld is no device", (long long)major, (long long)minor);
	return 0;
}

static int limits_throttles(struct limit_io *list, size_t *n, const struct oci_block_io *b,
			    struct error *err)
{
	static const size_t members[OCI_THROTTLE_COUNT] = {
		[OCI_READ_BPS] = offsetof(struct limit_io, rbps),
		[OCI_WRITE_BPS] = offsetof(struct limit_io, wbps),
		[OCI_READ_IOPS] = offsetof(struct limit_io, riops),
		[OCI_WRITE_IOPS] = offsetof(struct limit_io, wiops),
	};

	for (int t = 0; t < OCI_THROTTLE_COUNT; t++) {
		for (size_t i = 0; i < b->throttles[t].n; i++) {
			const struct oci_throttle_device *d = &b->throttles[t].devices[i];
			struct limit_io *io;
			int r = limits_device(d->major.value, d->minor.value, err);

			if (r < 0)
				return r;
			io = limits_io_of(list, n, d->major.value, d->minor.value);
			*(struct limit *)(void *)((char *)io + members[t]) =
				LIMIT(d->rate.value ? d->rate.value : LIMIT_MAX);
		}
	}
	return 0;
}

static int limits_block_io(struct isolate_limits *to, struct arena *arena,
			   const struct oci_block_io *b, struct error *err)
{
	size_t n = 0, max;
	struct limit_io *list;
	int r = 0;

	if (!b)
		return 0;
	max = b->n_weight_devices;
	for (int t = 0; t < OCI_THROTTLE_COUNT; t++)
		max += b->throttles[t].n;
	list = arena_zalloc(arena, max + 1, sizeof(*list));
	if (!list)
		return error_set(err, -ENOMEM, "convert the limits");
	if (b->leaf_weight.value != 0)
		return limits_gone("linux.resources.blockIO.leafWeight", err);
	limits_warn_range("linux.resources.blockIO.weight", b->weight.value, 10, 1000);
	if (b->weight.value != 0)
		to->blkio_weight = LIMIT(b->weight.value);
	for (size_t i = 0; r == 0 && i < b->n_weight_devices; i++) {
		const struct oci_weight_device *d = &b->weight_devices[i];

		if (d->leaf_weight.value != 0)
			return limits_gone("linux.resources.blockIO.weightDevice.leafWeight", err);
		r = limits_device(d->major.value, d->minor.value, err);
		if (r == 0)
			limits_io_of(list, &n, d->major.value, d->minor.value)->weight =
				LIMIT(d->weight.value);
	}
	if (r == 0)
		r = limits_throttles(list, &n, b, err);
	to->io = list;
	to->n_io = n;
	return r;
}

static int limits_lists(struct isolate_limits *to, struct arena *arena,
			const struct oci_resources *res, struct error *err)
{
	struct limit_hugetlb *huge = arena_zalloc(arena, res->n_huge_pages + 1, sizeof(*huge));
	struct limit_rdma *rdma = arena_zalloc(arena, res->n_rdma + 1, sizeof(*rdma));
	struct limit_file *files = arena_zalloc(arena, res->n_unified + 1, sizeof(*files));

	if (!huge || !rdma || !files)
		return error_set(err, -ENOMEM, "convert the limits");
	for (size_t i = 0; i < res->n_huge_pages; i++)
		huge[i] = (struct limit_hugetlb){ .size = res->huge_pages[i].page_size,
						  .max = res->huge_pages[i].limit.value };
	for (size_t i = 0; i < res->n_rdma; i++)
		rdma[i] = (struct limit_rdma){
			.device = res->rdma[i].name,
			.handles = { res->rdma[i].handles.set, res->rdma[i].handles.value },
			.objects = { res->rdma[i].objects.set, res->rdma[i].objects.value },
		};
	for (size_t i = 0; i < res->n_unified; i++)
		files[i] = (struct limit_file){ .file = res->unified[i].name,
						.value = res->unified[i].value };
	to->hugetlb = huge;
	to->n_hugetlb = res->n_huge_pages;
	to->rdma = rdma;
	to->n_rdma = res->n_rdma;
	to->unified = files;
	to->n_unified = res->n_unified;
	return 0;
}

int convert_limits(struct isolate_limits *ret, struct arena *arena, const struct oci_resources *res,
		   struct error *err)
{
	struct isolate_limits to = { .memory_check = false };
	int r;

	*ret = to;
	if (!res)
		return 0;
	if (res->network && (res->network->class_id.value != 0 || res->network->n_priorities > 0))
		return limits_gone("linux.resources.network", err);
	r = limits_memory(&to, res->memory, err);
	if (r == 0)
		r = limits_cpu(&to, res->cpu, err);
	if (r == 0)
		r = limits_block_io(&to, arena, res->block_io, err);
	if (r == 0)
		r = limits_lists(&to, arena, res, err);
	if (r < 0)
		return r;
	/* Callers of before version 1.3 write 0 where they mean none. */
	if (res->pids)
		to.pids_max = limit_unless_zero(res->pids->limit);
	*ret = to;
	return 0;
}

void convert_limits_of_new(struct isolate_limits *limits)
{
	if (limits->cpu_weight.value == CPU_WEIGHT_DEFAULT)
		limits->cpu_weight.set = false;
	if (limits->cpu_quota.value == LIMIT_MAX && !limits->cpu_burst.value)
		limits->cpu_quota.set = limits->cpu_period.set = false;
	if (limits->cpu_idle.value == 0)
		limits->cpu_idle.set = false;
	if (limits->cpu_burst.value == 0)
		limits->cpu_burst.set = false;
}

/* ---- devices ---- */

static int rule_access(const char *words, unsigned *ret)
{
	unsigned access = 0;

	for (; *words; words++) {
		if (*words == 'r')
			access |= DEVICE_READ;
		else if (*words == 'w')
			access |= DEVICE_WRITE;
		else if (*words == 'm')
			access |= DEVICE_MKNOD;
		else
			return -EINVAL;
	}
	*ret = access;
	return 0;
}

/* One rule of the document is one or two of ours: "all" with a number is a rule for both kinds. */
static int rules_add(struct device_rule *list, size_t *n, const struct oci_device_rule *from,
		     const char *field, struct error *err)
{
	const char *type = str_empty(from->type) ? "a" : from->type;
	struct device_rule rule = {
		.allow = from->allow.value,
		.type = type[0],
		.major = from->major.set ? from->major.value : DEVICE_ANY,
		.minor = from->minor.set ? from->minor.value : DEVICE_ANY,
		.access = DEVICE_ALL,
	};

	if (strlen(type) != 1 || !strchr("acb", type[0]))
		return error_field(err, ERROR_INVALID, field, "type \"%.20s\" is not a, b or c",
				   type);
	if (!str_empty(from->access) && rule_access(from->access, &rule.access) < 0)
		return error_field(err, ERROR_INVALID, field,
				   "access \"%.20s\" is not of the letters r, w, m", from->access);
	if (rule.type == 'a' && (rule.major != DEVICE_ANY || rule.minor != DEVICE_ANY)) {
		rule.type = 'c';
		list[(*n)++] = rule;
		rule.type = 'b';
	}
	list[(*n)++] = rule;
	return 0;
}

/* Making the nodes of linux.devices is asked for by naming them; reading and writing is not. */
static void rules_of_nodes(struct device_rule *list, size_t *n, const struct oci_linux *os)
{
	for (size_t i = 0; i < os->n_devices; i++) {
		const struct oci_device *d = &os->devices[i];

		if (str_eq(d->type, "p"))
			continue;
		list[(*n)++] = (struct device_rule){
			.allow = true,
			.type = str_eq(d->type, "b") ? 'b' : 'c',
			.major = d->major.value,
			.minor = d->minor.value,
			.access = DEVICE_MKNOD,
		};
	}
}

int convert_device_rules(const struct device_rule **ret, size_t *ret_n, struct arena *arena,
			 const struct oci_linux *os, const struct oci_resources *res,
			 struct error *err)
{
	size_t n = 0, n_from = res ? res->n_devices : 0;
	struct device_rule *list = arena_zalloc(
		arena, 2 * n_from + os->n_devices + device_rules_default_count, sizeof(*list));
	char field[40];

	if (!list)
		return error_set(err, -ENOMEM, "convert the rules for devices");
	for (size_t i = 0; i < n_from; i++) {
		int r;

		(void)str_printf(field, sizeof(field), "linux.resources.devices[%zu]", i);
		r = rules_add(list, &n, &res->devices[i], field, err);
		if (r < 0)
			return r;
	}
	rules_of_nodes(list, &n, os);
	for (size_t i = 0; i < device_rules_default_count; i++)
		list[n++] = device_rules_default[i];
	*ret = list;
	*ret_n = n;
	return 0;
}
