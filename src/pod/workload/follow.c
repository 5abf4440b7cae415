/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/follow.h"

#include <errno.h>
#include <signal.h>

#include "base/fault/failpoint.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/image.h"
#include "pod/networks/plug.h"
#include "pod/restart/reboot.h"
#include "pod/restart/sweep.h"
#include "pod/storage/image_mounts.h"
#include "pod/workload/container.h"
#include "pod/workload/failure.h"
#include "pod/workload/health.h"
#include "pod/workload/hosted.h"
#include "pod/workload/life.h"
#include "pod/workload/pause.h"
#include "pod/workload/record.h"
#include "pod/workload/remote.h"

/* ---- what the instances tell ---- */

static void workloads_ignore(void *userdata, const struct error *err)
{
	(void)userdata;
	(void)err;
}

static bool workloads_know_cell(const struct workloads *all, const struct instance *i,
				const char *cell)
{
	const struct workload *w;

	list_for_each (w, &all->list, struct workload, link)
		if (w->instance == i && str_eq(w->handle, cell))
			return true;
	return false;
}

/* Of a cell that nobody knows nothing is to be left; what else is in a known one stays. */
static void workloads_on_unknown(struct workloads *all, struct instance *i,
				 const struct container_view *view)
{
	const struct peer_ops *ops = i->peer->ops;

	log_info("a container without a record is ended", LOG_STR("instance", i->path),
		 LOG_STR("container", view->id));
	if (!workloads_know_cell(all, i, view->cell))
		ops->remove_cell(i->peer, view->cell, workloads_ignore, NULL);
	else if (view->status.state >= CONTAINER_EXITED)
		ops->remove(i->peer, view->id, workloads_ignore, NULL);
	else
		ops->signal(i->peer, view->id, SIGKILL, true, workloads_ignore, NULL);
}

void workloads_on_container(struct workloads *all, struct instance *i,
			    const struct container_view *view)
{
	struct pod_container *c = map_get(&all->containers, view->id);
	bool is_new;

	if (!c) {
		workloads_on_unknown(all, i, view);
		return;
	}
	/* What an earlier daemon could not write its keeper knows nothing of. */
	if (!c->seen && c->workload->adopted && c->status.log_lost > view->status.log_lost)
		c->log_dropped = c->status.log_lost - view->status.log_lost;
	is_new = !c->seen && c->workload->adopted;
	c->seen = true;
	/* What is told of its last run is known. */
	if (!c->workload->lasts &&
	    (c->phase == POD_CONTAINER_REMOVING ||
	     (c->ran_at && view->status.started_at && view->status.started_at <= c->ran_at)))
		return;
	/* The answer to its start says the same, and comes once. */
	if (c->starting && view->status.state == CONTAINER_STARTING)
		return;
	/* It has not ended before its log was taken. */
	if (c->workload->adopted && instance_is_remote(i))
		remote_follow_log(&all->config, c);
	if (view->user)
		pod_container_tell_identity(c, view->user);
	pod_container_update(c, &view->status);
	if (is_new && c->status.state == CONTAINER_RUNNING && !instance_is_remote(i))
		pause_look(c);
	if (is_new && c->status.state == CONTAINER_RUNNING)
		health_begin(c);
	loop_defer_schedule(&c->workload->defer);
}

/* Whoever provides the instance has refused to make it, a cloud for its own reason: that is the
 * failure of the call alone. */
static void workload_note_refusal(struct workload *w, const struct instance *i)
{
	struct error err = ERROR_INIT;

	if (w->kind != WORKLOAD_POD || w->state != WORKLOAD_STARTING || w->asked ||
	    i->state != INSTANCE_FAILED)
		return;
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "%s", i->reason);
	(void)instance_blame(i, &err);
	if (err.kind == ERROR_INVALID || err.kind == ERROR_PRECONDITION ||
	    err.kind == ERROR_EXHAUSTED)
		(void)failure_refuse(w, &err);
}

