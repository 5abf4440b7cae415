/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_PIDS_H
#define NACRE_INSTANCE_PIDS_H

#include "instance/model.h"

/*
 * Pids as the daemon sees them. A keeper in a namespace of its own only knows its own numbers; the
 * kernel lists ours in the cgroup (cgroup.procs is translated for whoever reads it).
 */

/* Opens i->pidfd, where the process of a record still lives, by its pid and start time: 1. 0: it
 * does not; or a negative errno. */
int instance_find_process(struct instance *i, pid_t pid, unsigned long long start_time);

/* The pid of a keeper that another keeper made; 0 where it cannot be told. */
pid_t instance_keeper_pid(struct instance *i);

/* The pid, as the daemon sees it, of a container's first process; 0 where it cannot be told. group:
 * its own, below that of the instance. */
pid_t instance_container_pid(struct instance *i, const char *group, pid_t keeper_pid,
			     bool own_pid_ns);

/* The same by the kernel's word alone, without a look at the container's group: for whoever has
 * just heard from the keeper that it runs. 0 also where the kernel has no such word. */
pid_t instance_container_pid_told(struct instance *i, pid_t keeper_pid, bool own_pid_ns);

#endif
