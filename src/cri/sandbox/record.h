/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_RECORD_H
#define NACRE_CRI_RECORD_H

#include "api/cri.pb-c.h"
#include "base/memory/arena.h"
#include "pod/workload/model.h"

/*
 * The kubelet's data about a sandbox or a container that it wants to get back, kept with their
 * settings (runtime/start/settings.h). The environment of a container is not kept.
 */

/* The message of the call that made it, in the arena. NULL: it was not made by a call of the CRI,
 * or there is no memory. */
Runtime__V1__RunPodSandboxRequest *cri_record_of_sandbox(struct arena *a, const struct workload *w);
Runtime__V1__CreateContainerRequest *cri_record_of_container(struct arena *a,
							     const struct pod_container *c);
/* Settings with this call behind them. NULL without memory. */
char *cri_record_sandbox(struct arena *a, const char *settings,
			 const Runtime__V1__RunPodSandboxRequest *q);
char *cri_record_container(struct arena *a, const char *settings,
			   const Runtime__V1__CreateContainerRequest *q);

#endif
