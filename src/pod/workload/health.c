/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/health.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/workloads.h"

void health_rule_done(struct health_rule *r)
{
	strv_free(r->words);
	r->words = NULL;
}

static const struct workloads_config *health_config(const struct pod_container *c)
{
	return &c->workload->all->config;
}

/* ---- its state ---- */

/* The only writer. */
static void health_enter(struct pod_container *c, enum health_status status)
{
	struct error err = ERROR_INIT;

	if (c->health_status == status)
		return;
	c->health_status = status;
	if (record_put_container(health_config(c)->store, c, &err) < 0)
		log_error("cannot record a container", LOG_STR("container", c->id), LOG_ERR(&err));
	if (status != HEALTH_NONE)
		publish_container_health(health_config(c)->events, c, health_word(status));
	loop_defer_schedule(&c->workload->defer);
}

static bool health_in_start_period(const struct pod_container *c)
{
	return c->health_status == HEALTH_STARTING &&
	       clock_real() < c->status.started_at + c->health->rule.start_period;
}

static void health_wait_for_next(struct pod_container *c)
{
	struct health *h = c->health;

	loop_timer_set(&h->timer,
		       health_in_start_period(c) ? h->rule.start_interval : h->rule.interval);
}

static void health_act(struct pod_container *c)
{
	struct health *h = c->health;

	if (h->acted || h->rule.action == HEALTH_DO_NOTHING ||
	    c->workload->state > WORKLOAD_RUNNING)
		return;
	h->acted = true;
	log_info("an unhealthy container is dealt with", LOG_STR("workload", c->workload->path),
		 LOG_STR("container", c->name));
	health_config(c)->health->act(health_config(c)->userdata, c, h->rule.action);
}

/* ---- results ---- */

static void health_drop_first(struct health *h)
{
	free(h->results[0].output);
	for (size_t i = 1; i < h->n_results; i++)
		h->results[i - 1] = h->results[i];
	h->n_results--;
}

/* Without memory it is kept without its output. */
static const struct health_result *health_keep(struct health *h, int exit_code, const void *output,
					       size_t n_output)
{
	struct health_result *r;

	assert(h->place < HEALTH_RESULTS);
	if (h->n_results == HEALTH_RESULTS)
		health_drop_first(h);
	r = &h->results[h->n_results++];
	*r = (struct health_result){ .started_at = h->probe_at,
				     .ended_at = clock_real(),
				     .exit_code = exit_code };
	n_output = MIN(n_output, (size_t)HEALTH_OUTPUT_MAX);
	r->output = n_output ? malloc(n_output) : NULL;
	if (r->output) {
		memcpy(r->output, output, n_output);
		r->n_output = n_output;
	}
	health_record_put(h->container, h->place, r);
	h->place = (h->place + 1) % HEALTH_RESULTS;
	return r;
}

static void health_tell_waits(struct health *h, const struct health_result *result,
			      const struct error *err)
{
	struct health_wait *w;

	for (;;) {
		w = list_first(&h->waits, struct health_wait, link);
		if (!w)
			return;
		list_remove(&w->link);
		w->done(w, result, err);
	}
}

static void health_count(struct pod_container *c, bool good)
{
	struct health *h = c->health;

	if (good) {
		h->streak = 0;
		h->acted = false;
		health_enter(c, HEALTH_HEALTHY);
		return;
	}
	if (health_in_start_period(c))
		return;
	h->streak += h->streak < HEALTH_RETRIES_MAX;
	if (h->streak >= h->rule.retries)
		health_enter(c, HEALTH_UNHEALTHY);
}

void health_tell(struct pod_container *c, int exit_code, const void *output, size_t n_output,
		 const struct error *err)
{
	const struct health_result *result = NULL;
	struct health *h = c->health;

	assert(h && h->probe);
	h->probe = NULL;
	if (err) {
		log_debug("a health check could not be made",
			  LOG_STR("workload", c->workload->path), LOG_STR("container", c->name),
			  LOG_ERR(err));
	} else {
		result = health_keep(h, exit_code, output, n_output);
		health_count(c, exit_code == 0);
	}
	health_tell_waits(h, result, err);
	health_wait_for_next(c);
	if (c->health_status == HEALTH_UNHEALTHY)
		health_act(c);
}

/* ---- probes ---- */

static int health_probe(struct pod_container *c, struct error *err)
{
	struct health *h = c->health;

	h->probe_at = clock_real();
	return health_config(c)->health->probe(health_config(c)->userdata, c, &h->probe, err);
}

static void health_on_timer(struct loop_timer *t)
{
	struct health *h = container_of(t, struct health, timer);
	struct pod_container *c = h->container;
	struct error err = ERROR_INIT;

	if (h->probe || c->workload->state > WORKLOAD_RUNNING)
		return;
	/* Nothing in it would answer. */
	if (c->paused || c->workload->pausing || health_probe(c, &err) < 0)
		health_wait_for_next(c);
}

