/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/size.h"

#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/limits.h"

#define SIZE_PERIOD 100000U
#define SIZE_CPUS_MAX 65536U
#define SIZE_MIB ((uint64_t)1 << 20)

/* 0: no limit. */
static uint64_t size_memory(const Aurae__Runtime__V0__Resources *r)
{
	return r && r->memory != LIMIT_MAX ? r->memory : 0;
}

static unsigned size_cpus(const Aurae__Runtime__V0__Resources *r)
{
	uint64_t period = r && r->cpu_period ? r->cpu_period : SIZE_PERIOD;
	uint64_t quota = r && r->cpu_quota > 0 ? (uint64_t)r->cpu_quota : 0;

	return (unsigned)MIN(quota / period + (quota % period > 0), (uint64_t)SIZE_CPUS_MAX);
}

struct instance_size size_of(const Aurae__Runtime__V0__Resources *whole,
			     Aurae__Runtime__V0__Container *const *containers, size_t n)
{
	struct instance_size ret = { .memory = size_memory(whole), .cpus = size_cpus(whole) };

	for (size_t i = 0; i < n; i++) {
		uint64_t memory = size_memory(containers[i]->resources);

		if (__builtin_add_overflow(ret.memory_of_parts, memory, &ret.memory_of_parts))
			ret.memory_of_parts = UINT64_MAX;
		ret.cpus_of_parts =
			MIN(ret.cpus_of_parts + size_cpus(containers[i]->resources), SIZE_CPUS_MAX);
	}
	return ret;
}

int size_check(const struct instance *in, const Aurae__Runtime__V0__Resources *limits,
	       const char *field, struct error *err)
{
	uint64_t memory = size_memory(limits);
	const struct instance_machine *m;
	char name[ERROR_FIELD_MAX];
	unsigned cpus;

	while (in && !in->machine.memory)
		in = in->parent;
	if (!in)
		return 0;
	m = &in->machine;
	if (memory > m->room) {
		(void)str_printf(name, sizeof(name), "%s.memory", field);
		return error_field(err, ERROR_PRECONDITION, name,
				   "%" PRIu64 " bytes are more than the %" PRIu64
				   " that fit into %s: its machine has %" PRIu64
				   " MiB, part of them for its kernel and its keeper",
				   memory, m->room, in->path, m->memory / SIZE_MIB);
	}
	cpus = size_cpus(limits);
	/* Past what the host has nothing is limited. To ask for that is to read a file. */
	if (cpus > m->cpus)
		cpus = MIN(cpus, (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L));
	if (cpus > m->cpus) {
		(void)str_printf(name, sizeof(name), "%s.cpu_quota", field);
		return error_field(err, ERROR_PRECONDITION, name,
				   "the time of %u processors is more than the machine of %s has: "
				   "%u",
				   cpus, in->path, m->cpus);
	}
	return 0;
}

int size_check_run(const struct instance *in, const Aurae__Runtime__V0__Resources *whole,
		   Aurae__Runtime__V0__Container *const *containers, size_t n, struct error *err)
{
	int r = size_check(in, whole, "resources", err);
	char field[ERROR_FIELD_MAX];

	for (size_t i = 0; r == 0 && i < n; i++) {
		(void)str_printf(field, sizeof(field), "containers[%zu].resources", i);
		r = size_check(in, containers[i]->resources, field, err);
	}
	return r;
}
