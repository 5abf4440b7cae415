/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_METRICS_H
#define NACRE_CRI_METRICS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/cri.pb-c.h"
#include "base/memory/arena.h"
#include "isolate/cgroup/usage.h"
#include "pod/workload/model.h"
#include "runtime/workload/machine_usage.h"

/*
 * Metrics with the names and labels that cAdvisor has given to them, as a kubelet hands them on to
 * Prometheus. A value that this host does not count is absent, and never told as 0.
 */

/* Processes whose descriptors are counted; of a group with more, none are. */
#define CRI_METRICS_PROCESSES_MAX 1024
/* Descriptors that are looked at for each reading, whichever processes have them. */
#define CRI_METRICS_DESCRIPTORS_MAX 65536

enum cri_traffic {
	CRI_RECEIVED_BYTES,
	CRI_RECEIVED_PACKETS,
	CRI_RECEIVED_DROPPED,
	CRI_RECEIVED_ERRORS,
	CRI_SENT_BYTES,
	CRI_SENT_PACKETS,
	CRI_SENT_DROPPED,
	CRI_SENT_ERRORS,
	CRI_TRAFFIC_COUNT
};

/* The owner of metrics: the values of the labels that every metric has. */
struct cri_metrics_owner {
	const char *container; /* its name for the kubelet; "": a sandbox */
	const char *group;     /* of the hierarchy, without a '/' in front */
	const char *image;
	const char *id;
	const char *space, *pod;  /* of the sandbox: namespace and name */
	char device[IF_NAMESIZE]; /* the node's end of the pod's link; "": none */
	pid_t pid;                /* its first process; 0: of a sandbox */
	uint64_t started_at;      /* nanoseconds */
	struct disk_written files;
	const char *root; /* the directory that its layer is in */
	/* The limits, as a kubelet counts; NULL: a sandbox. */
	const Runtime__V1__LinuxContainerResources *limits;
	uint64_t reserved; /* memory.low */
};

/* As it was read at one moment. */
struct cri_reading {
	int result;  /* of usage_read(): the rest counts only where it is 0 */
	uint64_t at; /* wall clock, nanoseconds */
	struct usage usage;
	struct usage_details details;
	char devices[USAGE_DEVICES_MAX][40]; /* names of details.devices, as "/dev/sda" */
	bool has_details;                    /* `details` of memory are known */
	bool has_traffic, has_files, has_processes, has_descriptors, has_open_files;
	uint64_t traffic[CRI_TRAFFIC_COUNT];       /* as the pod sees it */
	uint64_t files_bytes, inodes, inodes_free; /* of the file system that its layer is in */
	uint64_t processes, descriptors, sockets;
	uint64_t open_files; /* soft limit; UINT64_MAX: none */
};

/* As the keeper of a container with another kernel tells it. */
void cri_reading_told(struct cri_reading *r, const struct usage *told);
/* For a thread: of a sandbox that is a machine, what that takes of the node. */
void cri_reading_take_machine(struct cri_reading *r, struct machine_usage *m, int cgroup_fd,
			      const struct cri_metrics_owner *owner);
/* For a thread. */
void cri_reading_take(struct cri_reading *r, int cgroup_fd, const struct cri_metrics_owner *owner);

/* The descriptors of all metrics, in the arena. NULL without memory. */
Runtime__V1__MetricDescriptor **cri_metrics_descriptors(struct arena *a, size_t *n);
/* The metrics of one reading, in the arena. NULL without memory. */
Runtime__V1__Metric **cri_metrics(struct arena *a, const struct cri_reading *r,
				  const struct cri_metrics_owner *owner, size_t *n);

#endif
