/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/resources.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/limits.h"
#include "isolate/cgroup/limits_words.h"

#define SHARES_MIN 2 /* of cgroup version 1, in which a kubelet counts */
#define SHARES_MAX 262144
#define SHARES_DEFAULT 1024
#define PERIOD_DEFAULT 100000

typedef Runtime__V1__LinuxContainerResources cri_resources;
typedef Aurae__Runtime__V0__Resources own_resources;

static int limits_no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "resources");
}

static const char *limits_field(const char *field, const char *name, char ret[ERROR_FIELD_MAX])
{
	(void)str_printf(ret, ERROR_FIELD_MAX, "%s.%s", field, name);
	return ret;
}

/* ---- members of the own API ---- */

static int limits_check_numbers(const cri_resources *from, const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (from->oom_score_adj < -1000 || from->oom_score_adj > 1000)
		return error_field(err, ERROR_INVALID, limits_field(field, "oom_score_adj", name),
				   "%" PRId64 " is not from -1000 to 1000", from->oom_score_adj);
	if (from->cpu_period < 0)
		return error_field(err, ERROR_INVALID, limits_field(field, "cpu_period", name),
				   "%" PRId64 " is below 0", from->cpu_period);
	if (from->cpu_shares < 0)
		return error_field(err, ERROR_INVALID, limits_field(field, "cpu_shares", name),
				   "%" PRId64 " is below 0", from->cpu_shares);
	return 0;
}

/* A period without a quota changes that of the quota which holds. */
static void limits_take_quota(const cri_resources *from, const own_resources *now,
			      own_resources *to)
{
	to->cpu_quota = from->cpu_quota;
	if (!to->cpu_quota && from->cpu_period && now && now->cpu_quota > 0 &&
	    (uint64_t)from->cpu_period != (now->cpu_period ?: PERIOD_DEFAULT))
		to->cpu_quota = now->cpu_quota;
	if (to->cpu_quota)
		to->cpu_period = (uint64_t)from->cpu_period;
}

/* A container without a request gets the smallest share that there is. Where nobody can give
 * shares, that asks for nothing. */
static void limits_take_shares(const cri_resources *from, int base_fd, own_resources *to)
{
	if (from->cpu_shares == 0)
		return;
	if (from->cpu_shares <= SHARES_MIN && base_fd >= 0 &&
	    !(cgroup_controllers(base_fd) & 1U << CGROUP_CPU))
		return;
	to->cpu_weight = limits_cpu_weight((uint64_t)from->cpu_shares);
}

/* A kubelet tells a limit of both together, of which the own API takes the part of swap. */
static int limits_take_memory(const cri_resources *from, const own_resources *now,
			      const char *field, own_resources *to, struct error *err)
{
	int64_t memory = from->memory_limit_in_bytes;
	struct limit swap = { .set = false };
	struct error own = ERROR_INIT;
	char name[ERROR_FIELD_MAX];

	to->memory = memory < 0 ? LIMIT_MAX : (uint64_t)memory;
	if (from->memory_swap_limit_in_bytes == 0)
		return 0;
	if (memory == 0 && now && now->memory && now->memory != LIMIT_MAX)
		memory = (int64_t)now->memory;
	if (limits_swap_max(&swap, memory, from->memory_swap_limit_in_bytes, &own) < 0)
		return error_field(err, ERROR_INVALID,
				   limits_field(field, "memory_swap_limit_in_bytes", name),
				   "%" PRId64 " bytes of memory and swap together, where "
				   "memory_limit_in_bytes is %" PRId64,
				   from->memory_swap_limit_in_bytes, memory);
	to->no_swap = swap.set && swap.value == 0;
	to->memory_swap = swap.value;
	return 0;
}

static bool limits_are_said(const own_resources *r)
{
	return r->cpu_quota || r->cpu_weight || r->memory || r->memory_swap || r->no_swap ||
	       !str_empty(r->cpuset_cpus) || !str_empty(r->cpuset_mems);
}

/* ---- words ---- */

struct limits_more {
	struct arena *arena;
	const char *field;
	int base_fd;
	unsigned controllers; /* of base_fd, that containers have too */
	char **words;
	size_t n;
};

static int limits_add(struct limits_more *m, const char *name, const char *file, const char *value,
		      struct error *err)
{
	int controller = cgroup_controller_of(file);
	char field[ERROR_FIELD_MAX];

	(void)limits_field(m->field, name, field);
	if (controller >= 0 && !(m->controllers >> controller & 1)) {
		bool kept = m->base_fd < 0 || cgroup_controllers(m->base_fd) >> controller & 1;
		int r;

		if (kept)
			return error_field(
				err, ERROR_PRECONDITION, field,
				"the cgroup controller %s is not handed on to "
				"containers by this release",
				cgroup_controller_name((enum cgroup_controller)controller));
		r = cgroup_refuse_controller(m->base_fd, (enum cgroup_controller)controller, err);

		return error_wrap_field(err, r, field);
	}
	m->words[m->n] = arena_printf(m->arena, "%s=%s", file, value);
	return m->words[m->n++] ? 0 : limits_no_memory(err);
}