static void workload_on_instance_end(struct workload *w, const struct instance *i)
{
	char reason[WORKLOAD_REASON_MAX];

	workload_note_refusal(w, i);
	if (i->reason[0])
		(void)str_copy(reason, sizeof(reason), i->reason);
	else
		(void)str_printf(reason, sizeof(reason), "the instance %s was stopped", i->path);
	if (!workload_has_ended(w))
		workload_lose(w, reason);
	/* The answer to what was asked of its keeper does not come any more. */
	if (w->kind != WORKLOAD_POD && w->image_job_down)
		workload_taken_down(w);
	if (i->state == INSTANCE_GONE)
		w->instance = NULL;
	loop_defer_schedule(&w->defer);
}

/* Whether it lives in i, at any depth. That of a pod is not around it: it is the pod. */
static bool workload_is_in(const struct workload *w, const struct instance *i)
{
	const struct instance *in = w->instance;

	if (in && w->kind == WORKLOAD_POD)
		in = in->parent;
	while (in && in != i)
		in = in->parent;
	return in != NULL;
}

/* Its containers will end in a moment; this is why. */
static void workloads_on_instance_stop(struct workloads *all, const struct instance *i)
{
	struct workload *w;

	list_for_each (w, &all->list, struct workload, link)
		if (!workload_has_ended(w) && !w->reason[0] && workload_is_in(w, i))
			(void)str_printf(w->reason, sizeof(w->reason),
					 "the instance %s was stopped", i->path);
}

void workloads_on_instance(struct workloads *all, struct instance *i)
{
	struct workload *w;

	if (i->state == INSTANCE_STOPPING)
		workloads_on_instance_stop(all, i);
	if (!instance_has_ended(i))
		return;
	list_for_each (w, &all->list, struct workload, link)
		if (w->instance == i)
			workload_on_instance_end(w, i);
}

void workloads_on_close(struct workloads *all, struct instance *i)
{
	struct workload *w;

	list_for_each (w, &all->list, struct workload, link)
		for (size_t n = 0; w->instance == i && n < w->n_containers; n++)
			remote_close_log(w->containers[n]);
	list_for_each (w, &all->list, struct workload, link)
		if (w->instance == i)
			remote_lose_peer(w);
}

void workloads_on_synced(struct workloads *all, struct instance *i)
{
	struct container_status lost = {
		.exit_code = 125,
		.reason = "its keeper does not know it after a restart of the daemon"
	};
	struct workload *w;

	list_for_each (w, &all->list, struct workload, link) {
		if (w->instance != i || !w->adopted || w->state == WORKLOAD_CREATED)
			continue;
		for (size_t n = 0; n < w->n_containers; n++) {
			struct pod_container *c = w->containers[n];

			if (c->seen)
				continue;
			lost.started_at = c->status.started_at;
			lost.finished_at = clock_real();
			lost.log_lost = c->status.log_lost;
			lost.state = lost.started_at ? CONTAINER_EXITED : CONTAINER_FAILED;
			pod_container_update(c, &lost);
		}
		loop_defer_schedule(&w->defer);
	}
}

/* ---- an earlier life ---- */

/* That of a pod is known by its owner too, where the daemon did not come to record it with the pod.
 */
static struct instance *workloads_find_instance(struct workloads *all, const struct workload *w,
						const char *instance_id)
{
	struct instance *i = instances_find_id(all->config.instances, instance_id);

	if (i || w->kind != WORKLOAD_POD)
		return i;
	list_for_each (i, instances_list(all->config.instances), struct instance, link)
		if (i->state != INSTANCE_GONE && str_eq(i->owner, w->id))
			return i;
	return NULL;
}

