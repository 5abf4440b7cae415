/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_AGAIN_H
#define NACRE_POD_AGAIN_H

#include "pod/workload/make.h"
#include "pod/workload/model.h"

/*
 * Workloads that are started after their creation, and those that have ended and run again: same
 * id, name and files (the writable layers of their containers), a new instance and a new attachment
 * to their network. Their specification is made anew from the request that was kept
 * (workload_wish()).
 *
 * Pods and cells whose roots are directories of this host can be started again. A daemon that ends
 * in the middle leaves one that has ended.
 */

/* 0: it can be started, once it is down (sandbox_wait_down()). 1: it starts, or runs.
 * ERROR_UNSUPPORTED where nothing of its kind can; ERROR_PRECONDITION where it is on its way out.
 */
int workload_check_start(const struct workload *w, struct error *err);
/* The request that it was made for, as workload_spec.wish had it, to be freed by the caller.
 * ERROR_PRECONDITION: it was not kept. */
int workload_wish(const struct workload *w, char **ret, struct error *err);
/*
 * Starts one that is down. spec: as that of workload_run(), of the same containers with the ids of
 * the images that they have. done: as that of workload_run(). by_policy: it goes on counting its
 * restarts. Errors of workload_run(), and of workload_check_start(): it is as it was before.
 */
int workload_start(struct workload *w, const struct workload_spec *spec, bool by_policy,
		   workload_fn done, void *userdata, struct error *err);

#endif
