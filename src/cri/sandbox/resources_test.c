/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/resources.h"

#include "isolate/cgroup/limits.h"
#include "unit.h"

#define MIB ((int64_t)1 << 20)

/* What is asked for, where no controller is needed to say no. */
static void is_taken(void)
{
	struct arena a = ARENA_INIT;
	Runtime__V1__LinuxContainerResources q = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	struct error err = ERROR_INIT;
	struct cri_limits l;

	CHECK_INT(cri_limits_take(&a, &q, -1, "linux", NULL, &l, &err), 0);
	CHECK(!l.resources && !l.more);
	q.cpu_quota = 50000;
	q.cpu_period = 100000;
	q.cpu_shares = 1024;
	q.memory_limit_in_bytes = 64 * MIB;
	q.memory_swap_limit_in_bytes = 96 * MIB;
	CHECK_INT(cri_limits_take(&a, &q, -1, "linux", NULL, &l, &err), 0);
	CHECK_INT(l.resources->cpu_quota, 50000);
	CHECK_INT((int64_t)l.resources->cpu_period, 100000);
	CHECK_INT((int64_t)l.resources->cpu_weight, 100);
	CHECK_INT((int64_t)l.resources->memory, 64 * MIB);
	CHECK_INT((int64_t)l.resources->memory_swap, 32 * MIB);
	CHECK(!l.resources->no_swap);
	q.memory_swap_limit_in_bytes = 64 * MIB;
	CHECK_INT(cri_limits_take(&a, &q, -1, "linux", NULL, &l, &err), 0);
	CHECK(l.resources->no_swap && !l.resources->memory_swap);
	q.memory_limit_in_bytes = -1;
	q.memory_swap_limit_in_bytes = -1;
	CHECK_INT(cri_limits_take(&a, &q, -1, "linux", NULL, &l, &err), 0);
	CHECK(l.resources->memory == LIMIT_MAX && l.resources->memory_swap == LIMIT_MAX);
	arena_done(&a);
}

