/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/waiter.h"

#include <errno.h>
#include <stdlib.h>

#include "pod/workload/health.h"

struct waiter {
	struct list link;
	enum waiter_kind kind;
	struct pod_container *container;
	workload_fn done;
	void *userdata;
};

int waiter_add(struct workload *w, enum waiter_kind kind, struct pod_container *container,
	       workload_fn done, void *userdata)
{
	struct waiter *waiter;

	if (!done)
		return 0;
	waiter = calloc(1, sizeof(*waiter));
	if (!waiter)
		return -ENOMEM;
	list_init(&waiter->link);
	waiter->kind = kind;
	waiter->container = container;
	waiter->done = done;
	waiter->userdata = userdata;
	list_add_tail(&w->waiters, &waiter->link);
	return 0;
}

static bool waiter_has_ended(const struct workload *w, const struct pod_container *c)
{
	return c ? pod_container_has_ended(c)
		 : workload_has_ended(w) && w->state != WORKLOAD_CREATED;
}

static bool waiter_is_due(const struct workload *w, const struct waiter *waiter)
{
	const struct pod_container *c = waiter->container;

	switch (waiter->kind) {
	case WAITER_CREATED:
		return c->phase != POD_CONTAINER_ROOT && c->phase != POD_CONTAINER_FILES;
	case WAITER_STARTED:
		if (c)
			return !pod_container_is_created(c) && !c->starting && !c->restarting;
		/* Who hears that nothing came of it finds its name free. */
		if ((w->refused && !w->stays) || w->dropped)
			return false;
		return w->state != WORKLOAD_STARTING && w->state != WORKLOAD_STOPPING;
	case WAITER_HEALTHY:
	case WAITER_UNHEALTHY:
		return waiter_has_ended(w, c) ||
		       health_compare(w, c,
				      waiter->kind == WAITER_HEALTHY ? HEALTH_HEALTHY
								     : HEALTH_UNHEALTHY) != 0;
	case WAITER_ENDED:
		return waiter_has_ended(w, c);
	case WAITER_IDLE:
		return workload_has_ended(w);
	case WAITER_DOWN:
	case WAITER_REMOVED:
		return false;
	}
	return false;
}

static struct waiter *waiter_first_due(const struct workload *w)
{
	struct waiter *waiter;

	list_for_each (waiter, &w->waiters, struct waiter, link)
		if (waiter_is_due(w, waiter))
			return waiter;
	return NULL;
}

/* From the front each time: a waiter that is told may take others back. */
void waiter_tell_due(struct workload *w)
{
	struct waiter *waiter;

	for (;;) {
		waiter = waiter_first_due(w);
		if (!waiter)
			return;
		list_remove(&waiter->link);
		waiter->done(waiter->userdata, w, NULL);
		free(waiter);
	}
}

void waiter_tell_down(struct workload *w)
{
	struct waiter *waiter;

	for (;;) {
		bool found = false;

		list_for_each (waiter, &w->waiters, struct waiter, link) {
			found = waiter->kind == WAITER_DOWN;
			if (found)
				break;
		}
		if (!found)
			return;
		list_remove(&waiter->link);
		waiter->done(waiter->userdata, w, NULL);
		free(waiter);
	}
}

static struct waiter *waiter_of_container(const struct workload *w, const struct pod_container *c)
{
	struct waiter *waiter;

	list_for_each (waiter, &w->waiters, struct waiter, link)
		if (waiter->container == c)
			return waiter;
	return NULL;
}

void waiter_forget_container(struct workload *w, const struct pod_container *c)
{
	struct waiter *waiter;

	for (waiter = waiter_of_container(w, c); waiter; waiter = waiter_of_container(w, c)) {
		list_remove(&waiter->link);
		free(waiter);
	}
}

void waiter_tell_container(struct workload *w, const struct pod_container *c,
			   const struct error *err)
{
	struct waiter *waiter;

	for (waiter = waiter_of_container(w, c); waiter; waiter = waiter_of_container(w, c)) {
		list_remove(&waiter->link);
		waiter->done(waiter->userdata, w, err);
		free(waiter);
	}
}

/* One that is told may take others back, or add some. err NULL: that nothing is left. */
static void waiter_tell_all(struct workload *w, struct workload *told, const struct error *err)
{
	for (;;) {
		struct waiter *waiter = list_first(&w->waiters, struct waiter, link);
		const struct error *why = err;

		if (!waiter)
			return;
		if (!why && waiter->kind == WAITER_STARTED)
			why = w->refused;
		list_remove(&waiter->link);
		waiter->done(waiter->userdata, told, why);
		free(waiter);
	}
}

void waiter_tell_removed(struct workload *w)
{
	waiter_tell_all(w, NULL, NULL);
}

void waiter_tell_end(struct workload *w)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the daemon ends");
	waiter_tell_all(w, w, &err);
}

void waiter_forget(struct workload *w, const void *userdata)
{
	struct waiter *waiter;

	list_for_each (waiter, &w->waiters, struct waiter, link) {
		if (userdata && waiter->userdata != userdata)
			continue;
		list_remove(&waiter->link);
		free(waiter);
	}
}
