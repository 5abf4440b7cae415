/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_TARGET_H
#define NACRE_RUNTIME_TARGET_H

#include "base/log/error.h"

/* The object that the `target` of a request names, by an id or a path of names. */

struct instance;
struct pod_container;
struct workload;
struct workload_service;

/* Exactly one of the two. */
struct target {
	struct workload *workload;
	struct instance *instance;
};

/* ERROR_INVALID for "", ERROR_NOT_FOUND. The node itself is no target. */
int target_find(const struct workload_service *s, const char *name, struct target *ret,
		struct error *err);
/* The same where another field than `target` names it. */
int target_find_field(const struct workload_service *s, const char *field, const char *name,
		      struct target *ret, struct error *err);
/* A container of a workload; container may be "" where there is only one. */
int target_container(const struct workload_service *s, const char *name, const char *container,
		     struct pod_container **ret, struct error *err);

/* ERROR_UNSUPPORTED, naming `target`, for a machine with somebody's own system: "PATH is a machine
 * with a system of its own, WHAT". 0 for any other; w may be NULL. */
int target_refuse_machine(const struct workload *w, const char *what, struct error *err);

#endif
