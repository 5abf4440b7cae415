/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart/container_again.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/image.h"
#include "pod/networks/etc.h"
#include "pod/restart/again.h"
#include "pod/restart/container_reset.h"
#include "pod/restart/container_restart.h"
#include "pod/workload/alloc.h"
#include "pod/workload/container.h"
#include "pod/workload/life.h"
#include "pod/workload/sandbox.h"
#include "pod/workload/waiter.h"
#include "pod/workload/workloads.h"

/*
 * Theory of operation. As for a whole workload (pod/restart/again.c) the specification makes a
 * second one that nobody knows, of the one container. Its keeper is asked to forget the container
 * that has ended; when it has, the files are mounted anew, and the container is started under the
 * same id, as one of a sandbox is. A daemon that ends in the middle leaves one that has ended, or
 * that its keeper tells about.
 */

static void unmakep(struct workload **w)
{
	workload_unmake(*w);
}

/* ---- whether ---- */

int container_check_start(const struct pod_container *c, struct error *err)
{
	const struct workload *w = c->workload;
	int r = workload_check_start(w, err);

	if (r < 0)
		return r;
	if (r == 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is %s: start all of it (without container)", w->path,
				    workload_state_word(w->state));
	if (workload_is_remote(w))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "%s/%s is in a machine, in whose memory its files are", w->path,
				    c->name);
	if (c->is_debug)
		return error_field(err, ERROR_INVALID, "container",
				   "%s is a debug container, which is removed at its end", c->name);
	if (c->is_init && !pod_container_is_sidecar(c))
		return error_field(err, ERROR_INVALID, "container",
				   "%s is an init container, which runs once at each start of %s",
				   c->name, w->path);
	return !pod_container_has_ended(c) || c->phase == POD_CONTAINER_REMOVING;
}

static int again_check(const struct pod_container *c, const struct workload_spec *spec,
		       struct error *err)
{
	int r = container_check_start(c, err);

	if (r < 0)
		return r;
	if (r > 0 || c->phase != POD_CONTAINER_STARTED || !workload_peer(c->workload))
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "%s/%s is being started, or its keeper is lost (try again)",
				    c->workload->path, c->name);
	return str_eq(spec->containers[0].name, c->name)
		       ? 0
		       : error_refuse(err, ERROR_PRECONDITION,
				      "the containers of %s are not those of its request: remove "
				      "it, and run it anew",
				      c->workload->path);
}

/* ---- the start ---- */

static void again_launch(struct pod_container *c)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	const struct workloads_config *config = &c->workload->all->config;
	uint64_t ran_at = c->status.started_at ?: c->ran_at;
	unsigned count = c->restart_count;
	nsec_t delay = c->restart_delay;
	struct error err = ERROR_INIT;
	int r = FAILPOINT("container.again");

	container_reset(c);
	free(TAKE_PTR(c->identity));
	c->restarting = c->stays = true;
	c->ran_at = ran_at;
	c->restart_count = count;
	c->restart_delay = delay;
	image_ballast_spend(config->images);
	if (r < 0)
		(void)error_set(&err, r, "start %s/%s", c->workload->path, c->name);
	else
		r = pod_container_prepare(c, config->images, config->logs_fd, &err);
	if (r < 0) {
		container_fds_close(&c->fds);
		c->status.state = CONTAINER_FAILED;
		c->status.exit_code = 125;
		c->status.finished_at = clock_real();
		container_restart_failed(c, &err);
		return;
	}
	pod_container_save(c);
	FAILPOINT_AFTER("container.again");
	workload_start_container(c, &etc);
}

/* Its keeper has forgotten the one that has ended. */
static void again_on_forgotten(void *userdata, const struct error *err)
{
	struct pod_container *c = userdata;
	struct workload *w = c->workload;
	struct error own = ERROR_INIT;

	w->n_removing--;
	c->phase = POD_CONTAINER_STARTED;
	loop_defer_schedule(&w->defer);
	if (err)
		(void)error_copy(&own, err);
	else if (c->stopped || w->killed || w->state > WORKLOAD_RUNNING || !workload_peer(w))
		(void)error_refuse(&own, ERROR_ABORTED, "it was stopped before it was started");
	if (own.code)
		container_restart_failed(c, &own);
	else
		again_launch(c);
}

int container_start(struct pod_container *c, const struct workload_spec *spec, bool by_policy,
		    workload_fn done, void *userdata, struct error *err)
{
	_cleanup_(unmakep) struct workload *n = NULL;
	struct workload_spec own = *spec;
	struct workload *w = c->workload;
	struct etc_wish *etc = w->etc;
	struct peer *peer;
	int r = again_check(c, spec, err);

	own.ids = w->ids;
	if (r == 0)
		r = workload_make(&own, &w->all->config, &n, err);
	if (r < 0)
		return r;
	if (waiter_add(w, WAITER_STARTED, c, done, userdata) < 0)
		return error_set(err, -ENOMEM, "start %s/%s", w->path, c->name);

	/* From here on it starts; a failure is its state. */
	w->etc = n->etc;
	n->etc = etc;
	container_reset_move(c, n->containers[0]);
	container_restart_begin(c, by_policy);
	c->phase = POD_CONTAINER_REMOVING;
	w->n_removing++;
	peer = workload_peer(w);
	peer->ops->remove(peer, c->id, again_on_forgotten, c);
	return 0;
}

int container_end(struct pod_container *c, nsec_t grace, workload_fn done, void *userdata,
		  struct error *err)
{
	int r = sandbox_stop_container(c, 0, grace, done, userdata, err);

	if (r < 0)
		return r;
	container_restart_cancel(c);
	c->restarting = true;
	return 0;
}

int container_stop(struct pod_container *c, nsec_t grace, workload_fn done, void *userdata,
		   struct error *err)
{
	int r;

	/* Behind the stop: one that cannot be stopped keeps its policy. */
	r = sandbox_stop_container(c, 0, grace, done, userdata, err);
	if (r == 0)
		container_restart_rest(c);
	return r;
}
