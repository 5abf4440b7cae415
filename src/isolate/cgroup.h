/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_CGROUP_H
#define NACRE_ISOLATE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Directories of the cgroup v2 hierarchy, by descriptor: they work in any mount namespace.
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

#endif
