/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_SANDBOX_SPEC_H
#define NACRE_CRI_SANDBOX_SPEC_H

#include "api/cri.pb-c.h"
#include "base/memory/arena.h"
#include "pod/workload/make.h"

/*
 * A sandbox as the kubelet asks for it, checked, as the domain takes it. Errors name the field
 * below `config`.
 */

struct cri_runtime_service;

/* Fills in a specification, all in the arena: with a name of its own, its network, its files below
 * /etc, and the record of the call. */
int cri_sandbox_spec(const struct cri_runtime_service *s, struct arena *a,
		     const Runtime__V1__RunPodSandboxRequest *q, struct workload_spec *spec,
		     struct error *err);
/* The files below /etc that its containers get by it: spec->etc. */
int cri_sandbox_etc(struct arena *a, const Runtime__V1__PodSandboxConfig *config,
		    struct workload_spec *spec, struct error *err);
/* Whether it is in the node's network. */
bool cri_sandbox_is_on_host(const Runtime__V1__PodSandboxConfig *config);

#endif
