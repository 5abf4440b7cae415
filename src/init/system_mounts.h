/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_SYSTEM_MOUNTS_H
#define NACRE_INIT_SYSTEM_MOUNTS_H

#include <stdbool.h>

/*
 * The file systems that programs expect, mounted where they are missing. What is there already
 * stays as it is, whoever has mounted it; but for a /proc of another pid namespace, which is
 * covered. Nothing here fails: what cannot be mounted is logged, since a pid 1 that goes on can
 * still be asked what is wrong.
 */

/*
 * Should: mount /proc, /sys, /dev, /dev/pts, /dev/shm, /dev/mqueue, /run, /tmp (where nothing can
 * be written there) and the cgroup v2 hierarchy; give a standard stream that is closed /dev/console
 * or /dev/null. Where this is not the first pid namespace of the machine, /dev is a tmpfs with the
 * minimal devices, and all is done in a mount namespace of its own. Must not: let a mount reach the
 * mount namespace of whoever started a container; cover what has something mounted below it.
 */
void system_mounts_make(void);

/* Whether this is the first pid namespace: pid 1 of a machine, not of a container. By /proc. */
bool system_is_machine(void);

/* Where this process stands at the root of its cgroup namespace, which is not the machine's: moves
 * to a group of its own (SYSTEM_GROUP) in it, so that controllers can be handed on to workloads. */
void system_group_enter(void);

/* Whether files can be made in the directory, or where that is missing in the one above it. */
bool system_can_write(const char *path);

/* Unmounts what lies on disks, and makes read-only what is still in use. For a machine, when no
 * other process is left. */
void system_mounts_end(void);

#endif
