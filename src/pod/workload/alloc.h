/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_ALLOC_H
#define NACRE_POD_ALLOC_H

#include "pod/workload/model.h"

/*
 * The memory of a workload and of its containers, and what they hold: descriptors, images, shares.
 */

/* An empty workload, to be filled from a request or a record. NULL without memory. */
struct workload *workload_alloc(size_t n_containers);
/* One more container, empty, behind the others. NULL without memory. */
struct pod_container *workload_add_container(struct workload *w);
/* Takes it out again, with all that it holds. */
void workload_drop_container(struct workload *w, struct pod_container *c);
/* Sets its comment once, to a copy; NULL and "" are none. -ENOMEM. */
int workload_set_comment(struct workload *w, const char *comment);
/* Frees its memory and closes descriptors; its lists and maps are left to their owners. NULL is
 * allowed. */
void workload_unmake(struct workload *w);

#endif
