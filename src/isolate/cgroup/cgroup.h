/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_CGROUP_H
#define NACRE_ISOLATE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/log/error.h"

/*
 * Directories of the cgroup v2 hierarchy, by descriptor: they work in any mount namespace. Beside
 * this: cgroup_path.h (paths of groups), cgroup_watch.h (events, freezing), limits.h, devices.h and
 * usage.h.
 */

/* Finds the mounted v2 hierarchy (alone or beside v1) by /proc/self/mountinfo: a descriptor of its
 * root as this process sees it. ERROR_PRECONDITION where there is none. */
int cgroup_open_root(struct error *err);
/* Path of this process's own cgroup below that root, "" for the root itself. */
int cgroup_own_path(char *ret, size_t size, struct error *err);

/* Makes (or finds) a directory and opens it. name: one component. */
int cgroup_make(int parent_fd, const char *name, struct error *err);
/* SIGKILL to every process in it and below: cgroup.kill, or where a kernel lacks it, a walk. */
int cgroup_kill(int dir_fd);
/* Whether any process lives in it or below (cgroup.events). */
int cgroup_populated(int dir_fd);
/* Removes name below parent_fd with everything below it. -EBUSY while a process lives there; a name
 * that is not there is success. */
int cgroup_remove(int parent_fd, const char *name);

/* ---- processes ---- */

#define CGROUP_PIDS_MAX (1 << 20)

/* The processes of the group (below: and of the groups below it), as this process's pid namespace
 * numbers them; those that it does not see are left out. The caller frees *ret, NULL where there
 * are none. ERROR_EXHAUSTED past CGROUP_PIDS_MAX. */
int cgroup_pids(int dir_fd, bool below, pid_t **ret, size_t *n, struct error *err);
/*
 * The one process that a group was made for, among the processes right in it: the only one, or,
 * where somebody has put others beside it, the only one whose name (/proc/PID/comm) begins with
 * `name`. *ret is 0 where there is none. ERROR_UNAVAILABLE where that cannot be told.
 */
int cgroup_find_one(int dir_fd, const char *name, pid_t *ret, struct error *err);

/* ---- controllers ---- */

enum cgroup_controller {
	CGROUP_CPUSET,
	CGROUP_CPU,
	CGROUP_IO,
	CGROUP_MEMORY,
	CGROUP_HUGETLB,
	CGROUP_PIDS,
	CGROUP_RDMA,
	CGROUP_MISC,
	CGROUP_CONTROLLER_COUNT
};

#define CGROUP_CONTROLLERS_ALL ((1U << CGROUP_CONTROLLER_COUNT) - 1)
/* The controllers that account for every workload, and limit it. */
#define CGROUP_CONTROLLERS_WORKLOAD                                                                \
	(1U << CGROUP_CPUSET | 1U << CGROUP_CPU | 1U << CGROUP_IO | 1U << CGROUP_MEMORY |          \
	 1U << CGROUP_PIDS)

/* "cpu", "memory", ...: the name in the kernel's files. */
const char *cgroup_controller_name(enum cgroup_controller c);
/* The controller that a name or the name of a file ("memory.max") begins with, or -ENOENT. */
int cgroup_controller_of(const char *name);
/* A bit for each controller that the group has (cgroup.controllers); 0 where that cannot be read.
 */
unsigned cgroup_controllers(int dir_fd);
/* ERROR_PRECONDITION with the reason why the group does not have the controller: a hybrid host
 * keeps it in version 1, the kernel lacks it, or a group above did not hand it on. */
int cgroup_refuse_controller(int dir_fd, enum cgroup_controller c, struct error *err);
/* Hands controllers on to the groups below dir_fd (cgroup.subtree_control). What is on already
 * stays. ERROR_PRECONDITION where the group does not have one, or holds processes itself. */
int cgroup_enable(int dir_fd, unsigned controllers, struct error *err);
/* Enables CGROUP_CONTROLLERS_WORKLOAD, those that are there, for the groups below. */
void cgroup_enable_workload(int dir_fd);
/* cgroup_make() for a group that only holds groups: with cgroup_enable_workload(). */
int cgroup_make_inner(int parent_fd, const char *name, struct error *err);

#endif
