/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_SECURITY_H
#define NACRE_CRI_SECURITY_H

#include "api/cri.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "isolate/spawn/ids.h"
#include "pod/workload/make.h"

/*
 * Security contexts. A field that would weaken or change the isolation of a container and is not
 * honoured is refused by name (ERROR_UNSUPPORTED).
 */

struct cri_runtime_service;

/* A sandbox has no process of its own, so what is said of that holds. */
int cri_security_check_sandbox(const Runtime__V1__LinuxSandboxSecurityContext *s,
			       struct error *err);
/* ERROR_INVALID for what is wrong whatever the host. */
int cri_security_check_container(const Runtime__V1__LinuxContainerSecurityContext *s,
				 struct error *err);
/* The security context that was checked (NULL: there was none), as the own API has it, in the
 * arena. */
int cri_security_take(struct arena *a, const Runtime__V1__LinuxContainerSecurityContext *s,
		      Aurae__Runtime__V0__Security **ret, struct error *err);
/* The settings that the own API does not have: the processes that it sees, the path of its seccomp
 * profile, and the hidden paths of /proc and /sys. spec->security has the rest already. */
int cri_security_take_walls(const struct cri_runtime_service *s, struct arena *a,
			    const struct workload *w, const Runtime__V1__PodSandboxConfig *sandbox,
			    const Runtime__V1__LinuxContainerSecurityContext *of,
			    struct pod_container_spec *spec, struct error *err);

/* The ids of the user namespace that a sandbox is asked to have; not set: it has none. They were
 * checked. */
void cri_security_ids(const Runtime__V1__NamespaceOption *o, struct isolate_ids *ret);

#endif
