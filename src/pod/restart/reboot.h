/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_REBOOT_H
#define NACRE_POD_REBOOT_H

#include "pod/workload/workloads.h"

/*
 * Workloads over a reboot of the host. Their records lie in the run directory, which means nothing
 * then. Those that can be started again are copied to root.db: in the background, a moment after
 * they have changed, never on the path of a start. The first daemon after a reboot copies them
 * back, as workloads that have ended with the host; what has a policy of always or unless-stopped,
 * and nobody stopped it, is started again then (pod/restart/restart.h). On-failure rests: a reboot
 * is no failure of it.
 *
 * Not copied are those that are removed when they end, those in instances, which are gone, and
 * those of which nothing is left (pod/restart/again.h). After a crash of the host files of a
 * container are what the disk has of them.
 */

/* Changes within this time are written as one. */
#define REBOOT_SETTLE (1 * NSEC_PER_SEC)

void reboot_init(struct workloads *all);
/* Hands on the records that are still due; to be called before the workloads are freed. */
void reboot_done(struct workloads *all);
/* Its record has changed. */
void reboot_touch(struct workload *w);
/* Nothing is left of it. */
void reboot_forget(struct workload *w);

/* Before the records are read: copies back what a reboot has taken. */
int reboot_restore(struct workloads *all, struct error *err);
/* And behind that: what is kept of workloads that are not there any more goes. */
void reboot_sweep(struct workloads *all);

#endif
