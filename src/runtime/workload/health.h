/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_HEALTH_H
#define NACRE_RUNTIME_HEALTH_H

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "pod/workload/health.h"
#include "pod/workload/make.h"

/*
 * Health checks in words of the API: from the request, and from what an image says, to a rule
 * (pod/workload/health.h), and back to what is shown.
 */

struct arena;
struct image_store;

/* Checks the health checks that are asked for, of each container. remote: it will be in another
 * kernel. The error names the field. */
int health_check_run(Aurae__Runtime__V0__Container *const *containers, size_t n,
		     const struct workload_spec *spec, bool remote, struct image_store *images,
		     struct error *err);
/* The rule of one, from its record and its image: 1 with *ret, the caller's; 0: none. -ENOMEM. */
int health_rule_of(const struct pod_container *c, struct health_rule *ret);
/* Fills in what is shown of one. 0 or -ENOMEM. */
int health_show(struct arena *a, Nacre__V1__Container *to, const struct pod_container *c);
/* One result; NULL without memory. Lives as long as the arena and the result. */
Nacre__V1__HealthResult *health_show_result(struct arena *a, const struct health_result *result);

#endif
