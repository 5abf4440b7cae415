/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_LAUNCH_CHILD_H
#define NACRE_OCI_LAUNCH_CHILD_H

#include "isolate/plan/plan.h"
#include "oci/launch/container.h"

/*
 * The work of the first process of a container at the points of its start (a plan's `at`). It is a
 * copy of the runtime in the container; all its messages, in both directions, are single bytes,
 * some with descriptors.
 */

#define LAUNCH_MOUNTED 'M' /* process to runtime: all is mounted, I wait */
#define LAUNCH_READY 'R'   /* to the runtime: I wait. To `start`, with the two descriptors: here */
#define LAUNCH_GO 'G'      /* to the process */
#define LAUNCH_WAIT 'W'    /* to the process, with the three descriptors: until `start` comes */
#define LAUNCH_WAIT_FDS 3

struct launch_child_plan {
	const struct container *container;
	const struct isolate_plan *plan;
	int socket_fd; /* the process's end */
	bool stop_mounted, stop_ready;
	bool held; /* the program waits for the runtime's byte, which is not asked for */
};

int launch_child_at(const struct isolate_at *at, struct error *err);

#endif
