/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_REMOTE_H
#define NACRE_POD_REMOTE_H

#include "pod/networks/etc.h"
#include "pod/workload/model.h"

/*
 * What containers get in an instance with a kernel of its own, to which no descriptor can be
 * passed: a disk with the image in the place of a root file system, and a log that their keeper
 * keeps and that is written here. Private to this area.
 */

/* Puts the images of its containers, and its volumes, into the machine. Where this returns 0, done
 * is called later, once: when all are there, or one cannot be (w->disk_error). Until then w must
 * not be freed (w->n_disks > 0). */
int remote_put_disks(const struct workloads_config *config, struct workload *w,
		     void (*done)(struct workload *w), struct error *err);
/* After a restart: they are used by whoever used them before. */
void remote_claim_disks(struct workload *w);
/* Likewise: what changes of its volumes that are given as files is given again. -ENOMEM, or what
 * the store failed by. */
int remote_claim_files(const struct workloads_config *config, struct workload *w,
		       struct error *err);
/* Its peer is gone, and answers nothing any more. */
void remote_lose_peer(struct workload *w);
/* Nothing of it lives in its keeper any more: they are not used. */
void remote_drop_disks(struct workload *w);
/* Fills in what a container is started with; the disk and the files must live until then. */
void remote_fill(const struct pod_container *c, const struct etc *etc, struct container_spec *spec,
		 struct container_disk *room);
/* Takes what its keeper keeps of its output, from now on, if it does not already. */
void remote_follow_log(const struct workloads_config *config, struct pod_container *c);
/* No more. */
void remote_close_log(struct pod_container *c);

#endif
