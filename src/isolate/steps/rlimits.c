/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/rlimits.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/macros.h"

/* NPROC and SIGPENDING are not there: the kernel's own value depends on the size of the machine,
 * and what the spawner has is that value. */
static const struct {
	int resource;
	struct rlimit64 limit;
} rlimits_default[] = {
	{ RLIMIT_NOFILE, { 1024, 1048576 } },
	{ RLIMIT_CORE, { 0, 0 } },
	{ RLIMIT_CPU, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_FSIZE, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_DATA, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_STACK, { 8 << 20, RLIM64_INFINITY } },
	{ RLIMIT_RSS, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_MEMLOCK, { 8 << 20, 8 << 20 } },
	{ RLIMIT_AS, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_LOCKS, { RLIM64_INFINITY, RLIM64_INFINITY } },
	{ RLIMIT_MSGQUEUE, { 819200, 819200 } },
	{ RLIMIT_NICE, { 0, 0 } },
	{ RLIMIT_RTPRIO, { 0, 0 } },
	{ RLIMIT_RTTIME, { RLIM64_INFINITY, RLIM64_INFINITY } },
};

static int rlimits_set_near(int resource, struct rlimit64 limit)
{
	struct rlimit64 now;

	if (setrlimit64((__rlimit_resource_t)resource, &limit) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	/* Without CAP_SYS_RESOURCE a hard limit is not raised: come as near as the kernel allows.
	 */
	if (getrlimit64((__rlimit_resource_t)resource, &now) < 0)
		return -errno;
	limit.rlim_max = MIN(limit.rlim_max, now.rlim_max);
	limit.rlim_cur = MIN(limit.rlim_cur, limit.rlim_max);
	return setrlimit64((__rlimit_resource_t)resource, &limit) < 0 ? -errno : 0;
}

/* Where the plan has one, the default one is not set before it: what it lowers could not be raised
 * again. */
static bool rlimits_has(const struct isolate_plan *plan, int resource)
{
	for (size_t i = 0; i < plan->n_rlimits; i++)
		if (plan->rlimits[i].resource == resource)
			return true;
	return false;
}

static int rlimits_failed(int r, int resource, struct error *err)
{
	if (r == -EPERM)
		return error_refuse(err, ERROR_PRECONDITION,
				    "rlimits: raising limit %d needs CAP_SYS_RESOURCE", resource);
	return error_set(err, r, "rlimits: limit %d", resource);
}

static int rlimits_raise_one(pid_t pid, int resource, uint64_t hard)
{
	struct rlimit64 limit;

	if (prlimit64(pid, (__rlimit_resource_t)resource, NULL, &limit) < 0)
		return -errno;
	if (limit.rlim_max >= hard)
		return 0;
	limit.rlim_max = hard;
	return prlimit64(pid, (__rlimit_resource_t)resource, &limit, NULL) < 0 ? -errno : 0;
}

int rlimits_raise(pid_t pid, const struct isolate_plan *plan, struct error *err)
{
	int r;

	for (size_t i = 0; plan->default_rlimits && i < ARRAY_SIZE(rlimits_default); i++) {
		if (rlimits_has(plan, rlimits_default[i].resource))
			continue;
		r = rlimits_raise_one(pid, rlimits_default[i].resource,
				      rlimits_default[i].limit.rlim_max);
		if (r < 0 && r != -EPERM)
			return rlimits_failed(r, rlimits_default[i].resource, err);
	}
	for (size_t i = 0; i < plan->n_rlimits; i++) {
		r = rlimits_raise_one(pid, plan->rlimits[i].resource, plan->rlimits[i].hard);
		if (r < 0)
			return rlimits_failed(r, plan->rlimits[i].resource, err);
	}
	return 0;
}

int rlimits_set(const struct isolate_plan *plan, struct error *err)
{
	int r;

	for (size_t i = 0; plan->default_rlimits && i < ARRAY_SIZE(rlimits_default); i++) {
		if (rlimits_has(plan, rlimits_default[i].resource))
			continue;
		r = rlimits_set_near(rlimits_default[i].resource, rlimits_default[i].limit);
		if (r < 0)
			return error_set(err, r, "limit %d", rlimits_default[i].resource);
	}
	for (size_t i = 0; i < plan->n_rlimits; i++) {
		struct rlimit64 limit = { plan->rlimits[i].soft, plan->rlimits[i].hard };

		if (setrlimit64((__rlimit_resource_t)plan->rlimits[i].resource, &limit) < 0)
			return rlimits_failed(-errno, plan->rlimits[i].resource, err);
	}
	return 0;
}
