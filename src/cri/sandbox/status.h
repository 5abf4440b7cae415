/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_STATUS_H
#define NACRE_CRI_STATUS_H

#include "api/cri.pb-c.h"
#include "base/memory/arena.h"
#include "pod/workload/model.h"

/*
 * Sandboxes and containers as the kubelet sees them. All in the arena, items of lists without a
 * pointer to the object; NULL without memory. q is the record of the call that made it
 * (cri/sandbox/record.h).
 */

Runtime__V1__PodSandboxState cri_sandbox_state(const struct workload *w);
Runtime__V1__PodSandbox *cri_sandbox_item(struct arena *a, const struct workload *w,
					  const Runtime__V1__RunPodSandboxRequest *q);
Runtime__V1__PodSandboxStatus *cri_sandbox_status(struct arena *a, const struct workload *w,
						  const Runtime__V1__RunPodSandboxRequest *q);

Runtime__V1__ContainerState cri_container_state(const struct pod_container *c);
Runtime__V1__Container *cri_container_item(struct arena *a, const struct pod_container *c,
					   const Runtime__V1__CreateContainerRequest *q);
Runtime__V1__ContainerStatus *cri_container_status(struct arena *a, struct pod_container *c,
						   const Runtime__V1__CreateContainerRequest *q);

#endif
