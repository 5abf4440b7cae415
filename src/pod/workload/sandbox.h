/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_SANDBOX_H
#define NACRE_POD_SANDBOX_H

#include "pod/workload/make.h"
#include "pod/workload/model.h"

/*
 * A sandbox is a pod that lives until it is stopped: an instance with a network, with no container
 * at first (workload_spec.lasts). Containers are created in it, started, stopped and removed, one
 * by one. It is EXITED when it was stopped and all of them have ended; what is left of them is
 * removed with it.
 *
 * A container that was created is gone with the daemon's end if nobody has started it: it is FAILED
 * then, as one is whose sandbox is stopped first.
 *
 * Any other pod or cell of this kernel takes debug containers in the same way
 * (pod_container_spec.is_debug), behind those that came with it. One is removed as soon as it has
 * ended. Its workload does not wait for it: it is killed when the others have ended, or are told
 * to, and counts for nothing that is said of the whole.
 */

/*
 * Records a container. done: its files are there and it can be started, or (err) nothing of it is
 * left. The spec may be gone behind the call; etc is what is asked of its files below /etc, as for
 * all of the sandbox (NULL: nothing). ERROR_PRECONDITION where the sandbox does not run,
 * ERROR_EXISTS for the name, ERROR_NOT_FOUND for the image, ERROR_EXHAUSTED, ERROR_INVALID.
 */
int sandbox_create_container(struct workload *w, const struct pod_container_spec *spec,
			     const struct etc_wish *etc, workload_fn done, void *userdata,
			     struct pod_container **ret, struct error *err);
/* done: as that of its creation. Nothing is done but to wait. -ENOMEM. */
int sandbox_wait_created(struct pod_container *c, workload_fn done, void *userdata,
			 struct error *err);
/* Puts words of isolate/cgroup/limits_words.h over those that one which is created starts with.
 * ERROR_PRECONDITION where it is not created, ERROR_INVALID for too many. */
int sandbox_limit_created(struct pod_container *c, char *const *words, struct error *err);
/* Starts one that is created. done: it runs, or has failed to (c->status, and c->failed for the
 * exact error), or (err) it was removed meanwhile. ERROR_PRECONDITION where it is not created. */
int sandbox_start_container(struct pod_container *c, workload_fn done, void *userdata,
			    struct error *err);
/*
 * Asks one to end by this signal (0: as its image wants), and kills it after `grace`; done when it
 * has ended (a debug container: when it is gone). A second call sends no second signal; the earlier
 * end of both counts. ERROR_PRECONDITION where it was not started.
 */
int sandbox_stop_container(struct pod_container *c, int sig, nsec_t grace, workload_fn done,
			   void *userdata, struct error *err);
/* Its log goes on in this file, which is taken over; done when nothing more is written to the old
 * one. ERROR_PRECONDITION where it does not run, or its log is ours. */
int sandbox_change_log(struct pod_container *c, int fd,
		       void (*done)(void *userdata, const struct error *err), void *userdata,
		       struct error *err);
/* The answer to workloads_config.open_log(): the file, which is taken over, or (err) why there is
 * none. */
void sandbox_give_log(struct pod_container *c, int fd, const struct error *err);
/* Kills it where it runs; done when nothing of it is left. -ENOMEM. */
int sandbox_remove_container(struct pod_container *c, workload_fn done, void *userdata,
			     struct error *err);
/* done when nothing of a sandbox that was stopped is in a keeper or on a network. */
int sandbox_wait_down(struct workload *w, workload_fn done, void *userdata);

#endif
