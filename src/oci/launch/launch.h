/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_LAUNCH_H
#define NACRE_OCI_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "oci/launch/container.h"

/*
 * From a bundle to a process: its cgroup, its plan, its clone, and what the first process of a
 * container and the runtime have to say to each other meanwhile.
 */

struct launch_options;

struct launched {
	pid_t pid;
	int pidfd;
	int master_fd; /* of its terminal, where that was not sent away */
};

#define LAUNCHED_INIT                                                                              \
	{                                                                                          \
		.pidfd = -1, .master_fd = -1                                                       \
	}

void launched_done(struct launched *l);

/*
 * Makes the container of c, which has its directory and its bundle. Where it fails nothing of it is
 * left but the directory, which is the caller's to remove. The process is a child of this one.
 */
int launch_container(struct container *c, const struct launch_options *o, struct launched *ret,
		     struct error *err);

/* Lets the process of a container that was created with `wait` go on. 0 once the program runs. */
int launch_start(struct container *c, struct error *err);

/* One more process in a running container. */
int launch_exec(struct container *c, const struct oci_process *p, const struct launch_options *o,
		const char *sub_cgroup, struct launched *ret, struct error *err);

#endif
