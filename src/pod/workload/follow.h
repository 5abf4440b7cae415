/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_FOLLOW_H
#define NACRE_POD_FOLLOW_H

#include "pod/workload/model.h"

/*
 * Sources of the state of workloads: the instances that they live in, and the records of an earlier
 * life of the daemon.
 */

/* Events of the instances (wired in the daemon). */
void workloads_on_container(struct workloads *all, struct instance *i,
			    const struct container_view *view);
void workloads_on_instance(struct workloads *all, struct instance *i);
void workloads_on_synced(struct workloads *all, struct instance *i);
void workloads_on_close(struct workloads *all, struct instance *i);

/* After a restart, behind instance_adopt(): reads the records; after a reboot, those that were kept
 * (pod/restart/reboot.h). workloads_resume() then, when the
 * keepers have told what they have, goes on with what was half done and removes what has no record:
 * a workload that was STARTING is RUNNING if every container came to run, else it is undone:
 * FAILED for as long as something of it lives, then removed, so that its name is free for the same
 * call. */
int workloads_adopt(struct workloads *all, struct error *err);
void workloads_resume(struct workloads *all);
/* The host ends: from here on no policy starts anything. */
void workloads_rest(struct workloads *all);

#endif
