/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CONTAINER_H
#define NACRE_RUNTIME_CONTAINER_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "pod/workload/make.h"

/* The name of a container that is given none. */
#define RUN_CONTAINER_NAME "main"

/*
 * A container as the API has it, checked, as the domain takes it: what each container does.
 * runtime/start/settings.h has the rest, what it may do and reach. It is containers[i] of n; errors
 * name the field below that.
 */
int container_take(struct arena *a, const Aurae__Runtime__V0__Container *from, size_t i, size_t n,
		   struct pod_container_spec *to, struct error *err);

#endif
