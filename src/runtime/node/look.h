/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_LOOK_H
#define NACRE_RUNTIME_LOOK_H

#include "base/log/error.h"

struct inventory;

/*
 * The kernel's objects of a node: its half of the check. Reads directories, so it is called on a
 * thread of the pool; the descriptors are only borrowed.
 *
 *   cgroup      every group below the base group, as a path
 *   processes   those of them where a process lives, in itself or below
 *   directory   of keepers, below the run directory ("i/ID", "node")
 *   socket      in those
 *   log, rootfs, blob, layer, staging   entries of the directories of the root directory
 *   port        the node's ends of the links of pods, as "ports/NAME"; one without an owner may be
 *               there for as long as its pod's last connections hold it
 *   mount       mount points of the daemon's mount namespace inside of the node's own directories
 */
struct look {
	int root_fd, run_fd, cgroup_fd;
};

/* A directory that is gone meanwhile, or was never made, is empty. */
int look_take(const struct look *l, struct inventory *t, struct error *err);

/* Adds the mount points of `mountinfo` that lie deeper than directly inside `dir`: a mount that the
 * user made as "layers" or "containers" does not count. Destroys the text. */
void look_mounts(struct inventory *t, char *mountinfo, const char *dir);

#endif
