/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_GROUPS_H
#define NACRE_RUNTIME_GROUPS_H

#include <stddef.h>

#include "base/log/error.h"

/*
 * Names of cgroups, for what is looked up in them on a thread: paths from the root of the
 * hierarchy (workload_service.top_fd) without a '/' in front.
 */

struct instance;
struct pod_container;
struct workload;
struct workload_service;

#define GROUP_PATH_MAX 1280

/* The group of an instance, with all that is in it. 0, or -ENOENT where it has none. */
int group_of_instance(const struct workload_service *s, const struct instance *i,
		      char ret[GROUP_PATH_MAX]);
/* That of a pod's instance, or the cell of any other. */
int group_of_workload(const struct workload_service *s, const struct workload *w,
		      char ret[GROUP_PATH_MAX]);
int group_of_container(const struct workload_service *s, const struct pod_container *c,
		       char ret[GROUP_PATH_MAX]);
/* The leaf in which the keeper of an instance lives. */
int group_of_keeper(const struct workload_service *s, const struct instance *i,
		    char ret[GROUP_PATH_MAX]);

/* The leaf of one of the processes that a machine is made of, "vmm" or "gate"; -ENOENT for an
 * instance that has no machine of its own. */
int group_of_machine(const struct workload_service *s, const struct instance *i, const char *leaf,
		     char ret[GROUP_PATH_MAX]);

#endif
