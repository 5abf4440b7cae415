/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_HOSTED_H
#define NACRE_POD_HOSTED_H

#include "foreign/foreign.h"
#include "pod/workload/model.h"

/*
 * A workload of kind "vm": a machine with somebody's own system in it (foreign/foreign.h) in the
 * place of an instance with containers. It has one container all the same, "machine", which stands
 * for what runs in it: its pid is that of the machine's monitor, its terminal the console.
 */

#define HOSTED_CONTAINER "machine"

/*
 * Or a machine in a cloud (clouds/clouds.h), from an image there: the image of its container is
 * "ami://IMAGE", "gce://IMAGE" or "vsphere://IMAGE". It runs once the cloud says so, has ended when
 * the cloud says that it stops or goes, and its record in root.db goes with the workload.
 */

/* What the cloud calls it, and which cloud that is; NULL: the image is in no cloud. */
const char *hosted_cloud_image(const char *image, const char **ret_provider);
/* Whether a workload is such a machine. */
bool hosted_is_in_cloud(const struct workload *w);

/* The specification of a machine; its holder owns all descriptors and words in it. */
struct hosted_wish {
	struct foreign_spec spec;
	struct vm_disk disks[VM_DISKS_MAX], bases[VM_DISKS_MAX];
	char **words;
	/* Of one in a cloud, and nothing else of it: the smallest size. */
	unsigned cpus;
	uint64_t memory;
};

/* One without descriptors; NULL without memory. */
struct hosted_wish *hosted_wish_new(void);
/* Takes NULL, returns NULL. */
struct hosted_wish *hosted_wish_free(struct hosted_wish *wish);

/* Private to this area; w->kind is WORKLOAD_VM. */

/* The events of its machine, for the code that moves the workload on (life.h). */
struct hosted_ops {
	/* The answer to its start: a status, or view NULL and why there is none. */
	void (*answer)(struct pod_container *c, const struct container_view *view,
		       const char *reason);
	/* It has ended as machines do. */
	void (*update)(struct pod_container *c, const struct container_status *status);
	/* It is gone, and how it ended is not known. */
	void (*lose)(struct workload *w, const char *reason);
	/* Nothing is left of it, after hosted_take_down() could not say so. */
	void (*taken_down)(struct workload *w);
};

/* Begins it; ops is told what follows, and must live as long as w. */
int hosted_start(struct workload *w, const struct hosted_ops *ops, struct error *err);
/* Takes it up after a restart of the daemon. ERROR_UNAVAILABLE and how it has ended. */
int hosted_adopt(struct workload *w, const struct hosted_ops *ops, struct error *err);
/* Asks the guest to power off, or (kill) ends the machine. */
void hosted_end(struct workload *w, bool kill);
/* 0: nothing of it is left. -EBUSY: it is to be tried again. -EINPROGRESS: ops is told
 * when there is nothing left. */
int hosted_take_down(struct workload *w, const struct hosted_ops *ops);
/* Lets go of it. */
void hosted_leave(struct workload *w);
/* Removes what is left of machines that have no record. */
void hosted_sweep(struct workloads *all);

#endif
