/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_PLAN_RULES_H
#define NACRE_ISOLATE_PLAN_RULES_H

#include <stdbool.h>

#include "isolate/plan/plan.h"

/* Rules that a plan must obey, by parts of the plan; private to this area. Each list ends with a
 * member that is NULL. */
struct plan_rule {
	const char *member;
	bool (*is_wrong)(const struct isolate_plan *p);
	const char *rule;
};

extern const struct plan_rule plan_ns_rules[];
extern const struct plan_rule plan_tree_rules[];
extern const struct plan_rule plan_process_rules[];

#endif
