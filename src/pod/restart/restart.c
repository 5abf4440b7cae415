/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart/restart.h"

#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "pod/restart/reboot.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/workloads.h"

static void restart_save(struct workload *w)
{
	struct error err = ERROR_INIT;

	reboot_touch(w);
	if (record_put_workload(w->all->config.store, w, &err) < 0)
		log_error("cannot record a workload", LOG_STR("workload", w->path), LOG_ERR(&err));
}

/* How long the last run was; 0: none of its containers came to run. */
static nsec_t restart_ran(const struct workload *w)
{
	nsec_t longest = 0;

	for (size_t i = 0; i < w->n_containers; i++) {
		const struct container_status *s = &w->containers[i]->status;

		if (s->started_at && s->finished_at > s->started_at)
			longest = MAX(longest, s->finished_at - s->started_at);
	}
	return longest;
}

/* A workload that never ran is not restarted: the call that started it gets the error. */
static bool restart_has_run(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->status.started_at)
			return true;
	return w->restart_count > 0;
}

bool restart_rule_wants(const struct restart_rule *rule, unsigned count, bool has_failed)
{
	switch (rule->policy) {
	case RESTART_ON_FAILURE:
		return has_failed && (!rule->max || count < rule->max);
	case RESTART_ALWAYS:
	case RESTART_UNLESS_STOPPED:
		return true;
	case RESTART_NO:
	case RESTART_POLICY_COUNT:
		break;
	}
	return false;
}

nsec_t restart_next_delay(nsec_t delay, nsec_t ran)
{
	return delay && ran < RESTART_WELL ? MIN(2 * delay, RESTART_LAST) : RESTART_FIRST;
}

/* Somebody has stopped its containers, one by one. */
static bool restart_were_stopped(const struct workload *w)
{
	bool any = false;

	for (size_t i = 0; i < w->n_containers; i++) {
		const struct pod_container *c = w->containers[i];

		if (c->is_init || c->is_debug)
			continue;
		if (!c->stopped)
			return false;
		any = true;
	}
	return any;
}

static bool restart_is_wanted(const struct workload *w)
{
	if (!w->all->resumed || w->stopped || w->auto_remove || !w->all->config.restart ||
	    !restart_has_run(w) || (w->state != WORKLOAD_EXITED && w->state != WORKLOAD_FAILED))
		return false;
	return !restart_were_stopped(w) &&
	       restart_rule_wants(&w->restart, w->restart_count,
				  w->state == WORKLOAD_FAILED || workload_exit_code(w) != 0);
}

static void restart_cancel(struct workload *w)
{
	w->restart_at = 0;
	loop_timer_stop(&w->again);
}

static void restart_on_timer(struct loop_timer *t)
{
	struct workload *w = container_of(t, struct workload, again);
	char note[80];

	w->restart_at = 0;
	if (!restart_is_wanted(w))
		return;
	w->restart_count++;
	w->restart_delay = w->restart_next;
	w->restarting = true;
	restart_save(w);
	(void)str_printf(note, sizeof(note), "restart %u, as its policy %s wants it",
			 w->restart_count, restart_policy_word(w->restart.policy));
	publish_workload_note(w->all->config.events, w, note);
	w->all->config.restart(w->all->config.userdata, w);
}

void restart_init(struct workload *w)
{
	loop_timer_init(&w->again, w->all->config.loop, restart_on_timer);
}

void restart_done(struct workload *w)
{
	loop_timer_done(&w->again);
}

void restart_look(struct workload *w)
{
	if (w->restart_at || w->restarting || !restart_is_wanted(w))
		return;
	w->restart_next =
		restart_next_delay(w->restart_delay, w->restart_missed ? 0 : restart_ran(w));
	w->restart_at = clock_real() + w->restart_next;
	loop_timer_set(&w->again, w->restart_next);
}

void restart_failed(struct workload *w, const struct error *err)
{
	log_warn("a workload cannot be started again", LOG_STR("workload", w->path), LOG_ERR(err));
	(void)str_copy(w->reason, sizeof(w->reason), error_text(err));
	w->restarting = false;
	w->restart_missed = true;
	restart_save(w);
	restart_look(w);
}

void restart_rest(struct workload *w)
{
	w->restarting = false;
	restart_cancel(w);
	if (w->stopped || w->restart.policy == RESTART_NO)
		return;
	w->stopped = true;
	restart_save(w);
}

void restart_begin(struct workload *w, bool by_policy)
{
	w->restarting = w->restart_missed = false;
	restart_cancel(w);
	if (by_policy)
		return;
	w->stopped = false;
	w->restart_count = 0;
	w->restart_delay = 0;
}
