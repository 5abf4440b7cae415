/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/end.h"

#include <errno.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/nested.h"
#include "instance/place.h"
#include "instance/provider.h"
#include "isolate/cgroup/cgroup.h"

/*
 * Theory of operation. The end of an instance of depth one is the end of its process (pidfd); of a
 * deeper one, the word of the keeper above. What a peer tells is noted and handled by the
 * instance's `defer`, so that no peer is freed from within its own callback. An instance that
 * cannot be used is made to end first, and ends like any other then, so that no process is left
 * that nobody reaps.
 *
 * When an instance has ended, its cgroup is killed and removed, which the kernel may refuse for an
 * instant while the last process dies: that is tried again by the timer. The timer has one meaning
 * at a time: it waits for hello (SPAWNING), for the end of a keeper whose connection was lost
 * (READY), of one that was told to end (STOPPING) or is broken, or for the cgroup (`clean_delay`).
 */

#define INSTANCE_CLEAN_FIRST (1 * NSEC_PER_MSEC)
#define INSTANCE_CLEAN_LAST (2 * NSEC_PER_SEC)

/* ---- cleaning up ---- */

static void instance_clean_try(struct instance *i, nsec_t delay)
{
	int r, dir_r = 0;

	FAILPOINT_BEFORE("instance.clean");
	/* It may not have been possible to open it before. */
	if (i->cgroup_fd < 0 && i->cgroup[0] && instance_is_own(i))
		(void)place_open_cgroup(i, NULL);
	if (i->cgroup_fd >= 0)
		(void)cgroup_kill(i->cgroup_fd);
	r = place_remove_group(i);
	if (r != -EBUSY)
		dir_r = place_remove_dir(i);
	if ((r < 0 || dir_r < 0) && delay <= INSTANCE_CLEAN_LAST) {
		i->clean_delay = delay;
		loop_timer_set(&i->timer, delay);
		return;
	}
	if (r < 0)
		log_warn("cannot remove the cgroup of an instance", LOG_STR("instance", i->path),
			 LOG_STR("err", strerror(-r)));
	i->cgroup_fd = fd_close(i->cgroup_fd);
	if (dir_r < 0)
		log_warn("cannot remove the directory of a keeper", LOG_STR("instance", i->path),
			 LOG_STR("err", strerror(-dir_r)));
	i->clean_delay = 0;
	FAILPOINT_AFTER("instance.clean");
	instance_event(i, INSTANCE_CLEAN);
	if (i->unwanted)
		instance_event(i, INSTANCE_REMOVE);
	loop_defer_schedule(&i->defer);
}

void instance_clean(struct instance *i)
{
	instance_clean_try(i, INSTANCE_CLEAN_FIRST);
}

/* ---- the end ---- */

static void instance_end_below(struct instance *i, const char *reason)
{
	bool stopped = i->state == INSTANCE_STOPPING;
	char why[INSTANCE_REASON_MAX];
	struct instance *below;

	(void)str_printf(why, sizeof(why), "the instance %s around it ended: %s", i->path,
			 stopped ? "it was stopped" : reason);
	list_for_each (below, &i->all->list, struct instance, link) {
		if (below->parent != i || below->ended)
			continue;
		/* It was to end together with what is around it. */
		if (stopped)
			instance_event(below, INSTANCE_STOP);
		instance_ended(below, why);
	}
}

void instance_ended(struct instance *i, const char *reason)
{
	if (i->ended)
		return;
	FAILPOINT_BEFORE("instance.ended");
	i->ended = true;
	/* The keeper of the node is no pid 1: what it had lives on until it is killed by its group.
	 * Nobody is told of an end that has not even begun. */
	if (i->cgroup_fd >= 0)
		(void)cgroup_kill(i->cgroup_fd);
	if (i->state != INSTANCE_STOPPING)
		(void)str_copy(i->reason, sizeof(i->reason), reason);
	instance_end_below(i, reason);
	nested_over(i);
	loop_timer_stop(&i->timer);
	instance_close(i);
	instance_event(i, INSTANCE_END);
	FAILPOINT_AFTER("instance.ended");
	instance_clean(i);
}

