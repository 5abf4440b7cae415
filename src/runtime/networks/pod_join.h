/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_NETWORKS_POD_JOIN_H
#define NACRE_RUNTIME_NETWORKS_POD_JOIN_H

#include <stdbool.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"

/*
 * The network and UTS namespace of another pod, "container:NAME" as podman writes it
 * (doc/decisions/container-security.md). NAME is looked up at each start.
 */

struct arena;
struct workload_spec;
struct workloads;

#define POD_JOIN_PREFIX "container:"

/* Whether a field means that. */
bool pod_join_is(const char *word);
/* Sets spec->net_of and spec->uts_of; spec has its parent and its choice. The other one must run,
 * unless spec is only created. ERROR_NOT_FOUND, ERROR_PRECONDITION and ERROR_UNSUPPORTED name the
 * field. */
int pod_join_take(struct workloads *all, struct arena *a, const char *network,
		  const Aurae__Runtime__V0__PodSecurity *security, struct workload_spec *spec,
		  struct error *err);
/* The hostname that it has then, in the files below /etc; behind spec->etc. An error names
 * `pod_network.hostname`. */
int pod_join_name(struct workloads *all, struct arena *a, struct workload_spec *spec,
		  struct error *err);

#endif
