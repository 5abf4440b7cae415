/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/provider.h"
#include "instance/upgrade.h"

/* Where an event leads; an event that a state does not know leaves it as it is. One that was told
 * to stop is GONE when it is clean, one that ended by itself FAILED at once. */
static const enum instance_state edges[INSTANCE_STATE_COUNT][INSTANCE_EVENT_COUNT] = {
	[INSTANCE_SPAWNING] = {
		[INSTANCE_HELLO] = INSTANCE_READY,
		[INSTANCE_STOP] = INSTANCE_STOPPING,
		[INSTANCE_END] = INSTANCE_FAILED,
		[INSTANCE_CLEAN] = INSTANCE_SPAWNING,
		[INSTANCE_REMOVE] = INSTANCE_SPAWNING,
	},
	[INSTANCE_READY] = {
		[INSTANCE_HELLO] = INSTANCE_READY,
		[INSTANCE_STOP] = INSTANCE_STOPPING,
		[INSTANCE_END] = INSTANCE_FAILED,
		[INSTANCE_CLEAN] = INSTANCE_READY,
		[INSTANCE_REMOVE] = INSTANCE_READY,
	},
	[INSTANCE_STOPPING] = {
		[INSTANCE_HELLO] = INSTANCE_STOPPING,
		[INSTANCE_STOP] = INSTANCE_STOPPING,
		[INSTANCE_END] = INSTANCE_STOPPING,
		[INSTANCE_CLEAN] = INSTANCE_GONE,
		[INSTANCE_REMOVE] = INSTANCE_STOPPING,
	},
	[INSTANCE_GONE] = {
		[INSTANCE_HELLO] = INSTANCE_GONE,
		[INSTANCE_STOP] = INSTANCE_GONE,
		[INSTANCE_END] = INSTANCE_GONE,
		[INSTANCE_CLEAN] = INSTANCE_GONE,
		[INSTANCE_REMOVE] = INSTANCE_GONE,
	},
	[INSTANCE_FAILED] = {
		[INSTANCE_HELLO] = INSTANCE_FAILED,
		[INSTANCE_STOP] = INSTANCE_FAILED,
		[INSTANCE_END] = INSTANCE_FAILED,
		[INSTANCE_CLEAN] = INSTANCE_FAILED,
		[INSTANCE_REMOVE] = INSTANCE_GONE,
	},
};

struct instance_waiter {
	struct list link;
	bool until_ended;
	instance_done_fn done;
	void *userdata;
};

/* ---- the object ---- */

void instance_close(struct instance *i)
{
	struct instance *below;

	if (i->provider->ops->close)
		i->provider->ops->close(i);
	loop_child_done(&i->child);
	i->pidfd = fd_close(i->pidfd);
	i->report_fd = fd_close(i->report_fd);
	upgrade_forget(i);
	if (!i->peer)
		return;
	if (i->all->config.on_close)
		i->all->config.on_close(i->all->config.userdata, i);
	i->peer = i->peer->ops->free(i->peer);
	/* What was asked of it is not answered any more. */
	list_for_each (below, &i->all->list, struct instance, link) {
		if (below->parent != i)
			continue;
		below->n_asked = 0;
		loop_defer_schedule(&below->defer);
	}
}

static void instance_unmap(struct instance *i)
{
	if (map_get(&i->all->by_path, i->path) == i)
		(void)map_remove(&i->all->by_path, i->path);
	if (map_get(&i->all->by_id, i->id) == i)
		(void)map_remove(&i->all->by_id, i->id);
}

struct instance *instance_free(struct instance *i)
{
	struct instance_waiter *w;
	struct instance *below;