void instance_note_failure(struct instance *i, const struct error *err)
{
	if (i->ended || i->told_end)
		return;
	/* Of one that was broken, that is the cause. */
	if (!i->broken)
		(void)error_copy(&i->last_error, err);
	i->told_end = true;
	loop_defer_schedule(&i->defer);
}

void instance_note_end(struct instance *i, const char *reason)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_UNAVAILABLE, "%s", reason);
	instance_note_failure(i, &err);
}

static void instance_kill(struct instance *i)
{
	if (instance_is_own(i))
		i->provider->ops->kill(i);
	else if (i->cgroup_fd >= 0)
		(void)cgroup_kill(i->cgroup_fd);
}

static void instance_on_end(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	i->n_asked--;
	loop_defer_schedule(&i->defer);
	if (err && !i->ended)
		log_warn("a nested instance does not end", LOG_STR("instance", i->path),
			 LOG_ERR(err));
	instance_note_end(i, "it was ended");
}

void instance_end_nested(struct instance *i)
{
	struct peer *above = i->parent ? i->parent->peer : NULL;

	loop_timer_set(&i->timer, instance_is_nested_machine(i) ? INSTANCE_MACHINE_STOP_GRACE
								: INSTANCE_STOP_GRACE);
	if (!above) {
		instance_note_end(i, "the instance around it ended");
		return;
	}
	/* The keeper above sees its child die. */
	if (i->parent->mute) {
		instance_kill(i);
		instance_note_end(i, "it was killed");
		return;
	}
	i->n_asked++;
	above->ops->end(above, i->handle, instance_on_end, i);
}

void instance_fail(struct instance *i, const struct error *err)
{
	if (i->ended || i->told_end || i->broken)
		return;
	if (instance_is_own(i) && i->pidfd < 0) {
		instance_note_failure(i, err);
		return;
	}
	(void)error_copy(&i->last_error, err);
	i->broken = true;
	log_warn("a keeper cannot be used and is ended", LOG_STR("instance", i->path),
		 LOG_STR("reason", error_text(&i->last_error)));
	if (instance_is_own(i))
		instance_kill(i);
	else if (i->state != INSTANCE_STOPPING)
		instance_end_nested(i);
}

void instance_break(struct instance *i, const char *reason)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_UNAVAILABLE, "%s", reason);
	instance_fail(i, &err);
}

/* ---- what the kernel and the loop tell ---- */

static void instance_on_defer(struct loop_defer *d)
{
	struct instance *i = container_of(d, struct instance, defer);

	if (i->told_end && !i->ended)
		instance_ended(i, error_text(&i->last_error));
	instance_tell(i);
	if (i->state == INSTANCE_GONE && i->n_asked == 0)
		(void)instance_free(i);
}

static const char *instance_no_answer(const struct instance *i)
{
	const char *text =
		i->state == INSTANCE_SPAWNING && i->provider ? i->provider->ops->no_answer : NULL;

	return text ?: "its keeper did not answer";
}

static void instance_on_timer(struct loop_timer *t)
{
	struct instance *i = container_of(t, struct instance, timer);

	if (i->clean_delay) {
		instance_clean_try(i, i->clean_delay * 2);
		return;
	}
	if (i->state != INSTANCE_STOPPING && !i->broken) {
		/* The kernel's word is here, and will be heard in this turn or the next. */
		if (instance_is_own(i) && i->pidfd >= 0 && pidfd_has_ended(i->pidfd))
			return;
		instance_break(i, i->last_error.code ? error_text(&i->last_error)
						     : instance_no_answer(i));
		return;
	}
	log_warn("a keeper does not end and is killed", LOG_STR("instance", i->path));
	instance_kill(i);
	/* Of one of our own the process tells. */
	if (!instance_is_own(i) || i->pidfd < 0)
		instance_note_end(i, "its keeper did not end and was killed");
}

void instance_init_sources(struct instance *i)
{
	loop_timer_init(&i->timer, i->all->config.loop, instance_on_timer);
	loop_defer_init(&i->defer, i->all->config.loop, instance_on_defer);
}
