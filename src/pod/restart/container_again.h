/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_CONTAINER_AGAIN_H
#define NACRE_POD_CONTAINER_AGAIN_H

#include "pod/workload/make.h"
#include "pod/workload/model.h"

/*
 * One container of a workload that runs, stopped and started alone: same id, name and files, a new
 * process in the namespaces that its workload has. Not in an instance with a kernel of its own,
 * where its files end with it.
 */

/* 0: it can be started. 1: it starts, or runs. ERROR_UNSUPPORTED where nothing of its kind can;
 * ERROR_PRECONDITION where its workload does not run, or it ends before others begin. */
int container_check_start(const struct pod_container *c, struct error *err);
/*
 * Starts one that has ended. spec: as that of workload_run(), of this container alone, with the id
 * of the image that it has. done: it runs, or has failed to, and its status says why. Errors of
 * workload_run(), and of container_check_start(): it is as it was before.
 */
int container_start(struct pod_container *c, const struct workload_spec *spec, bool by_policy,
		    workload_fn done, void *userdata, struct error *err);
/* Asks it to end, and kills it after `grace`; done when it has ended. No policy of its own starts
 * it again. ERROR_PRECONDITION where it was not started. */
int container_stop(struct pod_container *c, nsec_t grace, workload_fn done, void *userdata,
		   struct error *err);
/* The same for whoever starts it again: its workload does not end meanwhile. The caller calls
 * container_start() behind it, or container_restart_failed(). */
int container_end(struct pod_container *c, nsec_t grace, workload_fn done, void *userdata,
		  struct error *err);

#endif
