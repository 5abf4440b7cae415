/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/limits.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/flat.h"

#define LIMITS_SHARES_MIN 2
#define LIMITS_SHARES_MAX 262144
#define LIMITS_BLKIO_MIN 10
#define LIMITS_BLKIO_MAX 1000

/* The limits that are one number in a file of their own, or in cpu.max. */
static const struct limits_number {
	const char *file;
	size_t at; /* of the struct limit */
	uint64_t min, max;
	bool word; /* LIMIT_MAX may be said */
} limits_numbers[] = {
#define NUMBER(f, member, lo, hi, w)                                                               \
	{                                                                                          \
		.file = (f), .at = offsetof(struct isolate_limits, member), .min = (lo),           \
		.max = (hi), .word = (w)                                                           \
	}
	NUMBER("memory.max", memory_max, 0, INT64_MAX, true),
	NUMBER("memory.high", memory_high, 0, INT64_MAX, true),
	NUMBER("memory.low", memory_low, 0, INT64_MAX, true),
	NUMBER("memory.min", memory_min, 0, INT64_MAX, true),
	NUMBER("memory.swap.max", memory_swap_max, 0, INT64_MAX, true),
	NUMBER("memory.oom.group", memory_oom_group, 0, 1, false),
	NUMBER("cpu.weight", cpu_weight, 1, 10000, false),
	NUMBER("cpu.idle", cpu_idle, 0, 1, false),
	NUMBER("cpu.max", cpu_quota, 1000, INT64_MAX, true),
	NUMBER("cpu.max", cpu_period, 1000, 1000000, false),
	NUMBER("cpu.max.burst", cpu_burst, 0, INT64_MAX, false),
	NUMBER("pids.max", pids_max, 0, INT_MAX, true),
	NUMBER("io.weight", blkio_weight, 1, LIMITS_BLKIO_MAX, false),
#undef NUMBER
};

static const struct limit *limits_number_of(const struct isolate_limits *l,
					    const struct limits_number *n)
{
	return (const struct limit *)(const void *)((const char *)l + n->at);
}

static int limits_check_number(const struct limit *l, const char *file, uint64_t min, uint64_t max,
			       bool word, struct error *err)
{
	if (!l->set || (word && l->value == LIMIT_MAX) || (l->value >= min && l->value <= max))
		return 0;
	return error_field(err, ERROR_INVALID, file, "%llu is not within %llu and %llu",
			   (unsigned long long)l->value, (unsigned long long)min,
			   (unsigned long long)max);
}

static int limits_check_cpu(const struct isolate_limits *l, struct error *err)
{
	if (l->cpu_burst.set && l->cpu_quota.set && l->cpu_burst.value > l->cpu_quota.value)
		return error_field(err, ERROR_INVALID, "cpu.max.burst",
				   "more than the quota of a period");
	if (l->cpu_idle.set && l->cpu_idle.value && l->cpu_weight.set)
		return error_field(err, ERROR_INVALID, "cpu.weight",
				   "an idle group (cpu.idle) has no weight");
	return 0;
}

static int limits_check_list(const char *file, const char *list, struct error *err)
{
	if (!list || (strlen(list) <= LIMITS_TEXT_MAX && flat_list_is_good(list)))
		return 0;
	return error_field(err, ERROR_INVALID, file, "\"%.64s\" is no list such as 0-3,7", list);
}

static int limits_check_count(const char *file, size_t n, size_t max, struct error *err)
{
	return n <= max ? 0 : error_field(err, ERROR_INVALID, file, "more than %zu entries", max);
}

static int limits_check_io(const struct isolate_limits *l, struct error *err)
{
	int r = limits_check_count("io.max", l->n_io, LIMITS_IO_MAX, err);

	for (size_t i = 0; i < l->n_io && r >= 0; i++) {
		const struct limit_io *io = &l->io[i];
		const struct limit *const rates[] = { &io->rbps, &io->wbps, &io->riops,
						      &io->wiops };

		for (size_t k = 0; k < ARRAY_SIZE(rates) && r >= 0; k++)
			r = limits_check_number(rates[k], "io.max", 1,
						k < 2 ? INT64_MAX : UINT32_MAX - 1, true, err);
		if (r >= 0)
			r = limits_check_number(&io->weight, "io.weight", 1, LIMITS_BLKIO_MAX,
						false, err);
	}
	return r;
}

/* A name that stands alone in a line, or in the name of a file. */
static bool limits_name_is_good(const char *name)
{
	return name && *name && strlen(name) < NAME_MAX / 2 && str_is_clean(name) &&
	       !strpbrk(name, " /=.");
}

static bool limits_hugetlb_is_good(const char *size)
{
	size_t digits = size ? strspn(size, "0123456789") : 0;

	return digits > 0 && digits < 8 && strchr("KMG", size[digits]) && size[digits] &&
	       str_eq(size + digits + 1, "B");
}

