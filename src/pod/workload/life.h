/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_LIFE_H
#define NACRE_POD_LIFE_H

#include "pod/workload/workloads.h"

/*
 * How a workload goes from state to state; private to this area. Everything here only records and
 * asks; what follows is done by the workload's `defer`.
 */

struct etc;
struct hosted_ops;
struct peer;

enum workload_event {
	WORKLOAD_UP,     /* every container was started */
	WORKLOAD_STOP,   /* somebody wants it to end */
	WORKLOAD_ENDED,  /* every container has ended */
	WORKLOAD_BROKEN, /* could not start, or its keeper is gone */
	WORKLOAD_REMOVE,
	WORKLOAD_MADE,  /* its files are there, and more was not asked for */
	WORKLOAD_START, /* it is started, or started again */
	WORKLOAD_EVENT_COUNT
};

/* Makes it known and arms its sources. ERROR_EXISTS: the path is taken. A failure half-way is
 * undone by workload_unregister(). */
int workload_register(struct workloads *all, struct workload *w, struct error *err);
/* Frees it; waiters are not told. */
void workload_unregister(struct workload *w);

/* The only writer of the state. */
void workload_event(struct workload *w, enum workload_event event);
/* Tells every container that has not ended to do so: with the signal that its image wants, or, for
 * good, with SIGKILL. One whose start is not answered yet is told then. */
void workload_ask_to_end(struct workload *w);
void workload_kill(struct workload *w);
/* It was asked to end, and is killed at that time (clock_mono()), also by a daemon that takes it
 * over. */
void workload_end_by(struct workload *w, nsec_t stop_by);
/* All that has not ended yet never will, or is not waited for: its keeper is gone, or was not
 * asked. */
void workload_lose(struct workload *w, const char *reason);
/* The same, before it has come to run: its waiters are told this error. */
void workload_fail(struct workload *w, const struct error *err);
/* The answer to the start of a container: a status, or view NULL and why there is none. */
void workload_take_answer(struct pod_container *c, const struct container_view *view,
			  const char *reason);
/* Asks its keeper to start a container. */
void workload_start_container(struct pod_container *c, const struct etc *etc);
/* For hosted_start() and hosted_adopt(). */
extern const struct hosted_ops workload_hosted_ops;
/* For instance_create(). */
void workload_on_instance_ready(void *userdata, struct instance *i, const struct error *err);
/* It is taken down because its keeper is gone. */
void workload_taken_down(struct workload *w);

#endif
