/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart/container_restart.h"

#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "pod/restart/restart.h"
#include "pod/workload/container.h"
#include "pod/workload/publish.h"
#include "pod/workload/workloads.h"

/* Whether its workload is one whose containers are started again. */
static bool restart_may(const struct pod_container *c)
{
	const struct workload *w = c->workload;

	return w->all->resumed && w->all->config.restart_container && w->asked && !w->killed &&
	       (w->state == WORKLOAD_RUNNING || w->state == WORKLOAD_STARTING);
}

static bool restart_is_wanted(const struct pod_container *c)
{
	const struct container_status *s = &c->status;

	if (!restart_may(c) || c->stopped || c->ending || !pod_container_has_ended(c) ||
	    c->phase != POD_CONTAINER_STARTED)
		return false;
	/* A container that never ran is not restarted: the call that started it gets the error. */
	if (!s->started_at && c->restart_count == 0 && !c->ran_at)
		return false;
	return restart_rule_wants(&c->restart, c->restart_count, s->exit_code != 0);
}

bool container_is_over(const struct pod_container *c)
{
	if (!pod_container_has_ended(c))
		return false;
	return !restart_may(c) || (!c->restarting && !c->restart_at && !restart_is_wanted(c));
}

void container_restart_cancel(struct pod_container *c)
{
	c->restart_at = 0;
	loop_timer_stop(&c->again);
}

static void restart_on_timer(struct loop_timer *t)
{
	struct pod_container *c = container_of(t, struct pod_container, again);
	struct workload *w = c->workload;
	char note[160];

	c->restart_at = 0;
	loop_defer_schedule(&w->defer);
	if (!restart_is_wanted(c))
		return;
	c->restart_count++;
	c->restarting = true;
	pod_container_save(c);
	(void)str_printf(note, sizeof(note), "restart %u of %s, as its policy %s wants it",
			 c->restart_count, c->name, restart_policy_word(c->restart.policy));
	publish_workload_note(w->all->config.events, w, note);
	w->all->config.restart_container(w->all->config.userdata, c);
}

void container_restart_init(struct pod_container *c)
{
	loop_timer_init(&c->again, c->workload->all->config.loop, restart_on_timer);
}

void container_restart_done(struct pod_container *c)
{
	loop_timer_done(&c->again);
}

static nsec_t restart_ran(const struct pod_container *c)
{
	const struct container_status *s = &c->status;

	return s->started_at && s->finished_at > s->started_at ? s->finished_at - s->started_at : 0;
}

void container_restart_look(struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];

		if (c->restart_at || c->restarting || !restart_is_wanted(c))
			continue;
		c->restart_delay = restart_next_delay(c->restart_delay, restart_ran(c));
		c->restart_at = clock_real() + c->restart_delay;
		loop_timer_set(&c->again, c->restart_delay);
	}
}

void container_restart_failed(struct pod_container *c, const struct error *err)
{
	log_warn("a container cannot be started again", LOG_STR("workload", c->workload->path),
		 LOG_STR("container", c->name), LOG_ERR(err));
	(void)str_copy(c->status.reason, sizeof(c->status.reason), error_text(err));
	c->restarting = false;
	pod_container_save(c);
	loop_defer_schedule(&c->workload->defer);
}

void container_restart_rest(struct pod_container *c)
{
	c->restarting = false;
	container_restart_cancel(c);
	if (c->stopped)
		return;
	c->stopped = true;
	pod_container_save(c);
}

void container_restart_begin(struct pod_container *c, bool by_policy)
{
	container_restart_cancel(c);
	c->restarting = true;
	if (by_policy)
		return;
	c->stopped = false;
	c->restart_count = 0;
	c->restart_delay = 0;
}
