/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_SECURITY_H
#define NACRE_CRI_SECURITY_H

#include "api/cri.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/arena.h"
#include "base/error.h"

/*
 * Security contexts. Capabilities, the filter, what can be gained and groups are honoured, and the
 * masks of /proc and /sys that each container has may be asked for; what else would weaken or
 * change its walls is refused by name until it is honoured (ERROR_UNSUPPORTED).
 */

/* A sandbox has no process of its own, so what is said of that holds. */
int cri_security_check_sandbox(const Runtime__V1__LinuxSandboxSecurityContext *s,
			       struct error *err);
/* ERROR_INVALID for what is wrong whatever the host. */
int cri_security_check_container(const Runtime__V1__LinuxContainerSecurityContext *s,
				 struct error *err);
/* What was checked (NULL: nothing was said), as the own API has it, in the arena. */
int cri_security_take(struct arena *a, const Runtime__V1__LinuxContainerSecurityContext *s,
		      Aurae__Runtime__V0__Security **ret, struct error *err);

#endif
