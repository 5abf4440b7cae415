/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_STATS_H
#define NACRE_CRI_STATS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/cri.pb-c.h"
#include "base/memory/arena.h"
#include "isolate/cgroup/usage.h"
#include "runtime/workload/machine_usage.h"
#include "pod/workload/model.h"

/*
 * The usage of a sandbox or a container, as it was read at one moment, and as messages. A value
 * that this host does not count is absent, and never told as 0; the time is there all the same.
 */

struct cri_usage {
	uint64_t at; /* wall clock, nanoseconds */
	int result;  /* of usage_read(): the rest counts only where it is 0 */
	struct usage usage;
	struct usage_pressure cpu, memory, io;
	bool has_traffic;
	uint64_t received, sent, receive_errors, send_errors; /* as the pod sees it */
};

/* For a thread: reads the group below cgroup_fd and, where `device` is not "", the node's end of
 * the pod's link. */
void cri_usage_read(struct cri_usage *u, int cgroup_fd, const char *group, const char *device);

/* Likewise of a sandbox that is a machine: what that takes of the node, and the processes that its
 * keeper has told. */
void cri_usage_read_machine(struct cri_usage *u, struct machine_usage *m, int cgroup_fd,
			    const char *device);
/* As the keeper of a container with another kernel tells it. */
void cri_usage_take(struct cri_usage *u, const struct usage *told);

/* In the arena; NULL without memory. root: the directory that the layer is in. */
Runtime__V1__ContainerStats *cri_stats_container(struct arena *a, const struct cri_usage *u,
						 Runtime__V1__ContainerAttributes *attributes,
						 const struct disk_written *files,
						 const char *root);
/* containers: those that run in it. */
Runtime__V1__PodSandboxStats *cri_stats_sandbox(struct arena *a, const struct cri_usage *u,
						Runtime__V1__PodSandboxAttributes *attributes,
						Runtime__V1__ContainerStats **containers,
						size_t n_containers);

#endif
