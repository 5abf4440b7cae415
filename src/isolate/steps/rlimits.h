/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_RLIMITS_H
#define NACRE_ISOLATE_RLIMITS_H

#include <sys/types.h>

#include "isolate/plan/plan.h"

/* Resource limits of a plan; private to this area. */

/* Raises hard limits that the plan wants higher, and no other; of a process on its way into a user
 * namespace, in which that is not possible any more. pid 0: this one. */
int rlimits_raise(pid_t pid, const struct isolate_plan *plan, struct error *err);
/* Sets the default limits, which come as near as the kernel allows, and then the plan's own, which
 * are an error where they cannot be had. Of this process. */
int rlimits_set(const struct isolate_plan *plan, struct error *err);

#endif
