/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_PROBE_H
#define NACRE_RUNTIME_PROBE_H

#include "pod/workload/health.h"

struct loop;
struct pool;

/* One probe of a container that runs, as c->health->rule says; health_tell() ends it, never from
 * within this call. What it fails with is no result. */
int probe_begin(struct loop *loop, struct pool *pool, struct pod_container *c,
		struct health_probe **ret, struct error *err);
/* Nothing is told any more. A command is killed. */
void probe_cancel(struct health_probe *p);

#endif
