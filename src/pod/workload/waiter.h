/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_WAITER_H
#define NACRE_POD_WAITER_H

#include "pod/workload/model.h"

/*
 * Waiters for an event of a workload. A waiter is told once, and never from within waiter_add().
 */
enum waiter_kind {
	WAITER_CREATED,   /* the files of the one container are there, or cannot be made */
	WAITER_STARTED,   /* it, or the one container, runs, or never will; one that was refused is
			   * gone by then */
	WAITER_HEALTHY,   /* all that is probed of it is healthy, or never will be */
	WAITER_UNHEALTHY, /* one container is unhealthy, likewise */
	WAITER_ENDED,     /* it, or the one container, has ended */
	WAITER_IDLE,      /* it has ended, or was not started yet */
	WAITER_DOWN,      /* it has, and nothing of it is in a keeper or on a network */
	WAITER_REMOVED,   /* nothing of it, or of the one container, is left */
};

/* 0 or -ENOMEM. done NULL: nobody waits. */
int waiter_add(struct workload *w, enum waiter_kind kind, struct pod_container *container,
	       workload_fn done, void *userdata);
/* Tells those whose time has come. */
void waiter_tell_due(struct workload *w);
/* Tells those who wait for that: nothing of it is in a keeper or on a network. */
void waiter_tell_down(struct workload *w);
/* Tells all those of one container: it is gone, with err or because it was removed. */
void waiter_tell_container(struct workload *w, const struct pod_container *c,
			   const struct error *err);
/* Tells all of them: nothing of it is left but its memory, which is freed behind this. */
void waiter_tell_removed(struct workload *w);
/* Tells all of them that the daemon ends. */
void waiter_tell_end(struct workload *w);
/* Takes those of one container back. */
void waiter_forget_container(struct workload *w, const struct pod_container *c);
/* Takes the waiters of this userdata back; NULL: all. */
void waiter_forget(struct workload *w, const void *userdata);

#endif
