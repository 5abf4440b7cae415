/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_REMOTE_H
#define NACRE_POD_REMOTE_H

#include "pod/networks/etc.h"
#include "pod/workload/model.h"

/*
 * The resources of containers in an instance with a kernel of its own, to which no descriptor can
 * be passed: a disk with the image in the place of a root file system, and a log that their keeper
 * keeps and that is written here. Private to this area.
 */

/* Puts the images of its containers, and its volumes, into the machine. Where this returns 0, done
 * is called later, once: when all are there, or one cannot be (w->disk_error). Until then w must
 * not be freed (w->n_disks > 0). */
int remote_put_disks(const struct workloads_config *config, struct workload *w,
		     void (*done)(struct workload *w), struct error *err);
/* The same for one container of a sandbox, with the volumes of its own that the machine has not.
 * Where this returns 0, the workload's deferred work is scheduled whenever more of it is there.
 * Until c->awaits_disk is false c must not be freed. */
int remote_put_member(const struct workloads_config *config, struct pod_container *c,
		      struct error *err);
/* Whether all is there, or (c->failed) something cannot be. */
bool remote_has_member(const struct pod_container *c);
/* After a restart: they are used by whoever used them before. */
void remote_claim_disks(struct workload *w);
/* Likewise: what changes of its volumes that are given as files is given again, and the shares of
 * a sandbox are known. -ENOMEM, or what the store failed by. */
int remote_claim_files(const struct workloads_config *config, struct workload *w,
		       struct error *err);
/* Shares of a sandbox that none of its containers has leave its machine. */
void remote_settle_shares(const struct workloads_config *config, struct workload *w);
/* Its peer is gone, and answers nothing any more. */
void remote_lose_peer(struct workload *w);
/* Nothing of it lives in its keeper any more: they are not used. */
void remote_drop_disks(struct workload *w);
void remote_drop_disk(struct pod_container *c);
/* Fills in what a container is started with; the disk and the files must live until then. */
void remote_fill(const struct pod_container *c, const struct etc *etc, struct container_spec *spec,
		 struct container_disk *room);
/* Takes what its keeper keeps of its output, from now on, if it does not already. Into c->log_fd
 * where it has_own_log: fresh, unless a daemon before this one has begun. */
void remote_follow_log(const struct workloads_config *config, struct pod_container *c);
/* It cannot be taken. */
void remote_lose_log(struct pod_container *c, const struct error *err);
/* No more. */
void remote_close_log(struct pod_container *c);

#endif
