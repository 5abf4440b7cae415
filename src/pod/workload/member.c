/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/member.h"

#include <errno.h>

#include "base/fault/failpoint.h"
#include "base/file/rootfd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/image.h"
#include "pod/restart/container_restart.h"
#include "pod/workload/alloc.h"
#include "pod/workload/container.h"
#include "pod/workload/failure.h"
#include "pod/workload/health.h"
#include "pod/workload/make.h"
#include "pod/workload/pause.h"
#include "pod/workload/publish.h"
#include "pod/workload/remote.h"
#include "pod/workload/waiter.h"
#include "pod/workload/workloads.h"
#include "store/store.h"

/* A signal may get lost together with a connection. */
#define MEMBER_KILL_AGAIN (5 * NSEC_PER_SEC)

/* ---- its end ---- */

static void member_on_timer(struct loop_timer *t)
{
	struct pod_container *c = container_of(t, struct pod_container, stop);

	if (pod_container_has_ended(c))
		return;
	pod_container_end(c, true);
	loop_timer_set(&c->stop, MEMBER_KILL_AGAIN);
}

void member_join(struct pod_container *c)
{
	loop_timer_init(&c->stop, c->workload->all->config.loop, member_on_timer);
	container_restart_init(c);
}

void member_leave(struct pod_container *c)
{
	health_drop(c);
	loop_timer_done(&c->stop);
	container_restart_done(c);
	if (c->phase == POD_CONTAINER_ROOT)
		image_rootfs_forget(c->workload->all->config.images, c);
}

void member_end_by(struct pod_container *c, nsec_t stop_by)
{
	nsec_t now = clock_mono();

	c->stop_by = stop_by;
	loop_timer_set(&c->stop, stop_by > now ? stop_by - now : 0);
}

/* ---- its files ---- */

static void member_on_root(void *userdata, const struct error *err)
{
	struct pod_container *c = userdata;

	c->phase = POD_CONTAINER_FILES;
	if (err)
		failure_keep_member(c, err);
	loop_defer_schedule(&c->workload->defer);
}

int member_await_root(struct pod_container *c, struct error *err)
{
	int r = 0;

	c->phase = POD_CONTAINER_ROOT;
	if (workload_is_remote(c->workload))
		return remote_put_member(&c->workload->all->config, c, err);
	if (c->image)
		r = image_rootfs_await(c->workload->all->config.images, c->image, member_on_root, c,
				       err);
	if (r <= 0)
		c->phase = POD_CONTAINER_FILES;
	return r < 0 ? r : 0;
}

static void member_make_files(struct pod_container *c)
{
	const struct workloads_config *config = &c->workload->all->config;
	struct error err = ERROR_INIT;

	c->phase = POD_CONTAINER_CREATED;
	if (c->failed)
		return;
	image_ballast_spend(config->images);
	if (pod_container_prepare(c, config->images, config->logs_fd, &err) < 0)
		failure_keep_member(c, &err);
}

/* ---- its removal ---- */

/* NAME.log, and what it was rotated to. */
static void member_drop_logs(const struct pod_container *c)
{
	const struct workloads_config *config = &c->workload->all->config;
	char path[ID_SIZE + NAME_LABEL_MAX + 24];

	for (unsigned i = 0; i <= config->log.max_files && !c->has_own_log; i++) {
		(void)str_printf(path, sizeof(path), "%s/%s.log", c->workload->id, c->name);
		if (i > 0)
			(void)str_printf(path, sizeof(path), "%s/%s.log.%u", c->workload->id,
					 c->name, i);
		(void)rootfd_remove_tree(config->logs_fd, path);
	}
}

/* Frees it. */
static void member_finish(struct pod_container *c, const struct error *why)
{
	struct workload *w = c->workload;
	struct error err = ERROR_INIT;

	FAILPOINT_BEFORE("member.files");
	remote_drop_disk(c);
	remote_close_log(c);
	pod_container_drop_root(c);
	member_drop_logs(c);
	if (run_store_drop_container(w->all->config.store, c->id, &err) < 0)
		log_error("cannot drop a record", LOG_STR("container", c->id), LOG_ERR(&err));
	FAILPOINT_AFTER("member.files");
	publish_container(w->all->config.events, c, "removed");
	(void)map_remove(&w->all->containers, c->id);
	waiter_tell_container(w, c, why);
	member_leave(c);
	workload_drop_container(w, c);
	remote_settle_shares(&w->all->config, w);
}

static void member_on_removed(void *userdata, const struct error *err)
{
	struct pod_container *c = userdata;

	if (err)
		log_info("a keeper could not be told to forget a container",
			 LOG_STR("container", c->id), LOG_ERR(err));
	c->workload->n_removing--;
	c->phase = POD_CONTAINER_REMOVED;
	loop_defer_schedule(&c->workload->defer);
}

/* Whether it can be freed at once. */
static bool member_remove(struct pod_container *c)
{
	struct workload *w = c->workload;
	struct peer *peer = workload_peer(w);

	if (c->phase != POD_CONTAINER_STARTED || !peer || w->image_job_down || w->taken_down)
		return true;
	c->phase = POD_CONTAINER_REMOVING;
	w->n_removing++;
	peer->ops->remove(peer, c->id, member_on_removed, c);
	return false;
}

/* ---- what the loop makes true ---- */

static bool member_may_go(const struct pod_container *c)
{
	if (c->starting || c->awaits_disk || c->phase == POD_CONTAINER_REMOVING)
		return false;
	if (c->is_debug && pod_container_has_ended(c))
		return true;
	return c->is_leaving && (c->phase == POD_CONTAINER_CREATED || pod_container_has_ended(c));
}

static void member_settle(struct pod_container *c)
{
	const struct workload *w = c->workload;

	if (c->phase == POD_CONTAINER_REMOVED) {
		member_finish(c, NULL);
		return;
	}
	if (w->state != WORKLOAD_RUNNING && pod_container_is_created(c))
		pod_container_lose(c, "its pod ended before it was started");
	if (c->phase == POD_CONTAINER_ROOT && workload_is_remote(w) && remote_has_member(c))
		c->phase = POD_CONTAINER_FILES;
	if (c->phase == POD_CONTAINER_FILES)
		member_make_files(c);
	if (c->failed && c->phase == POD_CONTAINER_CREATED && !c->awaits_disk) {
		struct error err = ERROR_INIT;

		(void)error_copy(&err, c->failed);
		member_finish(c, &err);
		return;
	}
	if (c->phase == POD_CONTAINER_STARTED && c->is_leaving && !c->starting &&
	    !pod_container_has_ended(c) && !c->stop_by) {
		pod_container_end(c, true);
		member_end_by(c, clock_mono() + MEMBER_KILL_AGAIN);
	}
	if (member_may_go(c) && member_remove(c))
		member_finish(c, NULL);
}

void members_settle(struct workload *w)
{
	/* From behind: those that go are taken out. */
	for (size_t i = w->n_containers; i > 0; i--)
		if (i <= w->n_containers && (w->lasts || w->containers[i - 1]->is_debug))
			member_settle(w->containers[i - 1]);
}

bool members_have_debug(const struct workload *w)
{
	/* They are the last ones. */
	return w->n_containers > 0 && w->containers[w->n_containers - 1]->is_debug;
}

void members_end_debug(struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];

		if (!c->is_debug || pod_container_has_ended(c) || pod_container_is_created(c) ||
		    c->starting || c->stop_by)
			continue;
		if (c->paused)
			pause_let_go(c);
		pod_container_end(c, true);
		member_end_by(c, clock_mono() + MEMBER_KILL_AGAIN);
	}
}
