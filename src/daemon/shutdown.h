/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_SHUTDOWN_H
#define NACRE_DAEMON_SHUTDOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/time/clock.h"
#include "loop/loop.h"

struct workload;
struct workloads;

/*
 * The end of the host (SIGPWR): all workloads are stopped, the one that was made last first, each
 * when those behind it have ended, within a limit for all of them. When half of it has passed all
 * that still run are asked to end together, and at its end they are killed.
 *
 * Nobody has stopped them: a policy of always or unless-stopped starts them again with the next
 * boot (pod/restart/reboot.h), and no policy does before that.
 */
struct shutdown {
	struct workloads *workloads;
	bool begun, hurried;
	nsec_t ordered_until, until; /* clock_mono() */
	size_t n_asked;              /* that have not ended yet */
	struct loop_defer step;
	struct loop_timer half;
	void (*done)(void *userdata);
	void *userdata;
};

/* done is called once, when no workload runs any more. */
void shutdown_begin(struct shutdown *s, struct loop *l, struct workloads *workloads, nsec_t limit,
		    void (*done)(void *userdata), void *userdata);
/* Kills what still runs. */
void shutdown_hurry(struct shutdown *s);
/* Also where it was not begun. To be called before the workloads are freed. */
void shutdown_end(struct shutdown *s);

#endif
