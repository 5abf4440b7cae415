/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/record.h"

#include "runtime/start/settings.h"

Runtime__V1__RunPodSandboxRequest *cri_record_of_sandbox(struct arena *a, const struct workload *w)
{
	Runtime__V1__RunPodSandboxRequest *q =
		settings_record(a, w->settings, &runtime__v1__run_pod_sandbox_request__descriptor);

	return q && q->config && q->config->metadata ? q : NULL;
}

Runtime__V1__CreateContainerRequest *cri_record_of_container(struct arena *a,
							     const struct pod_container *c)
{
	Runtime__V1__CreateContainerRequest *q =
		settings_record(a, c->settings, &runtime__v1__create_container_request__descriptor);

	return q && q->config && q->config->metadata && q->config->image ? q : NULL;
}

char *cri_record_sandbox(struct arena *a, const char *settings,
			 const Runtime__V1__RunPodSandboxRequest *q)
{
	return settings_with_record(a, settings, &q->base);
}

char *cri_record_container(struct arena *a, const char *settings,
			   const Runtime__V1__CreateContainerRequest *q)
{
	Runtime__V1__CreateContainerRequest kept = *q;
	Runtime__V1__ContainerConfig config = *q->config;

	config.n_envs = 0;
	config.envs = NULL;
	kept.config = &config;
	kept.sandbox_config = NULL;
	return settings_with_record(a, settings, &kept.base);
}