static int workloads_adopt_one(void *userdata, struct workload *w, const char *instance_id,
			       const char *attachment)
{
	struct workloads *all = userdata;
	struct error err = ERROR_INIT;
	bool remote;
	int r;

	FAILPOINT_BEFORE("boot.workload");
	w->instance = workloads_find_instance(all, w, instance_id);
	remote = w->instance ? instance_is_remote(w->instance)
			     : w->kind == WORKLOAD_POD &&
				       !instance_kind_can(w->choice.kind, INSTANCE_PASSES_FDS);
	w->adopted = true;
	all->renamed = all->renamed || !str_eq(w->handle, name_last(w->path));
	r = workload_register(all, w, &err);
	if (r < 0) {
		log_error("a recorded workload cannot be taken up", LOG_STR("workload", w->path),
			  LOG_ERR(&err));
		workload_unregister(w);
		return r == -ENOMEM ? r : 0;
	}
	if (plug_adopt(w, all->config.networks, attachment, &err) < 0)
		log_error("the network of a workload cannot be taken up",
			  LOG_STR("workload", w->path), LOG_ERR(&err));
	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];

		image_mounts_adopt(c, all->config.images);
		if (str_empty(c->image_id))
			continue;
		c->image = image_store_find(all->config.images, c->image_id, &err);
		if (!remote) {
			image_rootfs_adopt(all->config.images, c->image, c->id);
			c->has_rootfs = true;
		} else if (c->image) {
			c->image->n_users++; /* for the disk that it is in the machine */
		}
	}
	if (w->instance && !w->instance->ended && instance_is_remote(w->instance)) {
		remote_claim_disks(w);
		if (remote_claim_files(&all->config, w, &err) < 0)
			log_error("volumes of a machine are not followed",
				  LOG_STR("workload", w->path), LOG_ERR(&err));
	}
	FAILPOINT_AFTER("boot.workload");
	return 0;
}

int workloads_adopt(struct workloads *all, struct error *err)
{
	int r = reboot_restore(all, err);

	if (r == 0)
		r = record_each(all->config.store, workloads_adopt_one, all, err);
	if (r == 0)
		reboot_sweep(all);
	return r;
}

static bool workload_came_to_run(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++) {
		enum container_state state = w->containers[i]->status.state;

		if (state == CONTAINER_STARTING || state == CONTAINER_FAILED)
			return false;
	}
	return true;
}

static void workload_resume(struct workload *w)
{
	const char *gone =
		w->instance && w->instance->reason[0] ? w->instance->reason : "its keeper ended";
	struct error err = ERROR_INIT;

	w->asked = true;
	if (w->kind == WORKLOAD_VM && !workload_has_ended(w) &&
	    hosted_adopt(w, &workload_hosted_ops, &err) < 0) {
		workload_lose(w, error_text(&err));
	} else if (w->kind != WORKLOAD_VM && !workload_has_ended(w) &&
		   (!w->instance || w->instance->ended)) {
		workload_lose(w, gone);
	} else if (w->state == WORKLOAD_STARTING && (w->lasts || !workload_came_to_run(w))) {
		workload_kill(w);
		workload_lose(w, "the daemon was restarted while it started");
	} else if (w->state == WORKLOAD_STOPPING && w->stop_by > clock_mono()) {
		/* It was asked already, and some take the second time for a kill. */
		workload_end_by(w, w->stop_by);
	} else if (w->state == WORKLOAD_STOPPING) {
		workload_kill(w);
	}
	loop_defer_schedule(&w->defer);
}

static void workloads_on_orphan_gone(void *userdata, struct instance *i, const struct error *err)
{
	(void)userdata;
	if (!err && i->state == INSTANCE_FAILED)
		instance_remove(i);
}

/* What was made for a workload of which there is no record. */
static void workloads_drop_orphans(struct workloads *all)
{
	struct instance *i;

	list_for_each (i, instances_list(all->config.instances), struct instance, link)
		if (i->owner[0] && i->state != INSTANCE_GONE && !map_get(&all->by_id, i->owner))
			instance_stop(i, workloads_on_orphan_gone, NULL);
	workloads_sweep_logs(all);
}

void workloads_resume(struct workloads *all)
{
	struct workload *w;

	FAILPOINT_BEFORE("boot.resume");
	all->resumed = true;
	list_for_each (w, &all->list, struct workload, link)
		workload_resume(w);
	workloads_drop_orphans(all);
	hosted_sweep(all);
	FAILPOINT_AFTER("boot.resume");
}

void workloads_rest(struct workloads *all)
{
	all->resumed = false;
}
