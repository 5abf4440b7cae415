/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_USAGE_H
#define NACRE_POD_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a cgroup has used, from its files. Every group tells its CPU time; the rest is there where
 * its controller is on for the group.
 */
struct usage {
	uint64_t cpu_total_us, cpu_user_us, cpu_system_us, cpu_throttled_us;
	bool has_memory, has_pids, has_io;
	uint64_t memory_current, memory_peak, memory_limit; /* limit 0: none */
	uint64_t memory_file, memory_anon, oom_kills;
	uint64_t pids_current, pids_limit;
	uint64_t read_bytes, written_bytes, reads, writes;
};

/* Reads the group `path` (relative) below cgroup_fd. -ENOENT where it is gone. May take a while
 * (the kernel sums up all that is below): not for the loop's thread. */
int usage_read(int cgroup_fd, const char *path, struct usage *ret);

/* The value of `key` in the text of a "flat keyed" file ("KEY VALUE" in each line); 0 where it is
 * missing. */
uint64_t usage_flat_value(const char *text, const char *key);
/* Adds up "KEY=VALUE" over the lines of a "nested keyed" file. */
uint64_t usage_nested_sum(const char *text, const char *key);

#endif