/* A kubelet tells a limit of 0 for each size of huge pages that the machine has: where nobody can
 * count them, that asks for nothing. */
static int limits_add_pages(struct limits_more *m, const Runtime__V1__HugepageLimit *p,
			    struct error *err)
{
	char file[64], value[24], field[ERROR_FIELD_MAX];

	if (strlen(p->page_size) > 16 || p->page_size[strcspn(p->page_size, "./=\n")] ||
	    str_empty(p->page_size))
		return error_field(err, ERROR_INVALID,
				   limits_field(m->field, "hugepage_limits", field),
				   "\"%.40s\" is no size of pages such as 2MB", p->page_size);
	if (p->limit == 0 && (m->base_fd < 0 || !(m->controllers & 1U << CGROUP_HUGETLB)))
		return 0;
	(void)str_printf(file, sizeof(file), "hugetlb.%s.max", p->page_size);
	(void)str_printf(value, sizeof(value), "%" PRIu64, p->limit);
	return limits_add(m, "hugepage_limits", file, value, err);
}

static int limits_add_files(struct limits_more *m, const cri_resources *from, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	struct error own = ERROR_INIT;
	int r = 0;

	for (size_t i = 0; i < from->n_unified && r == 0; i++) {
		const char *file = from->unified[i]->key;

		if (strchr(file, '='))
			return error_field(err, ERROR_INVALID,
					   limits_field(m->field, "unified", field),
					   "\"%.64s\" is no file of a controller", file);
		r = limits_add(m, "unified", file, from->unified[i]->value, err);
	}
	if (r < 0 || limits_words_check(m->words, &own) == 0)
		return r;
	return error_field(err, ERROR_INVALID, limits_field(m->field, "unified", field), "%.300s",
			   error_text(&own));
}

static int limits_take_more(struct arena *a, const cri_resources *from, int base_fd,
			    const char *field, char ***ret, struct error *err)
{
	struct limits_more m = { .arena = a, .field = field, .base_fd = base_fd };
	size_t n = from->n_hugepage_limits + from->n_unified;
	char name[ERROR_FIELD_MAX];
	int r = 0;

	*ret = NULL;
	if (n == 0)
		return 0;
	if (n > LIMITS_WORDS_MAX / 2)
		return error_field(
			err, ERROR_INVALID, limits_field(field, "unified", name),
			"%zu with those of hugepage_limits are more than the limit of %d", n,
			LIMITS_WORDS_MAX / 2);
	m.controllers = base_fd < 0 ? CGROUP_CONTROLLERS_WORKLOAD
				    : cgroup_controllers(base_fd) & CGROUP_CONTROLLERS_WORKLOAD;
	m.words = arena_zalloc(a, n + 1, sizeof(*m.words));
	if (!m.words)
		return limits_no_memory(err);
	for (size_t i = 0; i < from->n_hugepage_limits && r == 0; i++)
		r = limits_add_pages(&m, from->hugepage_limits[i], err);
	if (r == 0)
		r = limits_add_files(&m, from, err);
	if (r == 0 && m.n > 0)
		*ret = m.words;
	return r;
}

int cri_limits_take(struct arena *a, const Runtime__V1__LinuxContainerResources *from, int base_fd,
		    const char *field, const Aurae__Runtime__V0__Resources *now,
		    struct cri_limits *ret, struct error *err)
{
	own_resources *m = arena_zalloc(a, 1, sizeof(*m));
	int r;

	*ret = (struct cri_limits){ .resources = NULL };
	if (!m)
		return limits_no_memory(err);
	aurae__runtime__v0__resources__init(m);
	r = limits_check_numbers(from, field, err);
	if (r == 0)
		r = limits_take_memory(from, now, field, m, err);
	if (r < 0)
		return r;
	limits_take_quota(from, now, m);
	limits_take_shares(from, base_fd, m);
	m->cpuset_cpus = from->cpuset_cpus;
	m->cpuset_mems = from->cpuset_mems;
	if (limits_are_said(m))
		ret->resources = m;
	return limits_take_more(a, from, base_fd, field, &ret->more, err);
}

/* ---- errors ---- */

