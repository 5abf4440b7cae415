/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/resources.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/flat.h"
#include "isolate/cgroup/limits.h"
#include "rpc/server/server.h"

#define CPU_PERIOD_DEFAULT 100000

/* The limits that are one number, in the order in which they are written: one that may kill comes
 * last. */
static const struct resources_number {
	const char *field, *file;
	size_t at;
	uint64_t min, max;
	bool word; /* "no limit" can be said */
} resources_numbers[] = {
#define NUMBER(f, name, lo, hi, w)                                                                 \
	{                                                                                          \
#f, (name), offsetof(Aurae__Runtime__V0__Resources, f), (lo), (hi), (w)            \
	}
	NUMBER(cpu_weight, "cpu.weight", 1, 10000, false),
	NUMBER(pids, "pids.max", 1, INT_MAX, true),
	NUMBER(memory_low, "memory.low", 1, INT64_MAX, true),
	NUMBER(memory_high, "memory.high", 1, INT64_MAX, true),
	NUMBER(memory_swap, "memory.swap.max", 1, INT64_MAX, true),
	NUMBER(memory, "memory.max", 1, INT64_MAX, true),
#undef NUMBER
};

struct resources_list {
	struct arena *arena;
	const char *field;
	int base_fd;
	unsigned controllers; /* of base_fd */
	char **words;
	size_t n;
};

#define RESOURCES_WORDS (ARRAY_SIZE(resources_numbers) + 4)

static uint64_t resources_value(const Aurae__Runtime__V0__Resources *r,
				const struct resources_number *n)
{
	return *(const uint64_t *)(const void *)((const char *)r + n->at);
}

/* The name of a member, for an error. */
static const char *resources_field(const struct resources_list *l, const char *name,
				   char ret[ERROR_FIELD_MAX])
{
	(void)str_printf(ret, ERROR_FIELD_MAX, "%s.%s", l->field, name);
	return ret;
}

static int resources_add(struct resources_list *l, const char *name, const char *file,
			 const char *value, struct error *err)
{
	int controller = cgroup_controller_of(file);
	char field[ERROR_FIELD_MAX];
	int r;

	if (controller >= 0 && !(l->controllers >> controller & 1)) {
		r = cgroup_refuse_controller(l->base_fd, (enum cgroup_controller)controller, err);
		return error_wrap_field(err, r, resources_field(l, name, field));
	}
	l->words[l->n] = arena_printf(l->arena, "%s=%s", file, value);
	if (!l->words[l->n++])
		return error_set(err, -ENOMEM, "%s", l->field);
	return 0;
}

static int resources_add_number(struct resources_list *l, const struct resources_number *n,
				uint64_t value, struct error *err)
{
	char field[ERROR_FIELD_MAX], text[24];

	if (value == 0)
		return 0;
	if (value == LIMIT_MAX && n->word)
		return resources_add(l, n->field, n->file, "max", err);
	if (value < n->min || value > n->max)
		return error_field(err, ERROR_INVALID, resources_field(l, n->field, field),
				   "%llu is not within %llu and %llu", (unsigned long long)value,
				   (unsigned long long)n->min, (unsigned long long)n->max);
	(void)str_printf(text, sizeof(text), "%llu", (unsigned long long)value);
	return resources_add(l, n->field, n->file, text, err);
}

static int resources_add_list(struct resources_list *l, const char *name, const char *file,
			      const char *list, struct error *err)
{
	char field[ERROR_FIELD_MAX];

	if (str_empty(list))
		return 0;
	if (strlen(list) > LIMITS_TEXT_MAX || !flat_list_is_good(list))
		return error_field(err, ERROR_INVALID, resources_field(l, name, field),
				   "\"%.64s\" is no list such as 0-3,7", list);
	return resources_add(l, name, file, list, err);
}

static int resources_add_quota(struct resources_list *l, const Aurae__Runtime__V0__Resources *from,
			       struct error *err)
{
	uint64_t period = from->cpu_period ?: CPU_PERIOD_DEFAULT;
	char field[ERROR_FIELD_MAX], text[64];