	if (!i)
		return NULL;
	instance_close(i);
	loop_timer_done(&i->timer);
	loop_defer_done(&i->defer);
	list_for_each (w, &i->waiters, struct instance_waiter, link) {
		list_remove(&w->link);
		free(w);
	}
	instance_unmap(i);
	list_remove(&i->link);
	list_for_each (below, &i->all->list, struct instance, link)
		if (below->parent == i)
			below->parent = NULL;
	i->dir_fd = fd_close(i->dir_fd);
	i->cgroup_fd = fd_close(i->cgroup_fd);
	free(i->settings);
	strv_free(i->limits);
	strv_free(i->sysctls);
	instance_drop_joins(i);
	free(i);
	return NULL;
}

/* ---- who waits ---- */

int instance_wait(struct instance *i, bool until_ended, instance_done_fn done, void *userdata)
{
	struct instance_waiter *w;

	if (!done)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	list_init(&w->link);
	w->until_ended = until_ended;
	w->done = done;
	w->userdata = userdata;
	list_add_tail(&i->waiters, &w->link);
	return 0;
}

static struct instance_waiter *instance_first_due(const struct instance *i)
{
	bool over = instance_has_ended(i) && i->clean_delay == 0;
	bool ready = i->state == INSTANCE_READY && !i->broken;
	struct instance_waiter *w;

	list_for_each (w, &i->waiters, struct instance_waiter, link)
		if (over || (!w->until_ended && ready))
			return w;
	return NULL;
}

static int instance_outcome(const struct instance *i, struct error *err)
{
	if (i->state == INSTANCE_FAILED) {
		(void)error_refuse(err, ERROR_UNAVAILABLE, "instance %s: %s", i->path, i->reason);
		return instance_blame(i, err);
	}
	if (i->state == INSTANCE_GONE)
		return error_refuse(err, ERROR_ABORTED, "instance %s was stopped while it started",
				    i->path);
	return 0;
}

/* From the front each time: one that is told may take others back, or remove the instance. */
void instance_tell(struct instance *i)
{
	for (;;) {
		struct instance_waiter *w = instance_first_due(i);
		struct error err = ERROR_INIT;
		int r;

		if (!w)
			return;
		list_remove(&w->link);
		r = w->until_ended ? 0 : instance_outcome(i, &err);
		w->done(w->userdata, i, r < 0 ? &err : NULL);
		free(w);
	}
}

void instance_forget_waiter(struct instance *i, const void *userdata)
{
	struct instance_waiter *w;

	list_for_each (w, &i->waiters, struct instance_waiter, link) {
		if (w->userdata != userdata)
			continue;
		list_remove(&w->link);
		free(w);
	}
}

void instance_tell_end(struct instance *i)
{
	for (;;) {
		struct instance_waiter *w = list_first(&i->waiters, struct instance_waiter, link);
		struct error err = ERROR_INIT;

		if (!w)
			return;
		list_remove(&w->link);
		(void)error_refuse(&err, ERROR_UNAVAILABLE, "the daemon ends");
		w->done(w->userdata, i, &err);
		free(w);
	}
}

/* ---- the state ---- */

static void instance_enter(struct instance *i, enum instance_state state)
{
	struct error err = ERROR_INIT;

	i->state = state;
	if (instance_has_ended(i)) {
		instance_close(i);
		i->pid = 0;
	}
	if (state == INSTANCE_GONE) {
		instance_unmap(i);
		FAILPOINT_BEFORE("instance.forget");
		i->all->config.forget(i->all->config.userdata, i);
		FAILPOINT_AFTER("instance.forget");
	} else if (i->all->config.save(i->all->config.userdata, i, &err) < 0) {
		log_error("cannot record an instance", LOG_STR("instance", i->path), LOG_ERR(&err));
	}
	i->all->config.on_state(i->all->config.userdata, i);
	/* Waiters are told, and what is GONE is freed, after the current callback. */
	loop_defer_schedule(&i->defer);
}

void instance_event(struct instance *i, enum instance_event event)
{
	enum instance_state next = edges[i->state][event];

	if (next != i->state)
		instance_enter(i, next);
}