/* Numbers that count together, where only one of them is said. */
static void counts_with_what_holds(void)
{
	struct arena a = ARENA_INIT;
	Aurae__Runtime__V0__Resources now = AURAE__RUNTIME__V0__RESOURCES__INIT;
	Runtime__V1__LinuxContainerResources q = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	struct error err = ERROR_INIT;
	struct cri_limits l;

	now.memory = (uint64_t)(64 * MIB);
	now.cpu_quota = 20000;
	q.memory_swap_limit_in_bytes = 80 * MIB;
	q.cpu_period = 50000;
	CHECK_INT(cri_limits_take(&a, &q, -1, "linux", &now, &l, &err), 0);
	CHECK_INT((int64_t)l.resources->memory, 0);
	CHECK_INT((int64_t)l.resources->memory_swap, 16 * MIB);
	CHECK_INT(l.resources->cpu_quota, 20000);
	CHECK_INT((int64_t)l.resources->cpu_period, 50000);
	/* That is what it is already. */
	q.memory_swap_limit_in_bytes = 0;
	q.cpu_period = 100000;
	CHECK_INT(cri_limits_take(&a, &q, -1, "linux", &now, &l, &err), 0);
	CHECK(!l.resources);
	q.memory_swap_limit_in_bytes = 60 * MIB;
	CHECK(cri_limits_take(&a, &q, -1, "linux", &now, &l, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK_STR(err.field, "linux.memory_swap_limit_in_bytes");
	arena_done(&a);
}

static void is_shown(void)
{
	struct arena a = ARENA_INIT;
	Aurae__Runtime__V0__Resources now = AURAE__RUNTIME__V0__RESOURCES__INIT;
	Runtime__V1__LinuxContainerResources q = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	const Runtime__V1__LinuxContainerResources *m;

	q.cpu_shares = 1000;
	q.oom_score_adj = 7;
	now.cpu_weight = limits_cpu_weight(1000);
	now.cpu_quota = -1;
	now.memory = (uint64_t)(64 * MIB);
	now.no_swap = true;
	m = cri_limits_show(&a, &q, &now);
	/* Several numbers of shares have one weight: the one that was said. */
	CHECK_INT(m->cpu_shares, 1000);
	CHECK_INT(m->oom_score_adj, 7);
	CHECK_INT(m->cpu_quota, -1);
	CHECK_INT(m->cpu_period, 100000);
	CHECK_INT(m->memory_limit_in_bytes, 64 * MIB);
	CHECK_INT(m->memory_swap_limit_in_bytes, 64 * MIB);
	for (uint64_t weight = 1; weight <= 10000; weight += 333) {
		now.cpu_weight = weight;
		now.memory = LIMIT_MAX;
		m = cri_limits_show(&a, &q, &now);
		CHECK(limits_cpu_weight((uint64_t)m->cpu_shares) >= weight);
		CHECK(m->cpu_shares == 2 ||
		      limits_cpu_weight((uint64_t)m->cpu_shares - 1) < weight);
		CHECK_INT(m->memory_limit_in_bytes, -1);
	}
	now.cpu_weight = 100;
	CHECK_INT(cri_limits_show(&a, NULL, &now)->cpu_shares, 1024);
	CHECK_INT(cri_limits_show(&a, NULL, NULL)->cpu_shares, 0);
	arena_done(&a);
}

static void is_merged(void)
{
	struct arena a = ARENA_INIT;
	static char two[] = "2MB", one[] = "1GB", cpus[] = "0-3";
	Runtime__V1__HugepageLimit was = RUNTIME__V1__HUGEPAGE_LIMIT__INIT, more = was, is = was;
	Runtime__V1__HugepageLimit *old[] = { &was }, *new[] = { &is, &more };
	Runtime__V1__LinuxContainerResources to = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	Runtime__V1__LinuxContainerResources with = to;

	was.page_size = is.page_size = two;
	more.page_size = one;
	is.limit = 2;
	to.hugepage_limits = old;
	to.n_hugepage_limits = 1;
	to.cpu_shares = 5;
	to.oom_score_adj = 9;
	with.hugepage_limits = new;
	with.n_hugepage_limits = 2;
	with.cpuset_cpus = cpus;
	with.oom_score_adj = 3;
	CHECK_INT(cri_limits_merge(&a, &to, &with), 0);
	CHECK_INT(to.n_hugepage_limits, 2);
	CHECK_INT((int64_t)to.hugepage_limits[0]->limit, 2);
	CHECK_STR(to.hugepage_limits[1]->page_size, "1GB");
	CHECK_INT(to.cpu_shares, 5);
	CHECK_INT(to.oom_score_adj, 9);
	CHECK_STR(to.cpuset_cpus, "0-3");
	arena_done(&a);
}

/* An error of the own API, or of the kernel's files, in the words of this one. */
static void is_blamed(void)
{
	static const char *const fields[][2] = {
		{ "containers[0].resources.memory", "linux.memory_limit_in_bytes" },
		{ "resources.cpu_weight", "linux.cpu_shares" },
		{ "hugetlb.2MB.max", "linux.hugepage_limits" },
		{ "memory.high", "linux.unified" },
		{ "target", "target" },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct error err = ERROR_INIT;

		(void)error_field(&err, ERROR_INVALID, fields[i][0], "no");
		cri_limits_blame(&err, "linux");
		CHECK_STR(err.field, fields[i][1]);
		CHECK(strncmp(err.text, err.field, strlen(err.field)) == 0);
	}
}

UNIT_MAIN({ "limits are taken", is_taken },
	  { "limits count with those that hold", counts_with_what_holds },
	  { "what holds is shown", is_shown }, { "an update is merged", is_merged },
	  { "errors name the field of the message", is_blamed })
