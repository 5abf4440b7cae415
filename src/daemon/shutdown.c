/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/shutdown.h"

#include "base/log/log.h"
#include "base/text/str.h"
#include "pod/restart/restart.h"
#include "pod/workload/follow.h"
#include "pod/workload/workload.h"

/* As `nacre stop` has it where nobody says. */
#define SHUTDOWN_GRACE (10 * NSEC_PER_SEC)
#define SHUTDOWN_REASON "the host was shut down"

static void shutdown_on_stopped(void *userdata, struct workload *w, const struct error *err)
{
	struct shutdown *s = userdata;

	/* They are being freed. */
	if (!s->begun)
		return;
	if (err)
		log_error("a workload is not waited for", LOG_ERR(err));
	s->n_asked--;
	loop_defer_schedule(&s->step);
}

static void shutdown_stop(struct shutdown *s, struct workload *w, nsec_t grace)
{
	s->n_asked++;
	log_info("stopping", LOG_STR("workload", w->path));
	if (!w->reason[0])
		(void)str_copy(w->reason, sizeof(w->reason), SHUTDOWN_REASON);
	/* It has not failed, so that this policy does not start it at the next boot. */
	if (w->restart.policy == RESTART_ON_FAILURE)
		restart_rest(w);
	workload_end(w, grace, shutdown_on_stopped, s);
}

/* The one that was made last; NULL: none runs. */
static struct workload *shutdown_last(struct shutdown *s)
{
	const struct list *all = workloads_list(s->workloads);
	struct workload *w, *last = NULL;

	list_for_each (w, all, struct workload, link)
		if (!workload_has_ended(w))
			last = w;
	return last;
}

static void shutdown_stop_all(struct shutdown *s)
{
	nsec_t now = clock_mono();
	nsec_t grace = s->hurried || now >= s->until ? 0 : s->until - now;
	struct workload *w;

	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		if (!workload_has_ended(w))
			shutdown_stop(s, w, grace);
}

/* One at a time; all of them once the time for that is over. */
static void shutdown_on_step(struct loop_defer *defer)
{
	struct shutdown *s = container_of(defer, struct shutdown, step);
	struct workload *w = shutdown_last(s);
	nsec_t now = clock_mono();

	if (!w) {
		loop_timer_stop(&s->half);
		s->done(s->userdata);
	} else if (s->n_asked == 0 && now < s->ordered_until) {
		shutdown_stop(s, w, MIN(SHUTDOWN_GRACE, s->until - now));
	} else if (s->n_asked == 0) {
		shutdown_stop_all(s);
	}
}

static void shutdown_on_half(struct loop_timer *t)
{
	struct shutdown *s = container_of(t, struct shutdown, half);

	log_warn("workloads are stopped together: there is no time to wait for each");
	shutdown_stop_all(s);
}

void shutdown_begin(struct shutdown *s, struct loop *l, struct workloads *workloads, nsec_t limit,
		    void (*done)(void *userdata), void *userdata)
{
	nsec_t now = clock_mono();

	*s = (struct shutdown){ .workloads = workloads,
				.begun = true,
				.ordered_until = now + limit / 2,
				.until = now + limit,
				.done = done,
				.userdata = userdata };
	workloads_rest(workloads);
	loop_defer_init(&s->step, l, shutdown_on_step);
	loop_timer_init(&s->half, l, shutdown_on_half);
	loop_timer_set(&s->half, limit / 2);
	loop_defer_schedule(&s->step);
}

void shutdown_hurry(struct shutdown *s)
{
	if (!s->begun || s->hurried)
		return;
	s->hurried = true;
	s->ordered_until = 0;
	log_warn("told again: what still runs is killed");
	shutdown_stop_all(s);
}

void shutdown_end(struct shutdown *s)
{
	if (!s->begun)
		return;
	loop_defer_done(&s->step);
	loop_timer_done(&s->half);
	s->begun = false;
}
