/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IDENTITY_MOUNT_H
#define NACRE_RUNTIME_IDENTITY_MOUNT_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"

struct arena;
struct pod_container_spec;
struct pod_mount_spec;

/* A mount with `identity`. ERROR_INVALID beside anything else that is mounted. */
int identity_mount_take(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
			const char *field, struct error *err);
/* Gives a container with the socket of the Workload API (Mount.identity) the variable by which
 * programs find it, unless it has one. field: of the container. ERROR_INVALID where it has two. */
int identity_mount_name(struct arena *a, struct pod_container_spec *to, const char *field,
			struct error *err);

/* Whether the directory of the socket is there: 0, or ERROR_PRECONDITION on a kernel that cannot
 * say who has connected. */
int identity_mount_check(int dir_fd, const char *field, struct error *err);

#endif
