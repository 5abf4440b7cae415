/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_PAUSE_H
#define NACRE_POD_PAUSE_H

#include "pod/workload/model.h"

/*
 * The freezer of a container's cgroup. Whether a container is paused is the kernel's word: it stays
 * so over a restart of the daemon. Its keeper is not, and answers.
 *
 * Only where the groups of its containers are on this host (instance_is_remote()).
 */

/* The container's group, as a descriptor of the caller's own. -ENOENT: it is gone. */
int pause_open_group(const struct pod_container *c);
/* Of one that an earlier life of the daemon has left. */
void pause_look(struct pod_container *c);
/* Lets one go on, as pause_end(). */
void pause_let_go(struct pod_container *c);
/* Lets all containers of a workload go on, so that they can be asked to end. Waits for nothing. */
void pause_end(struct workload *w);

/* Whether one of its containers is paused. */
bool workload_is_paused(const struct workload *w);

#endif
