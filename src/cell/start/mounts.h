/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_MOUNTS_H
#define NACRE_CELL_MOUNTS_H

#include "base/log/error.h"
#include "cell/spec.h"
#include "isolate/plan/plan.h"

/* The mounts in the root of a container beside those that each has. */

/* Whether something may go to this target: a word about the name alone. ERROR_INVALID with the
 * field. */
int mounts_check_target(const char *field, const char *target, struct error *err);
/* Whether they name the same place, whatever their slashes. */
bool mounts_are_same(const char *a, const char *b);
/* ERROR_INVALID names the field. */
int mounts_check(const struct container_mount *mounts, size_t n, struct error *err);

/* A copy, for mounts_free(); NULL for none with n 0. -ENOMEM. */
int mounts_copy(struct container_mount **ret, const struct container_mount *mounts, size_t n);
struct container_mount *mounts_free(struct container_mount *mounts, size_t n);

/* Puts them into the plan, those whose targets have fewer components first, with the descriptors of
 * fds. *ret is what the plan points to: for
 * mounts_unplan() once it was carried out. */
struct mounts_plan;
int mounts_plan(struct mounts_plan **ret, struct isolate_plan *plan,
		const struct container_mount *mounts, const struct container_fds *fds,
		struct error *err);
struct mounts_plan *mounts_unplan(struct mounts_plan *m);
static inline void mounts_unplanp(struct mounts_plan **m)
{
	*m = mounts_unplan(*m);
}

#endif
