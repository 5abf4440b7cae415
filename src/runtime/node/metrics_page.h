/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_METRICS_PAGE_H
#define NACRE_RUNTIME_METRICS_PAGE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"
#include "loop/pool.h"
#include "net/netlink/link.h"
#include "rpc/server/measure.h"
#include "rpc/server/server.h"
#include "runtime/workload/stats_look.h"

/*
 * The page of metrics of a node: what the loop has written down and a thread has read, as families
 * of Prometheus. A value that this host does not count is absent, and never told as 0. Pure.
 */

/* Attachments of one workload that are told. */
#define METRICS_LINKS_MAX 8

/* The node's end of a link, and the pod's. */
struct metrics_link {
	uint32_t index;
	char device[IF_NAMESIZE]; /* of the pod */
	bool is_there;
	struct link_counters counters; /* as the node's end counts */
};

/* An instance, a workload or a container. */
struct metrics_row {
	const char *id, *name, *kind, *state, *health; /* health "": it is not probed */
	const char *workload; /* the path of that of a container; NULL: it is none */
	uint64_t created_at, started_at, finished_at; /* nanoseconds; 0: unknown */
	uint64_t restarts, log_lost;
	bool has_restarts, has_ended, was_out_of_memory;
	int exit_code;
	const struct stats_entry *entry; /* NULL: it uses nothing */
	struct metrics_link links[METRICS_LINKS_MAX];
	size_t n_links;
};

struct metrics_size {
	const char *name;
	uint64_t bytes;
	bool is_there;
};

struct metrics_disk {
	const char *directory;
	uint64_t bytes, free;
	bool is_there;
};

#define METRICS_SIZES 4
#define METRICS_DISKS 2

struct metrics_snapshot {
	struct metrics_row *rows;
	size_t n_rows;
	struct rpc_measure *measures;
	size_t n_measures;
	struct rpc_server_load load;
	struct pool_load pool;
	uint64_t n_images, image_bytes, events;
	struct metrics_size sizes[METRICS_SIZES];
	struct metrics_disk disks[METRICS_DISKS];
	/* Of this process. */
	uint64_t started_at; /* nanoseconds */
	uint64_t cpu_us;
	uint64_t resident, virtual, descriptors, descriptors_max; /* 0: unknown */
};

/* Adds the page to b: 0, -ENOMEM, or -ENOBUFS past the limit of b. */
int metrics_page(const struct metrics_snapshot *s, struct buf *b);

#endif