static int limits_check_named(const struct isolate_limits *l, struct error *err)
{
	int r = limits_check_count("hugetlb", l->n_hugetlb, LIMITS_HUGETLB_MAX, err);

	for (size_t i = 0; i < l->n_hugetlb && r >= 0; i++)
		if (!limits_hugetlb_is_good(l->hugetlb[i].size))
			r = error_field(err, ERROR_INVALID, "hugetlb",
					"a size of pages is written as 64KB, 2MB or 1GB");
	if (r >= 0)
		r = limits_check_count("rdma.max", l->n_rdma, LIMITS_RDMA_MAX, err);
	for (size_t i = 0; i < l->n_rdma && r >= 0; i++) {
		const struct limit_rdma *d = &l->rdma[i];

		if (!limits_name_is_good(d->device))
			return error_field(err, ERROR_INVALID, "rdma.max",
					   "this cannot be the name of a device");
		r = limits_check_number(&d->handles, "rdma.max", 0, INT_MAX, true, err);
		if (r >= 0)
			r = limits_check_number(&d->objects, "rdma.max", 0, INT_MAX, true, err);
	}
	if (r >= 0)
		r = limits_check_count("misc.max", l->n_misc, LIMITS_MISC_MAX, err);
	for (size_t i = 0; i < l->n_misc && r >= 0; i++)
		if (!limits_name_is_good(l->misc[i].name))
			r = error_field(err, ERROR_INVALID, "misc.max",
					"this cannot be the name of a resource");
	return r;
}

/* A file of a controller; of the group's own only those that limit. */
static bool limits_file_is_good(const char *file)
{
	if (!file || strlen(file) >= ERROR_FIELD_MAX || !str_is_clean(file) || strchr(file, '/'))
		return false;
	return str_eq(file, "cgroup.max.depth") || str_eq(file, "cgroup.max.descendants") ||
	       (cgroup_controller_of(file) >= 0 && strchr(file, '.'));
}

static int limits_check_unified(const struct isolate_limits *l, struct error *err)
{
	int r = limits_check_count("unified", l->n_unified, LIMITS_UNIFIED_MAX, err);

	for (size_t i = 0; i < l->n_unified && r >= 0; i++) {
		const struct limit_file *f = &l->unified[i];

		if (!limits_file_is_good(f->file))
			return error_field(err, ERROR_INVALID, "unified",
					   "\"%.64s\" is no file of a controller",
					   f->file ? f->file : "");
		if (!f->value || strlen(f->value) > LIMITS_TEXT_MAX)
			return error_field(err, ERROR_INVALID, f->file,
					   "the value is longer than %d bytes", LIMITS_TEXT_MAX);
	}
	return r;
}

int limits_check(const struct isolate_limits *limits, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits_numbers) && r >= 0; i++) {
		const struct limits_number *n = &limits_numbers[i];

		r = limits_check_number(limits_number_of(limits, n), n->file, n->min, n->max,
					n->word, err);
	}
	if (r >= 0)
		r = limits_check_cpu(limits, err);
	if (r >= 0)
		r = limits_check_list("cpuset.cpus", limits->cpuset_cpus, err);
	if (r >= 0)
		r = limits_check_list("cpuset.mems", limits->cpuset_mems, err);
	if (r >= 0)
		r = limits_check_io(limits, err);
	if (r >= 0)
		r = limits_check_named(limits, err);
	return r < 0 ? r : limits_check_unified(limits, err);
}

unsigned limits_controllers(const struct isolate_limits *limits)
{
	unsigned bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits_numbers); i++) {
		const struct limits_number *n = &limits_numbers[i];
		const struct limit *l = limits_number_of(limits, n);

		if (l->set && !(n->word && l->value == LIMIT_MAX))
			bits |= 1U << cgroup_controller_of(n->file);
	}
	bits |= limits->cpuset_cpus || limits->cpuset_mems ? 1U << CGROUP_CPUSET : 0;
	bits |= limits->n_io ? 1U << CGROUP_IO : 0;
	bits |= limits->n_hugetlb ? 1U << CGROUP_HUGETLB : 0;
	bits |= limits->n_rdma ? 1U << CGROUP_RDMA : 0;
	bits |= limits->n_misc ? 1U << CGROUP_MISC : 0;
	for (size_t i = 0; i < limits->n_unified; i++) {
		int c = cgroup_controller_of(limits->unified[i].file);

		bits |= c >= 0 ? 1U << c : 0;
	}
	return bits;
}

/* Shares are doubled and halved where weights are: the logarithm of the weight is a polynomial of
 * the logarithm of the shares, through (2, 1), (1024, 100) and (262144, 10000). */
uint64_t limits_cpu_weight(uint64_t shares)
{
	double l;

	if (shares <= LIMITS_SHARES_MIN)
		return 1;
	if (shares >= LIMITS_SHARES_MAX)
		return 10000;
	l = log2((double)shares);
	return (uint64_t)ceil(pow(10, (l * l + 125 * l) / 612 - 7.0 / 34));
}

uint64_t limits_io_weight(uint64_t blkio_weight)
{
	uint64_t w = MIN(MAX(blkio_weight, (uint64_t)LIMITS_BLKIO_MIN), (uint64_t)LIMITS_BLKIO_MAX);

	return 1 + (w - LIMITS_BLKIO_MIN) * 9999 / (LIMITS_BLKIO_MAX - LIMITS_BLKIO_MIN);
}

int limits_swap_max(struct limit *ret, int64_t memory, int64_t memory_and_swap, struct error *err)
{
	*ret = (struct limit){ .set = false };
	if (memory_and_swap == 0) {
		/* Without a limit of memory none of swap is meant either. */
		if (memory < 0)
			*ret = LIMIT(LIMIT_MAX);
		return 0;
	}
	if (memory_and_swap < 0) {
		*ret = LIMIT(LIMIT_MAX);
		return 0;
	}
	if (memory <= 0)
		return error_field(err, ERROR_INVALID, "memory.swap.max",
				   "memory and swap are limited together, memory is not");
	if (memory_and_swap < memory)
		return error_field(err, ERROR_INVALID, "memory.swap.max",
				   "less memory and swap together than memory alone");
	*ret = LIMIT((uint64_t)(memory_and_swap - memory));
	return 0;
}