static const char *limits_member(const char *name)
{
	static const char *const words[][2] = {
		{ "memory", "memory_limit_in_bytes" },
		{ "memory_swap", "memory_swap_limit_in_bytes" },
		{ "no_swap", "memory_swap_limit_in_bytes" },
		{ "cpu_weight", "cpu_shares" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(name, words[i][0]))
			return words[i][1];
	return name;
}

void cri_limits_blame(struct error *err, const char *field)
{
	const char *at = strstr(err->field, "resources.");
	char name[ERROR_FIELD_MAX];

	if (at) {
		(void)limits_field(field, limits_member(at + strlen("resources.")), name);
		error_rename_field(err, name);
		return;
	}
	if (cgroup_controller_of(err->field) < 0 && !str_has_prefix(err->field, "cgroup."))
		return;
	(void)limits_field(field,
			   str_has_prefix(err->field, "hugetlb.") ? "hugepage_limits" : "unified",
			   name);
	(void)error_wrap_field(err, err->code, name);
}

/* ---- what is kept and shown ---- */

static void limits_merge_numbers(cri_resources *to, const cri_resources *with)
{
	to->cpu_shares = with->cpu_shares ?: to->cpu_shares;
	to->cpu_quota = with->cpu_quota ?: to->cpu_quota;
	to->cpu_period = with->cpu_period ?: to->cpu_period;
	to->memory_limit_in_bytes = with->memory_limit_in_bytes ?: to->memory_limit_in_bytes;
	to->memory_swap_limit_in_bytes =
		with->memory_swap_limit_in_bytes ?: to->memory_swap_limit_in_bytes;
	if (!str_empty(with->cpuset_cpus))
		to->cpuset_cpus = with->cpuset_cpus;
	if (!str_empty(with->cpuset_mems))
		to->cpuset_mems = with->cpuset_mems;
}

static int limits_merge_pages(struct arena *a, cri_resources *to, const cri_resources *with)
{
	Runtime__V1__HugepageLimit **list =
		arena_zalloc(a, to->n_hugepage_limits + with->n_hugepage_limits + 1, sizeof(*list));
	size_t n = to->n_hugepage_limits;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list[i] = to->hugepage_limits[i];
	for (size_t i = 0; i < with->n_hugepage_limits; i++) {
		size_t k = 0;

		while (k < n && !str_eq(list[k]->page_size, with->hugepage_limits[i]->page_size))
			k++;
		list[k] = with->hugepage_limits[i];
		n = MAX(n, k + 1);
	}
	to->hugepage_limits = list;
	to->n_hugepage_limits = n;
	return 0;
}

static int limits_merge_files(struct arena *a, cri_resources *to, const cri_resources *with)
{
	Runtime__V1__LinuxContainerResources__UnifiedEntry **list =
		arena_zalloc(a, to->n_unified + with->n_unified + 1, sizeof(*list));
	size_t n = to->n_unified;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list[i] = to->unified[i];
	for (size_t i = 0; i < with->n_unified; i++) {
		size_t k = 0;

		while (k < n && !str_eq(list[k]->key, with->unified[i]->key))
			k++;
		list[k] = with->unified[i];
		n = MAX(n, k + 1);
	}
	to->unified = list;
	to->n_unified = n;
	return 0;
}

int cri_limits_merge(struct arena *a, Runtime__V1__LinuxContainerResources *to,
		     const Runtime__V1__LinuxContainerResources *with)
{
	limits_merge_numbers(to, with);
	return limits_merge_pages(a, to, with) < 0 ? -ENOMEM : limits_merge_files(a, to, with);
}

/* The fewest shares of this weight, or the usual ones where they have it. */
static int64_t limits_shares(uint64_t weight)
{
	uint64_t low = SHARES_MIN, high = SHARES_MAX;

	if (limits_cpu_weight(SHARES_DEFAULT) == weight)
		return SHARES_DEFAULT;
	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (limits_cpu_weight(middle) < weight)
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low;
}

static void limits_show_memory(cri_resources *m, const own_resources *now)
{
	bool limited = now->memory && now->memory != LIMIT_MAX;

	if (now->memory)
		m->memory_limit_in_bytes = limited ? (int64_t)now->memory : -1;
	if (now->memory_swap == LIMIT_MAX)
		m->memory_swap_limit_in_bytes = -1;
	else if ((now->memory_swap || now->no_swap) && limited)
		m->memory_swap_limit_in_bytes = (int64_t)(now->memory + now->memory_swap);
}

Runtime__V1__LinuxContainerResources *cri_limits_show(
	struct arena *a, const Runtime__V1__LinuxContainerResources *asked,
	const Aurae__Runtime__V0__Resources *now)
{
	cri_resources *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__linux_container_resources__init(m);
	if (asked)
		*m = *asked;
	if (!now)
		return m;
	limits_show_memory(m, now);
	if (now->cpu_quota) {
		m->cpu_quota = now->cpu_quota;
		m->cpu_period = (int64_t)(now->cpu_period ?: PERIOD_DEFAULT);
	}
	if (now->cpu_weight && limits_cpu_weight((uint64_t)m->cpu_shares) != now->cpu_weight)
		m->cpu_shares = limits_shares(now->cpu_weight);
	if (!str_empty(now->cpuset_cpus))
		m->cpuset_cpus = now->cpuset_cpus;
	if (!str_empty(now->cpuset_mems))
		m->cpuset_mems = now->cpuset_mems;
	return m;
}
