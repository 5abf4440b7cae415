/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_MAPS_H
#define NACRE_ISOLATE_MAPS_H

#include <stdbool.h>
#include <sys/types.h>

#include "isolate/plan/plan.h"

/* The ids of a new user namespace; private to this area. */
struct maps {
	const struct isolate_id_map *uid, *gid;
	size_t n_uid, n_gid;
	bool deny_setgroups;
};

/* Maps them for a child of this process that was just cloned, and reads them back. proc_fd: a
 * private /proc in which pid has that number. ERROR_PRECONDITION where this process lacks the
 * privilege, ERROR_INVALID for ranges that overlap or are too many for one write. */
int maps_write(int proc_fd, pid_t pid, const struct maps *maps, struct error *err);

/* The uid outside that a uid of the user namespace of a process is mapped to, as this process sees
 * it. -ENOENT where it is not mapped. */
int maps_look(int proc_fd, pid_t pid, uint32_t uid, uint32_t *ret);
/* The id outside that an id inside is mapped to; it must be mapped. */
uint32_t maps_outside(const struct isolate_id_map *map, size_t n, uint32_t inside);

#endif
