/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_FOOTPRINT_H
#define NACRE_ISOLATE_FOOTPRINT_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The memory of this machine that a process uses, with the RAM of a guest told apart from the rest:
 * by the mappings of /proc/PID/smaps, where each process of a shared page is charged with its part
 * (Pss).
 */
struct footprint {
	uint64_t ram, other; /* bytes */
};

/* ram: size of the guest's RAM, 0: there is none. The smallest mapping that holds so much is taken
 * for it. Pure; adds to *ret. */
void footprint_parse(const char *smaps, uint64_t ram, struct footprint *ret);

/* Of all processes of a group, path relative to cgroup_fd, but not of those below it. 0; -ENOENT
 * for no such group; or why nothing can be read. Not for a loop's thread. */
int footprint_of_group(int cgroup_fd, const char *path, uint64_t ram, struct footprint *ret);

#endif
