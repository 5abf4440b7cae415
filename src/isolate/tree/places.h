/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_PLACES_H
#define NACRE_ISOLATE_PLACES_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * The contents of /dev and /sys of a container, mounted on a directory; private to this area. Made
 * by the container's own process, or ahead of it (isolate/spawn/prepared.h): in the namespaces that
 * they are to show, with umask 0. The working directory is another one afterwards.
 */

struct place_dev_plan {
	int pts_fd;   /* a detached mount; -1: a new one */
	int shm_fd;   /* likewise */
	unsigned tty; /* the group of terminals, as the caller sees it */
};

/* The mount, with devices, links, pts, shm and mqueue. */
int place_dev(int target_fd, const struct place_dev_plan *plan, struct error *err);
/* The mount, read-only but where it is to be writable. */
int place_sys(int target_fd, bool writable, struct error *err);
/* In that mount the groups of the caller's cgroup namespace. */
int place_cgroups(int sys_fd, bool writable, struct error *err);
/*
 * Whether the groups that this process has just mounted below sys_fd can be left to it: whoever
 * writes there may not change the limits of the group that is the root of its namespace. The kernel
 * forbids that where cgroup2 is mounted with nsdelegate. ERROR_PRECONDITION: it does not.
 */
int place_check_groups(int sys_fd, struct error *err);

/* Mounts a new file system on a directory; the mount. */
int place_new(int target_fd, const char *fs, unsigned attrs, struct error *err);

#endif