int health_run(struct pod_container *c, struct health_wait *w, struct error *err)
{
	struct health *h = c->health;
	int r;

	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s is %s, not running",
				    c->workload->path, c->name, pod_container_state_word(c));
	if (!h)
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s has no health check",
				    c->workload->path, c->name);
	if (c->paused)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s/%s is paused: unpause it before it is probed",
				    c->workload->path, c->name);
	r = h->probe ? 0 : health_probe(c, err);
	if (r < 0)
		return r;
	loop_timer_stop(&h->timer);
	list_add_tail(&h->waits, &w->link);
	return 0;
}

void health_forget(struct health_wait *w)
{
	list_remove(&w->link);
}

/* ---- from its start to its end ---- */

static struct health *health_new(struct pod_container *c, const struct health_rule *rule)
{
	struct health *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->container = c;
	h->rule = *rule;
	list_init(&h->waits);
	loop_timer_init(&h->timer, health_config(c)->loop, health_on_timer);
	return h;
}

void health_begin(struct pod_container *c)
{
	const struct workloads_config *config = health_config(c);
	struct health_rule rule = { .words = NULL };
	struct error err = ERROR_INIT;
	int r;

	/* Kubernetes has probes of its own. */
	if (c->health || !config->health || c->workload->lasts || c->is_debug ||
	    (c->is_init && !pod_container_is_sidecar(c)) ||
	    c->workload->kind == WORKLOAD_EXECUTABLE || c->workload->kind == WORKLOAD_VM)
		return;
	r = config->health->rule(config->userdata, c, &rule);
	if (r == 0)
		return;
	c->health = r < 0 ? NULL : health_new(c, &rule);
	if (!c->health) {
		health_rule_done(&rule);
		(void)error_set(&err, -ENOMEM, "check its health");
		log_error("a container is not probed", LOG_STR("workload", c->workload->path),
			  LOG_STR("container", c->name), LOG_ERR(&err));
		return;
	}
	if (c->workload->adopted)
		c->health->place = health_record_read(c, c->health->results, &c->health->n_results);
	if (c->health_status == HEALTH_NONE)
		health_enter(c, HEALTH_STARTING);
	health_wait_for_next(c);
	/* What a daemon before this one had not come to; not from within whoever calls. */
	if (c->health_status == HEALTH_UNHEALTHY)
		loop_timer_set(&c->health->timer, HEALTH_TIME_MIN);
	c->health->streak = c->health_status == HEALTH_UNHEALTHY ? c->health->rule.retries : 0;
}

void health_end(struct pod_container *c)
{
	struct error err = ERROR_INIT;
	struct health *h = c->health;

	if (!h)
		return;
	loop_timer_stop(&h->timer);
	if (h->probe)
		health_config(c)->health->cancel(TAKE_PTR(h->probe));
	(void)error_refuse(&err, ERROR_ABORTED, "%s/%s ended before its health was known",
			   c->workload->path, c->name);
	health_tell_waits(h, NULL, &err);
}

void health_drop(struct pod_container *c)
{
	struct health *h = c->health;

	c->health_status = HEALTH_NONE;
	if (!h)
		return;
	health_end(c);
	c->health = NULL;
	loop_timer_done(&h->timer);
	while (h->n_results > 0)
		health_drop_first(h);
	health_rule_done(&h->rule);
	free(h);
}

void health_reset(struct pod_container *c)
{
	/* The record of its status is written by whoever starts it. */
	if (c->health_status != HEALTH_NONE)
		health_record_drop(c);
	health_drop(c);
}

/* ---- conditions ---- */

/* Its keeper has not spoken of it yet since this daemon began. */
static bool health_is_unheard_of(const struct pod_container *c)
{
	return c->workload->adopted && !c->seen && !pod_container_has_ended(c);
}

int health_compare(const struct workload *w, const struct pod_container *c,
		   enum health_status wanted)
{
	size_t n_checked = 0, n_matching = 0, n_unknown = 0;

	for (size_t i = 0; i < w->n_containers; i++) {
		const struct pod_container *one = w->containers[i];

		if (c && c != one)
			continue;
		n_checked += one->health != NULL;
		n_unknown += one->status.state < CONTAINER_RUNNING || health_is_unheard_of(one);
		n_matching += one->health && one->health_status == wanted;
	}
	if (wanted == HEALTH_UNHEALTHY && n_matching > 0)
		return 1;
	if (n_checked == 0 && n_unknown == 0)
		return -ENOENT;
	return n_matching > 0 && n_matching == n_checked && n_unknown == 0;
}
