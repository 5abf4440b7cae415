/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/order.h"

#include "base/time/clock.h"
#include "pod/restart/container_restart.h"
#include "pod/workload/container.h"
#include "pod/workload/member.h"
#include "pod/workload/pause.h"

/* A sidecar that nobody needs any more is killed then. */
#define ORDER_SIDECAR_TIME (10 * NSEC_PER_SEC)

static uint64_t order_mask(const struct pod_requires *r)
{
	return r->started | r->healthy | r->completed;
}

bool order_is_possible(const struct pod_requires *list, size_t n)
{
	uint64_t all = n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX, done = 0, before;

	do {
		before = done;
		for (size_t i = 0; i < n; i++)
			if ((order_mask(&list[i]) & ~done) == 0)
				done |= UINT64_C(1) << i;
	} while (done != before);
	return done == all;
}

void order_hold(struct workload *w)
{
	bool ordered = false;

	for (size_t i = 0; i < w->n_containers; i++)
		ordered = ordered || w->containers[i]->is_init ||
			  order_mask(&w->containers[i]->requires);
	for (size_t i = 0; i < w->n_containers && ordered; i++)
		w->containers[i]->phase = POD_CONTAINER_CREATED;
}

/* ---- requirements ---- */

enum order_met { ORDER_NOT_YET, ORDER_MET, ORDER_NEVER };

static enum order_met order_met_healthy(const struct pod_container *c)
{
	if (pod_container_has_ended(c) || c->health_status == HEALTH_UNHEALTHY)
		return ORDER_NEVER;
	if (c->status.state == CONTAINER_RUNNING && c->health_status == HEALTH_NONE)
		return ORDER_NEVER;
	return c->health_status == HEALTH_HEALTHY ? ORDER_MET : ORDER_NOT_YET;
}

/* One of those that `of` requires. */
static enum order_met order_met_one(const struct pod_requires *of, size_t i,
				    const struct pod_container *c)
{
	uint64_t bit = UINT64_C(1) << i;

	if (pod_container_is_created(c))
		return ORDER_NOT_YET;
	if (of->completed & bit && !pod_container_has_ended(c))
		return ORDER_NOT_YET;
	if (of->completed & bit && c->status.exit_code != 0)
		return ORDER_NEVER;
	if (of->healthy & bit)
		return order_met_healthy(c);
	return c->status.state == CONTAINER_STARTING ? ORDER_NOT_YET : ORDER_MET;
}

/* *ret: the one that never will. */
static enum order_met order_met(const struct pod_container *of, const struct pod_container **ret)
{
	const struct workload *w = of->workload;
	enum order_met all = ORDER_MET;

	for (size_t i = 0; i < w->n_containers; i++) {
		enum order_met one;

		if (!(order_mask(&of->requires) & UINT64_C(1) << i))
			continue;
		one = order_met_one(&of->requires, i, w->containers[i]);
		if (one == ORDER_NEVER)
			*ret = w->containers[i];
		if (one == ORDER_NEVER)
			return one;
		if (one == ORDER_NOT_YET)
			all = one;
	}
	return all;
}

/* Of those that are no init containers. */
static enum order_step order_look_rest(const struct workload *w, const struct pod_container **ret)
{
	enum order_step step = ORDER_WAIT;

	for (size_t i = 0; i < w->n_containers; i++) {
		enum order_met met;

		if (!pod_container_is_created(w->containers[i]))
			continue;
		met = order_met(w->containers[i], ret);
		if (met == ORDER_NEVER)
			return ORDER_BROKEN;
		if (met == ORDER_MET)
			step = ORDER_NEXT;
	}
	return step;
}

/* ---- all of them ---- */

/* Whether those behind it may begin. One that has ended is started again (its policy). */
static enum order_step order_look_sidecar(const struct pod_container *c)
{
	if (c->health_status == HEALTH_UNHEALTHY)
		return ORDER_BROKEN;
	if (c->status.state != CONTAINER_RUNNING)
		return ORDER_WAIT;
	return c->health_status == HEALTH_STARTING ? ORDER_WAIT : ORDER_NEXT;
}

enum order_step order_look(const struct workload *w, const struct pod_container **ret)
{
	const struct pod_container *last = NULL;
	bool waits = false;

	for (size_t i = 0; i < w->n_containers; i++) {
		const struct pod_container *c = w->containers[i];

		if (pod_container_is_created(c))
			waits = true;
		else if (c->is_init)
			last = c;
	}
	*ret = last;
	if (!waits)
		return ORDER_DONE;
	if (last && pod_container_is_sidecar(last)) {
		enum order_step step = order_look_sidecar(last);

		if (step != ORDER_NEXT)
			return step;
	} else if (last && !pod_container_has_ended(last)) {
		return ORDER_WAIT;
	} else if (last && last->status.exit_code != 0) {
		return ORDER_BROKEN;
	}
	return order_first(w) ? ORDER_NEXT : order_look_rest(w, ret);
}

const struct pod_container *order_first(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->is_init && pod_container_is_created(w->containers[i]))
			return w->containers[i];
	return NULL;
}

bool order_is_next(const struct pod_container *c, const struct pod_container *first)
{
	const struct pod_container *never;

	if (first || c->is_init)
		return c == first;
	return order_met(c, &never) == ORDER_MET;
}

bool order_is_over(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (!pod_container_is_sidecar(w->containers[i]) && !w->containers[i]->is_debug &&
		    !container_is_over(w->containers[i]))
			return false;
	return true;
}

/* The last one first; the one in front of it when it has ended. */
void order_end_sidecars(struct workload *w)
{
	struct pod_container *next = NULL;

	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];

		if (!pod_container_is_sidecar(c))
			continue;
		c->ending = true;
		container_restart_cancel(c);
		if (!pod_container_has_ended(c))
			next = c;
	}
	if (!next || next->stop_by || next->starting)
		return;
	if (next->paused)
		pause_let_go(next);
	pod_container_end(next, false);
	member_end_by(next, MAX(clock_mono() + ORDER_SIDECAR_TIME, w->stop_by));
}

void order_skip(struct workload *w, const char *reason)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (pod_container_is_created(w->containers[i]))
			pod_container_skip(w->containers[i], reason);
}
