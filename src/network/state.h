/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_STATE_H
#define NACRE_NETWORK_STATE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log/error.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "net/filter/filter.h"
#include "net/filter/forward.h"
#include "network/model.h"

/*
 * The inside of struct networks; private to this area. The members below `filter_lock` belong to
 * the threads of the pool: the filter's socket is one conversation, so it is held for one request.
 */

struct settling;

/* Work on the pool's threads that finds the kernel settled. */
struct network_job {
	struct pool_work work;
	struct list link; /* networks.jobs */
	struct networks *all;
	bool submitted; /* else it waits for a settling */
	/* It was not done, and is not any more: the pool is gone. */
	void (*drop)(struct network_job *job);
};

struct networks {
	struct networks_config config;
	struct list list;
	int claim_fd; /* -1: this daemon has no networks yet */
	uint32_t host_mtu;
	bool has_ipv6;
	bool begun;

	struct list jobs; /* that are not done */
	bool stopped;     /* no more is begun */
	bool was_used;    /* somebody was on a network when it stopped */
	unsigned n_running;
	bool settle_due, settling;
	struct settling *settlement; /* that goes on; NULL: none does */
	struct loop_timer settle_soon;
	struct loop_fd forward_watch, filter_watch;
	int forward_fd, filter_fd; /* of these; -1: nothing is watched */
	/* Why the last settling failed; code 0: it did not. Threads read it, while none goes on. */
	struct error unsettled;
	struct forward forward; /* as the last settling left it */

	pthread_mutex_t filter_lock;
	struct filter *filter;
};

/* Begins what may begin. */
void networks_turn(struct networks *all);

/* Runs job->work, or calls job->drop; the work's done() calls networks_job_done() first. */
void networks_submit(struct networks *all, struct network_job *job);
void networks_job_done(struct network_job *job);

#endif
