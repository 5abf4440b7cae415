/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_METRICS_H
#define NACRE_RUNTIME_METRICS_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * Scrapes of the node's metrics. The loop writes down what it knows and asks keepers of other
 * kernels, for METRICS_KEEPERS_PATIENCE; a thread of its own then reads cgroups, links and /proc,
 * which are no disk, makes the page (runtime/node/metrics_page.h) and writes it. One at a time.
 */

struct image_store;
struct loop;
struct metrics;
struct pool;
struct rpc_server;
struct workload_service;

struct metrics_config {
	struct loop *loop;
	struct pool *pool; /* whose load is exported */
	struct workload_service *work;
	struct image_store *images;
	struct rpc_server *server; /* that measures */
	int root_fd, run_fd;       /* the node's directories, with the databases */
};

#define METRICS_KEEPERS_PATIENCE (2 * NSEC_PER_SEC)
/* For whoever takes the page. */
#define METRICS_WRITE_PATIENCE (5 * NSEC_PER_SEC)
/* Scrapes whose keepers have not answered yet: with more, none is asked. */
#define METRICS_LATE_MAX 4

/* The objects that config points to must live until metrics_stop(). 0 or a negative errno. */
int metrics_new(struct metrics **ret, const struct metrics_config *config);
/* No scrape is at work any more. NULL is fine. */
void metrics_stop(struct metrics *m);
/* Behind instances_free(). */
struct metrics *metrics_free(struct metrics *m);

/* Takes fd over, a stream socket. A page without its last line (EXPOSITION_END) is incomplete and
 * must not be used. */
void metrics_scrape(struct metrics *m, int fd);

#endif
