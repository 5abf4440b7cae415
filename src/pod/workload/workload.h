/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_WORKLOAD_H
#define NACRE_POD_WORKLOAD_H

#include "pod/workload/make.h"
#include "pod/workload/model.h"

/*
 * The life of workloads: everything that changes one goes through here.
 */

int workloads_new(struct workloads **ret, const struct workloads_config *config);
/* Workloads that run go on. Waiters are told with an error. To be called before instances_free().
 */
struct workloads *workloads_free(struct workloads *all);
const struct list *workloads_list(const struct workloads *all);
/* By id or path; NULL where there is none. */
struct workload *workloads_find(struct workloads *all, const char *target);
struct workload *workloads_find_id(const struct workloads *all, const char *id);
/* A container by its id. */
struct pod_container *workloads_find_container(const struct workloads *all, const char *id);
/*
 * Runs it. done: every container runs, or one has failed to (w is FAILED, its containers say why),
 * or the instance could not be made (FAILED as well). ERROR_EXISTS, ERROR_INVALID (naming the
 * field), ERROR_NOT_FOUND (an image), ERROR_PRECONDITION (the parent is not ready): nothing was
 * made.
 */
int workload_run(struct workloads *all, const struct workload_spec *spec, workload_fn done,
		 void *userdata, struct workload **ret, struct error *err);

/* Asks to end, kills after `grace`; done when every container has ended, or none was started yet.
 * No policy starts it again (pod/restart/restart.h). Here and below, done is only called at once
 * (with err) where there is no memory to wait. */
void workload_stop(struct workload *w, nsec_t grace, workload_fn done, void *userdata);
/* The same for whoever starts it again: its policy does not rest. */
void workload_end(struct workload *w, nsec_t grace, workload_fn done, void *userdata);
/* Kills it, for a reason that its record says. */
void workload_stop_for(struct workload *w, const char *reason);

/* done when it has ended (container NULL), or that container has. */
void workload_wait(struct workload *w, struct pod_container *container, workload_fn done,
		   void *userdata);
/* done when what is probed of it (or that container) is healthy, or one container is unhealthy
 * (healthy false); also when it has ended, or nothing of it is probed (pod/workload/health.h). */
void workload_wait_health(struct workload *w, struct pod_container *container, bool healthy,
			  workload_fn done, void *userdata);
/* done when every container runs, one has failed to, or it has ended, as that of workload_run(). */
void workload_wait_started(struct workload *w, workload_fn done, void *userdata);
/* done when that container runs, or has failed to. -ENOMEM. */
int workload_wait_container_started(struct pod_container *c, workload_fn done, void *userdata,
				    struct error *err);
/* It has ended and is removed without anybody asking again. */
bool workload_is_leaving(const struct workload *w);
/* Takes waiters of this userdata back. */
void workload_forget_waiter(struct workload *w, void *userdata);

/* Sets the settings (struct pod_container) of a workload, or of one of its containers, kept with
 * its record. */
int workload_set_settings(struct workload *w, struct pod_container *c, const char *settings,
			  struct error *err);

/* done when every trace in keepers and the store is gone (w is NULL then). ERROR_PRECONDITION while
 * it runs, unless force. */
int workload_remove(struct workload *w, bool force, workload_fn done, void *userdata,
		    struct error *err);

/* The root file system of a container that does not run (any more), as a descriptor of the caller's
 * own; see image_rootfs_open(). ERROR_PRECONDITION where it has none. */
int pod_container_open_root(const struct pod_container *c, struct error *err);
/* The files that it has changed, and the tree of its image below them (*ret_image_fd), to be
 * compared. ERROR_PRECONDITION where it has none of its own, or they are on a file system of its
 * own in use. */
int pod_container_open_changes(const struct pod_container *c, int *ret_image_fd, struct error *err);

#endif
