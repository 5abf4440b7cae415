/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/plan.h"

#include <linux/capability.h>

#define PLAN_CAP(number) ((uint64_t)1 << (number))

const uint64_t isolate_caps_default =
	PLAN_CAP(CAP_CHOWN) | PLAN_CAP(CAP_DAC_OVERRIDE) | PLAN_CAP(CAP_FSETID) |
	PLAN_CAP(CAP_FOWNER) | PLAN_CAP(CAP_SETGID) | PLAN_CAP(CAP_SETUID) | PLAN_CAP(CAP_SETPCAP) |
	PLAN_CAP(CAP_NET_BIND_SERVICE) | PLAN_CAP(CAP_KILL);

void isolate_plan_init(struct isolate_plan *plan)
{
	*plan = (struct isolate_plan){
		.cgroup_fd = -1,
		.root_fd = -1,
		.pts_fd = -1,
		.shm_fd = -1,
		.prepared_ns_fd = -1,
		.user_fd = -1,
		.exec_fd = -1,
		.caps = ISOLATE_CAPS_ALL,
		.stdio = { -1, -1, -1 },
		.umask = -1,
		.io_priority = -1,
		.personality = ISOLATE_PERSONALITY_KEEP,
		.at_fd = -1,
	};
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		plan->ns_fd[i] = -1;
}
