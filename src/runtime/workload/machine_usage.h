/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_MACHINE_USAGE_H
#define NACRE_RUNTIME_MACHINE_USAGE_H

#include "api/nacre.pb-c.h"
#include "isolate/cgroup/usage.h"

/* The resources of the node that a machine uses: its VMM's and its gate's leaf, read on a thread.
 */

struct arena;
struct instance;
struct workload_service;

struct machine_usage {
	char *vmm, *gate; /* their groups; NULL: there is no machine */
	uint64_t memory;
	unsigned cpus;
	int result; /* of machine_usage_read() */
	struct usage usage;
	uint64_t host_memory, overhead;
};

/* Writes down what is to be read; 0 also where there is nothing, or -ENOMEM. */
int machine_usage_plan(struct machine_usage *m, struct arena *a, struct workload_service *s,
		       const struct instance *i);
/* On the thread. */
void machine_usage_read(struct machine_usage *m, int cgroup_fd);
/* *ret is NULL where nothing could be read. 0 or -ENOMEM. */
int machine_usage_convert(const struct machine_usage *m, struct arena *a,
			  Nacre__V1__MachineUsage **ret);

#endif
