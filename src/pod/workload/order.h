/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_ORDER_H
#define NACRE_POD_ORDER_H

#include "pod/workload/model.h"

/*
 * The order in which the containers of a workload start: its init containers one after the other,
 * each when the one before has ended with 0, or as a sidecar runs (and is healthy, where it has a
 * check), then all others that require nothing together, and each other one when what it requires
 * has come so far. One that waits is POD_CONTAINER_CREATED. And the order in which they end:
 * sidecars behind the others, one after the other from the last to the first.
 * Private to this area, but for the last.
 */

enum order_step {
	ORDER_DONE,   /* none waits */
	ORDER_WAIT,   /* the requirements of those that wait are not met yet */
	ORDER_NEXT,   /* some are to be started */
	ORDER_BROKEN, /* they never will be met: those that wait never are started */
};

/* All of them wait, where one is an init container or requires another; before any is started. */
void order_hold(struct workload *w);
/* *ret: the container for which it is broken. */
enum order_step order_look(const struct workload *w, const struct pod_container **ret);
/* Whether it is to be started now, behind order_hold() or for ORDER_NEXT; first: order_first(). */
bool order_is_next(const struct pod_container *c, const struct pod_container *first);
/* The init container that is next; NULL: none is left. */
const struct pod_container *order_first(const struct workload *w);
/* All but its sidecars have ended, and none of them is started again. */
bool order_is_over(const struct workload *w);
/* Behind that: asks the next sidecar to end, with a time for it. */
void order_end_sidecars(struct workload *w);
/* Those that still wait have ended: they are not started any more. */
void order_skip(struct workload *w, const char *reason);

/* Whether containers that require this of each other can all start: no circle. */
bool order_is_possible(const struct pod_requires *list, size_t n);

#endif
