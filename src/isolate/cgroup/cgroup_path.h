/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_CGROUP_PATH_H
#define NACRE_ISOLATE_CGROUP_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"

/* Paths of groups below the root of the hierarchy: "a/b/c", no component "." or "..", at most
 * CGROUP_PATH_DEPTH_MAX of them; "" is the root itself. */
#define CGROUP_PATH_DEPTH_MAX 32
#define CGROUP_PATH_SIZE 4096

/* Whether it is such a path behind a '/', at least one part long: 0 or -EINVAL. Pure. */
int cgroup_path_check(const char *path);

/*
 * Makes the groups of a relative path ("a/b/c") below root_fd where they are missing and opens the
 * last. `needed` controllers reach the last one, or it fails; those of `wanted` are handed down as
 * far as it goes. Below a threaded group it becomes threaded itself, and then only cpu, cpuset and
 * pids are to be had. What a failed call made is taken away again.
 */
int cgroup_make_path(int root_fd, const char *path, unsigned needed, unsigned wanted,
		     struct error *err);
/* Opens what is there; -ENOENT. */
int cgroup_open_path(int root_fd, const char *path);
/* Removes the last group of the path with all below it, as cgroup_remove(); and those above that
 * cgroup_make_path() had to make, where nobody is in them any more. */
int cgroup_remove_path(int root_fd, const char *path);

/*
 * The OCI's linux.cgroupsPath as a path below the root of the hierarchy. "/a/b" counts from the
 * root; "a/b" stands beside the group of this process (own: cgroup_own_path()); with `systemd` it
 * is "SLICE:PREFIX:NAME" and becomes the directories that systemd would use. "": NAME alone, as
 * "NAME" or as ":nacre:NAME". ERROR_INVALID.
 */
int cgroup_path_of_oci(char *ret, size_t size, const char *cgroups_path, bool systemd,
		       const char *own, const char *name, struct error *err);

#endif