	if (period < 1000 || period > 1000000 || (from->cpu_period && !from->cpu_quota))
		return error_field(err, ERROR_INVALID, resources_field(l, "cpu_period", field),
				   "%llu is not within 1000 and 1000000, or cpu_quota is not set",
				   (unsigned long long)from->cpu_period);
	if (from->cpu_quota == 0)
		return 0;
	if (from->cpu_quota < 1000 && from->cpu_quota != -1)
		return error_field(err, ERROR_INVALID, resources_field(l, "cpu_quota", field),
				   "%lld is neither -1 nor at least 1000",
				   (long long)from->cpu_quota);
	if (from->cpu_quota < 0)
		(void)str_printf(text, sizeof(text), "max %llu", (unsigned long long)period);
	else
		(void)str_printf(text, sizeof(text), "%lld %llu", (long long)from->cpu_quota,
				 (unsigned long long)period);
	return resources_add(l, "cpu_quota", "cpu.max", text, err);
}

static int resources_add_swap(struct resources_list *l, const Aurae__Runtime__V0__Resources *from,
			      struct error *err)
{
	char field[ERROR_FIELD_MAX];

	if (!from->no_swap)
		return 0;
	if (from->memory_swap)
		return error_field(err, ERROR_INVALID, resources_field(l, "no_swap", field),
				   "not with memory_swap");
	return resources_add(l, "no_swap", "memory.swap.max", "0", err);
}

int resources_words(struct arena *a, const Aurae__Runtime__V0__Resources *from, int base_fd,
		    const char *field, char ***ret, struct error *err)
{
	struct resources_list l = { .arena = a, .field = field, .base_fd = base_fd };
	int r;

	*ret = NULL;
	if (!from)
		return 0;
	l.controllers = base_fd < 0 ? CGROUP_CONTROLLERS_ALL : cgroup_controllers(base_fd);
	l.words = arena_zalloc(a, RESOURCES_WORDS + 1, sizeof(*l.words));
	if (!l.words)
		return error_set(err, -ENOMEM, "%s", field);
	r = resources_add_list(&l, "cpuset_cpus", "cpuset.cpus", from->cpuset_cpus, err);
	if (r == 0)
		r = resources_add_list(&l, "cpuset_mems", "cpuset.mems", from->cpuset_mems, err);
	if (r == 0)
		r = resources_add_quota(&l, from, err);
	if (r == 0)
		r = resources_add_swap(&l, from, err);
	for (size_t i = 0; i < ARRAY_SIZE(resources_numbers) && r == 0; i++)
		r = resources_add_number(&l, &resources_numbers[i],
					 resources_value(from, &resources_numbers[i]), err);
	if (r == 0 && l.n > 0)
		*ret = l.words;
	return r;
}

/* The field that a file is written for; NULL: none. */
static const char *resources_field_of(const char *file)
{
	static const char *const others[][2] = {
		{ "cpuset_cpus", "cpuset.cpus" },
		{ "cpuset_mems", "cpuset.mems" },
		{ "cpu_quota", "cpu.max" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (str_eq(file, others[i][1]))
			return others[i][0];
	for (size_t i = 0; i < ARRAY_SIZE(resources_numbers); i++)
		if (str_eq(file, resources_numbers[i].file))
			return resources_numbers[i].field;
	return NULL;
}

void resources_blame(struct error *err)
{
	const char *bracket = strchr(err->field, ']');
	size_t n = bracket && bracket[1] == '.' ? (size_t)(bracket + 2 - err->field) : 0;
	const char *name = resources_field_of(err->field + n);
	char field[ERROR_FIELD_MAX];

	if (!name)
		return;
	(void)str_printf(field, sizeof(field), "%.*sresources.%s", (int)n, err->field, name);
	(void)error_wrap_field(err, err->code, field);
}

void resources_fail(struct rpc_call *call, const struct error *err)
{
	struct error own = *err;

	resources_blame(&own);
	rpc_call_fail(call, &own);
}

void resources_merge(Aurae__Runtime__V0__Resources *to, const Aurae__Runtime__V0__Resources *with)
{
	for (size_t i = 0; i < ARRAY_SIZE(resources_numbers); i++) {
		uint64_t value = resources_value(with, &resources_numbers[i]);

		if (value)
			*(uint64_t *)(void *)((char *)to + resources_numbers[i].at) = value;
	}
	if (with->cpu_quota) {
		to->cpu_quota = with->cpu_quota;
		to->cpu_period = with->cpu_period;
	}
	if (with->memory_swap)
		to->no_swap = false;
	if (with->no_swap) {
		to->no_swap = true;
		to->memory_swap = 0;
	}
	if (!str_empty(with->cpuset_cpus))
		to->cpuset_cpus = with->cpuset_cpus;
	if (!str_empty(with->cpuset_mems))
		to->cpuset_mems = with->cpuset_mems;
}
