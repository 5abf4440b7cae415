/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_LIMITS_H
#define NACRE_ISOLATE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * The limits of a cgroup, in the terms of cgroup v2: every value is as the kernel's file of that
 * name takes it. A struct of zeroes limits nothing. Everything pointed to belongs to the caller.
 *
 * The rule of the house: what the host cannot enforce is refused, by the name of the file and the
 * controller that is missing. "No limit" (LIMIT_MAX) needs nobody to enforce it: it is passed over
 * where the file is missing.
 */

#define LIMIT_MAX UINT64_MAX /* the word "max" */

struct limit {
	bool set;
	uint64_t value;
};

#define LIMIT(v) ((struct limit){ .set = true, .value = (v) })

#define LIMITS_IO_MAX 128     /* devices */
#define LIMITS_HUGETLB_MAX 16 /* sizes */
#define LIMITS_RDMA_MAX 64    /* devices */
#define LIMITS_MISC_MAX 64
#define LIMITS_UNIFIED_MAX 128
#define LIMITS_TEXT_MAX 4096 /* longest value of a list or of `unified` */

/* Of one block device. */
struct limit_io {
	uint32_t major, minor;
	struct limit rbps, wbps, riops, wiops; /* io.max; not 0 */
	struct limit weight;                   /* as blkio_weight */
};

struct limit_hugetlb {
	const char *size; /* as in the name of the file: "2MB" */
	uint64_t max;     /* bytes */
};

struct limit_rdma {
	const char *device;
	struct limit handles, objects; /* hca_handle, hca_object */
};

struct limit_misc {
	const char *name;
	uint64_t max;
};

/* A file of the group by its name, and what is written to it: a line at a time. */
struct limit_file {
	const char *file;
	const char *value;
};

struct isolate_limits {
	/* Bytes. memory_check: refuse a memory_max below what the group uses already. */
	struct limit memory_max, memory_high, memory_low, memory_min, memory_swap_max;
	struct limit memory_oom_group; /* 0, 1 */
	bool memory_check;

	struct limit cpu_weight; /* 1 to 10000 */
	struct limit cpu_idle;   /* 0, 1; with 1 the kernel takes no weight */
	struct limit cpu_quota;  /* us in each period, from 1000 */
	struct limit cpu_period; /* us, 1000 to 1000000 */
	struct limit cpu_burst;  /* us, at most the quota */

	/* Lists as "0-3,7"; NULL: not set. All of it must be there, or the limit is refused. */
	const char *cpuset_cpus, *cpuset_mems;

	struct limit pids_max;

	/* 1 to 1000, where 100 is everybody's: written to io.bfq.weight where that is, else to
	 * io.weight by limits_io_weight(). */
	struct limit blkio_weight;
	const struct limit_io *io;
	size_t n_io;
	const struct limit_hugetlb *hugetlb;
	size_t n_hugetlb;
	const struct limit_rdma *rdma;
	size_t n_rdma;
	const struct limit_misc *misc;
	size_t n_misc;
	/* Written last, in this order. Names begin with their controller ("memory.high"); of those
	 * with "cgroup." only cgroup.max.depth and cgroup.max.descendants. */
	const struct limit_file *unified;
	size_t n_unified;
};

/* Whether the values can be: ranges, counts, forms. Pure. ERROR_INVALID; the field of the error is
 * the name of the file. */
int limits_check(const struct isolate_limits *limits, struct error *err);

/* The controllers (bits by enum cgroup_controller) that the group needs for them, to be enabled
 * above it. */
unsigned limits_controllers(const struct isolate_limits *limits);

/*
 * Writes them to the group's files. ERROR_INVALID as limits_check(); ERROR_PRECONDITION for what
 * this host cannot enforce, before anything is written, and for what the kernel refuses; the field
 * of both is the name of the file. After any failure the files hold again what they did before.
 * memory.max is the last of the group's own files, since a lower one may kill.
 */
int limits_apply(int cgroup_fd, const struct isolate_limits *limits, struct error *err);

/* cpu.shares (2 to 262144, others are brought there) as cpu.weight: as the field does it since
 * 2025, with 1024 shares at the default weight of 100. */
uint64_t limits_cpu_weight(uint64_t shares);
/* blkio.weight (10 to 1000) as io.weight (1 to 10000). */
uint64_t limits_io_weight(uint64_t blkio_weight);
/* memory and swap together, as the OCI has them (-1: no limit, 0: not said), as memory.swap.max.
 * ERROR_INVALID where the sum is below its part, or has no part. */
int limits_swap_max(struct limit *ret, int64_t memory, int64_t memory_and_swap, struct error *err);

#endif
