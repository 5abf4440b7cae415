/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_LEAF_H
#define NACRE_CELL_LEAF_H

#include <stdbool.h>

#include "base/log/error.h"

/* The cgroup of one container, and what it has from the start. */

/* Processes and threads of a container, where the host limits them. */
#define LEAF_PIDS_MAX 4096

/* The program of devices for all walled ones, loaded once, before anybody waits for one; -1 where
 * the kernel takes none, which is told. */
int leaf_load_devices(void);

/* Makes (or finds) it and opens it. walled: with the limits that every container of an image has,
 * as far as the host has their controllers: LEAF_PIDS_MAX, and all of its processes go when one is
 * killed for want of memory. devices_fd: a program of devices_load(), or -1. limits:
 * isolate/cgroup/limits_words.h, or NULL; what the host cannot enforce is refused. A failure leaves
 * no group. */
int leaf_make(int cell_fd, const char *name, bool walled, int devices_fd, char *const *limits,
	      struct error *err);

struct container_fds;
struct container_spec;

/* Its devices beside those of every container: those of mounts with `access`, or all. Not where no
 * program of devices could be loaded: there capabilities and the mounts decide alone. */
int leaf_allow_devices(int fd, const struct container_spec *spec, const struct container_fds *fds,
		       struct error *err);

/* Whether the kernel has killed a process of it for want of memory. True as soon as the end of that
 * process can be seen. */
bool leaf_is_out_of_memory(int leaf_fd);

#endif
