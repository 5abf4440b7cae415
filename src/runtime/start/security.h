/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SECURITY_H
#define NACRE_RUNTIME_SECURITY_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "pod/workload/make.h"

/*
 * Privilege of a container, and what the containers of a pod share of walls, as the API has it:
 * checked, as the domain takes it. For both families of the API.
 */

/* Members `security` and `masks` of `to`. field: that of the message ("containers[0].security");
 * `from` NULL: nothing was said. ERROR_INVALID. */
int security_take(struct arena *a, struct pod_container_spec *to,
		  const Aurae__Runtime__V0__Security *from, const char *field, struct error *err);

/* Puts a profile (NULL or "": none) into a container that names none, which becomes a copy in the
 * arena. 0 or -ENOMEM. */
int security_name_profile(struct arena *a, Aurae__Runtime__V0__Container **c, const char *profile);

/* The paths of /proc and /sys that are hidden in each container, and those that are read-only. Each
 * list ends with NULL. */
extern const char *const security_hidden[], *const security_read_only[];

/* Whether a container that sees all processes of its pod (host: of the node) could take over its
 * keeper: ERROR_PRECONDITION with the field. A tracer of the keeper has all that the keeper has; on
 * the processes of the node there is no such wall. */
int security_check_tracer(const struct container_security *s, bool host, const char *field,
			  struct error *err);
/* A path from the root of the hierarchy for the group of a pod, not in the node's own group `base`.
 * ERROR_INVALID with the field. */
int security_check_cgroup(const char *base, const char *parent, const char *field,
			  struct error *err);
/* Of a pod with its network mode and host_ipc, host_uts. ERROR_INVALID with the field. */
int security_check_sysctls(char *const *sysctls, const struct workload_spec *spec,
			   bool host_network, const char *field, struct error *err);

/*
 * Fields "security" of a pod: what of `to` is about its namespaces, its sysctls and its group. `to`
 * has its parent, choice and network already; its containers come later, and share processes where
 * *ret_shared says so. base: the node's own group. `from` NULL: nothing was said.
 */
int security_take_pod(struct arena *a, struct workload_spec *to,
		      const Aurae__Runtime__V0__PodSecurity *from, const char *base,
		      bool *ret_shared, struct error *err);
/* Whether it has a user namespace: "auto", "host" or "". ERROR_INVALID with the field. */
int security_take_users(struct workload_spec *to, const char *word, const char *field,
			struct error *err);
/* Its containers see all its processes: `shared` as security_take_pod() has told. */
int security_share_pids(const struct workload_spec *spec, bool shared, struct error *err);
/* The files below /etc of a pod that has the name of the node, which is read here. */
int security_take_name(struct arena *a, struct workload_spec *to, struct error *err);

#endif
