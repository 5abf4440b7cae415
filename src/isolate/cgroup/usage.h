/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_USAGE_H
#define NACRE_ISOLATE_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The usage of a cgroup, from its files. Every group tells its CPU time; the rest is there where
 * its controller is on for the group. Reading may take a while (the kernel sums up all that is
 * below): not for a loop's thread.
 */
struct usage {
	uint64_t cpu_total_us, cpu_user_us, cpu_system_us, cpu_throttled_us;
	uint64_t cpu_periods, cpu_periods_throttled; /* 0 without the cpu controller */
	bool has_memory, has_swap, has_pids, has_io;
	uint64_t memory_current, memory_peak, memory_limit; /* limit 0: none */
	uint64_t memory_file, memory_anon, memory_kernel, memory_inactive_file;
	uint64_t oom_kills;
	uint64_t memory_max_hits; /* how often memory.max was reached */
	uint64_t swap_current, swap_limit;
	uint64_t pids_current, pids_limit;
	uint64_t read_bytes, written_bytes, reads, writes;
};

/* Reads the group `path` (relative) below cgroup_fd. -ENOENT where it is gone; an error too where
 * memory or a descriptor was missing for a part: what is not there is never told as 0. */
int usage_read(int cgroup_fd, const char *path, struct usage *ret);

/* Of one block device; those past USAGE_DEVICES_MAX are left out. */
struct usage_device {
	uint32_t major, minor;
	uint64_t read_bytes, written_bytes, reads, writes, discarded_bytes, discards;
};

struct usage_hugetlb {
	char size[16];                     /* "2MB" */
	uint64_t current, limit, failures; /* limit 0: none */
};

/* Pressure: how much of the time some process, or all of them, waited. Hundredths of a percent. */
struct usage_stall {
	uint32_t avg10, avg60, avg300;
	uint64_t total_us;
};

struct usage_pressure {
	bool there;
	struct usage_stall some, full;
};

#define USAGE_DEVICES_MAX 64
#define USAGE_HUGETLB_MAX 8

/* Statistics that are asked for less often. */
struct usage_details {
	struct usage_device devices[USAGE_DEVICES_MAX];
	size_t n_devices;
	struct usage_hugetlb hugetlb[USAGE_HUGETLB_MAX];
	size_t n_hugetlb;
	struct usage_pressure cpu, memory, io;
	/* Of struct usage.has_memory. */
	uint64_t memory_mapped, memory_active_anon, memory_inactive_anon, memory_anon_huge;
	uint64_t page_faults, major_page_faults;
};

/* As usage_read(). */
int usage_read_details(int cgroup_fd, const char *path, struct usage_details *ret);

#endif
