/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_ROOT_H
#define NACRE_INIT_GUEST_ROOT_H

#include "base/log/error.h"

/* The file systems and cgroups of a guest. Nothing but pid 1 runs yet, and all names are its own.
 */

/* /dev, /proc and /sys of the initramfs, and a console on the descriptors that have none. */
int guest_root_begin(struct error *err);

/*
 * Should: make a tmpfs the root, with what is mounted below the first one; pivot_root() can leave
 * it, as containers do, but not the initramfs. Put on it what programs expect: /run, /tmp,
 * /dev/shm, /dev/pts, /sys/fs/cgroup. Must not: free the first root, where the program itself lies.
 */
int guest_root_enter(struct error *err);

/* What udev would add to /dev: fd, stdin, stdout and stderr. */
int guest_root_link_dev(struct error *err);

/* The groups of the layer and of the gate, with every controller of the kernel handed on. */
struct guest_groups {
	int layer_fd;
	int gate_fd;
};

int guest_groups_make(struct guest_groups *ret, struct error *err);

#endif
