/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/volumes_take.h"

#include <assert.h>

#include "base/text/str.h"
#include "pod/workload/make.h"
#include "runtime/storage/volumes_call.h"

/* The last of its variables are theirs. */
static void volumes_take_variables(struct pod_container_spec *c,
				   const struct volumes_opened *opened, size_t *n)
{
	char **env = (char **)(uintptr_t)c->env;
	size_t at = strv_len(c->env);

	for (size_t i = 0; i < c->n_secret_env; i++)
		env[at + i] = opened->texts[(*n)++];
}

void volumes_call_take(struct workload_spec *spec, const struct volumes_opened *opened)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_containers; i++) {
		struct pod_container_spec *c =
			(struct pod_container_spec *)(uintptr_t)&spec->containers[i];
		struct pod_mount_spec *mounts = (struct pod_mount_spec *)(uintptr_t)c->mounts;

		for (size_t k = 0; k < c->n_mounts; k++) {
			if (!mounts[k].source)
				continue;
			mounts[k].volume_id = opened->ids[n];
			if (opened->texts[n])
				mounts[k].source = opened->texts[n];
			mounts[k].fd = opened->fds[n++];
		}
		c->has_log = c->log_dir != NULL;
		if (c->has_log)
			c->log_fd = opened->fds[n++];
		c->security.own_filter = c->profile_field != NULL;
		if (c->profile_field)
			c->filter = opened->filters[n++];
		volumes_take_variables(c, opened, &n);
	}
	assert(n == opened->n);
}
