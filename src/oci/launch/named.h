/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_NAMED_H
#define NACRE_OCI_NAMED_H

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"
#include "oci/launch/container.h"

/*
 * A container's group in systemd's own hierarchy of cgroups, version 1 (name=systemd, which has no
 * controller). A host has it beside version 2 or instead of it. A systemd that is the first process
 * of a container there wants to see that hierarchy and to be in a group of it: podman --systemd
 * binds it to /sys/fs/cgroup/systemd, and expects its runtime to do the rest. Containers without
 * such a mount have no group in it.
 *
 * The group has the path of the container's group of version 2.
 */

/* isolate_spawn() of a process of the container, which is in that group from its first moment: the
 * thread that clones it goes there meanwhile. Makes the group where it is missing. */
int named_spawn(const struct container *c, struct isolate_plan *plan, struct isolate_child *child,
		struct error *err);
/* Removes the group, in which nobody is any more. */
int named_remove(const struct container *c, struct error *err);

#endif
