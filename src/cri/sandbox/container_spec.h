/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_CONTAINER_SPEC_H
#define NACRE_CRI_CONTAINER_SPEC_H

#include "api/cri.pb-c.h"
#include "base/memory/arena.h"
#include "pod/workload/make.h"

/*
 * A container as the kubelet asks for it, checked, as the domain takes it. Errors name the field
 * below `config`.
 */

struct cdi_changes;
struct cri_runtime_service;

/* Fills in a specification, all in the arena, for a sandbox that was made so. Its log and the
 * sources of its mounts are named; runtime/storage/volumes_call.h opens them. changes: what it gets
 * with its devices; NULL: nothing. */
int cri_container_spec(const struct cri_runtime_service *s, struct arena *a,
		       const struct workload *w, const Runtime__V1__PodSandboxConfig *sandbox,
		       const Runtime__V1__CreateContainerRequest *q,
		       const struct cdi_changes *changes, struct pod_container_spec *spec,
		       struct error *err);
/* The path of its log on the node: "" where it has none. NULL without memory. */
char *cri_container_log_path(struct arena *a, const Runtime__V1__PodSandboxConfig *sandbox,
			     const Runtime__V1__ContainerConfig *config);
/* The number of its stop signal; 0: that of its image. */
int cri_container_stop_signal(const Runtime__V1__ContainerConfig *config);
/* The signal of the CRI with this number, of several names the first; RUNTIME_DEFAULT for none. */
Runtime__V1__Signal cri_signal_of(int number);

#endif
