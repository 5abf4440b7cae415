/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/life.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cell/start/mounts.h"
#include "image/image.h"
#include "isolate/cgroup/limits_words.h"
#include "pod/networks/etc.h"
#include "pod/networks/metadata.h"
#include "pod/networks/plug.h"
#include "pod/restart/reboot.h"
#include "pod/restart/container_restart.h"
#include "pod/restart/restart.h"
#include "pod/storage/volumes.h"
#include "pod/workload/alloc.h"
#include "pod/workload/container.h"
#include "pod/workload/failure.h"
#include "pod/workload/hosted.h"
#include "pod/workload/make.h"
#include "pod/workload/member.h"
#include "pod/workload/order.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/remote.h"
#include "pod/workload/stop_signal.h"
#include "pod/workload/waiter.h"
#include "store/store.h"

/*
 * Theory of operation. A handler records what is wanted (run, stop, remove) and returns; what the
 * keepers tell moves a workload on. Three things happen at its end, in this order: every container
 * has ended (waiters are told here), its instance or cell is taken down, its record and files are
 * removed. The second begins by itself, the third when it is asked for. An object is freed only
 * when no answer of a keeper or an instance that names it is outstanding.
 */

/* A signal may get lost together with a connection, or for want of memory. */
#define WORKLOAD_KILL_AGAIN (5 * NSEC_PER_SEC)
/* So often; then what is around its containers is ended. */
#define WORKLOAD_KILLS_MAX 2
/* The loss of a connection ends its calls, and is told to the instance: in no certain order. */
#define WORKLOAD_ANSWER_DELAY (100 * NSEC_PER_MSEC)
#define WORKLOAD_TAKE_DOWN_AGAIN (1 * NSEC_PER_SEC)
#define WORKLOAD_MACHINE_AGAIN (20 * NSEC_PER_MSEC)

static const enum workload_state edges[WORKLOAD_STATE_COUNT][WORKLOAD_EVENT_COUNT] = {
	[WORKLOAD_STARTING] = { WORKLOAD_RUNNING, WORKLOAD_STOPPING, WORKLOAD_FAILED,
				WORKLOAD_FAILED, WORKLOAD_STARTING, WORKLOAD_CREATED,
				WORKLOAD_STARTING },
	[WORKLOAD_RUNNING] = { WORKLOAD_RUNNING, WORKLOAD_STOPPING, WORKLOAD_EXITED,
			       WORKLOAD_FAILED, WORKLOAD_RUNNING, WORKLOAD_RUNNING,
			       WORKLOAD_RUNNING },
	[WORKLOAD_STOPPING] = { WORKLOAD_STOPPING, WORKLOAD_STOPPING, WORKLOAD_EXITED,
				WORKLOAD_FAILED, WORKLOAD_STOPPING, WORKLOAD_STOPPING,
				WORKLOAD_STOPPING },
	[WORKLOAD_EXITED] = { WORKLOAD_EXITED, WORKLOAD_EXITED, WORKLOAD_EXITED, WORKLOAD_EXITED,
			      WORKLOAD_REMOVING, WORKLOAD_EXITED, WORKLOAD_STARTING },
	[WORKLOAD_FAILED] = { WORKLOAD_FAILED, WORKLOAD_FAILED, WORKLOAD_FAILED, WORKLOAD_FAILED,
			      WORKLOAD_REMOVING, WORKLOAD_FAILED, WORKLOAD_STARTING },
	[WORKLOAD_REMOVING] = { WORKLOAD_REMOVING, WORKLOAD_REMOVING, WORKLOAD_REMOVING,
				WORKLOAD_REMOVING, WORKLOAD_REMOVING, WORKLOAD_REMOVING,
				WORKLOAD_REMOVING },
	[WORKLOAD_CREATED] = { WORKLOAD_CREATED, WORKLOAD_CREATED, WORKLOAD_CREATED,
			       WORKLOAD_CREATED, WORKLOAD_REMOVING, WORKLOAD_CREATED,
			       WORKLOAD_STARTING },
};

/* ---- small things ---- */

static void workload_ignore(void *userdata, const struct error *err)
{
	(void)userdata;
	(void)err;
}

static void workload_save(const struct workload *w)
{
	struct error err = ERROR_INIT;

	if (record_put_workload(w->all->config.store, w, &err) < 0)
		log_error("cannot record a workload", LOG_STR("workload", w->path), LOG_ERR(&err));
}

static void workload_enter(struct workload *w, enum workload_state state)
{
	w->state = state;
	if (state != WORKLOAD_STOPPING)
		loop_timer_stop(&w->timer);
	workload_save(w);
	reboot_touch(w);
	publish_workload(w->all->config.events, w, workload_state_word(state));
	/* What follows from it is done after the current callback; so are its waiters told. */
	loop_defer_schedule(&w->defer);
}

void workload_event(struct workload *w, enum workload_event event)
{
	enum workload_state next = edges[w->state][event];

	if (next != w->state)
		workload_enter(w, next);
}

static void workload_reason(struct workload *w, const char *reason)
{
	if (!w->reason[0])
		(void)str_copy(w->reason, sizeof(w->reason), reason);
}

/* ---- taking down ---- */

void workload_taken_down(struct workload *w)
{
	w->image_job_down = false;
	w->taken_down = true;
	if (w->n_disks == 0)
		remote_drop_disks(w);
	FAILPOINT_AFTER("workload.down");
	loop_defer_schedule(&w->defer);
}

static void workload_on_instance_gone(void *userdata, struct instance *i, const struct error *err)
{
	struct workload *w = userdata;

	(void)i;
	if (!err) {
		workload_taken_down(w);
		return;
	}
	w->image_job_down = false;
	loop_timer_set(&w->timer, WORKLOAD_TAKE_DOWN_AGAIN);
}

static void workload_on_cell_gone(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	/* An instance that is stopped takes its cells along without a word. */
	if (err && w->instance && w->instance->state == INSTANCE_READY)
		log_warn("cannot take a cell down", LOG_STR("workload", w->path), LOG_ERR(err));
	workload_taken_down(w);
}

/* The kernel may not let go of its group for an instant. */
static void workload_take_down_machine(struct workload *w)
{
	int r = hosted_take_down(w, &workload_hosted_ops);

	if (r == 0)
		workload_taken_down(w);
	if (r != -EBUSY)
		return;
	w->image_job_down = false;
	loop_timer_set(&w->timer, WORKLOAD_MACHINE_AGAIN);
}

/* Ends what is left of it in a keeper. Safe to repeat. */
static void workload_take_down(struct workload *w)
{
	struct peer *peer = workload_peer(w);

	if (w->taken_down || w->image_job_down)
		return;
	FAILPOINT_BEFORE("workload.down");
	w->image_job_down = true;
	if (w->kind == WORKLOAD_POD && w->instance)
		instance_stop(w->instance, workload_on_instance_gone, w);
	else if (w->kind == WORKLOAD_VM)
		workload_take_down_machine(w);
	else if (w->kind != WORKLOAD_POD && peer)
		peer->ops->remove_cell(peer, w->handle, workload_on_cell_gone, w);
	else
		workload_taken_down(w);
}

/* ---- ending ---- */

void workload_ask_to_end(struct workload *w)
{
	if (w->kind == WORKLOAD_VM)
		hosted_end(w, w->killed);
	/* Sidecars end behind the others (pod/workload/order.h). */
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->killed || !pod_container_is_sidecar(w->containers[i]))
			pod_container_end(w->containers[i],
					  w->killed || w->containers[i]->is_debug);
}

/* Its containers do not end by the signals that they were sent. */
static void workload_end_around(struct workload *w)
{
	struct peer *peer = workload_peer(w);

	log_warn("a workload does not end, and its keeper is to end it",
		 LOG_STR("workload", w->path));
	if (w->kind == WORKLOAD_POD && w->instance)
		instance_stop(w->instance, NULL, NULL);
	else if (w->kind != WORKLOAD_POD && peer)
		peer->ops->remove_cell(peer, w->handle, workload_ignore, NULL);
}

void workload_lose(struct workload *w, const char *reason)
{
	bool starting = w->state == WORKLOAD_STARTING && !w->stays;

	/* What a restart undoes is gone, for whoever makes the call again. */
	if (w->adopted && starting)
		log_info("what had not started when the daemon ended is undone",
			 LOG_STR("workload", w->path), LOG_STR("reason", reason));
	w->dropped = starting && w->drops_failed;
	if (starting && (w->adopted || w->drops_failed)) {
		w->auto_remove = true;
		w->drops_volumes = true;
	}
	for (size_t i = 0; i < w->n_containers; i++)
		pod_container_lose(w->containers[i], reason);
	w->n_starting = 0;
	workload_reason(w, reason);
	workload_event(w, WORKLOAD_BROKEN);
}

void workload_fail(struct workload *w, const struct error *err)
{
	failure_keep(w, err);
	workload_lose(w, error_text(err));
}

static void workload_lose_to_mute(struct workload *w)
{
	if (w->kind == WORKLOAD_POD) {
		instance_stop(w->instance, NULL, NULL);
		return;
	}
	if (instance_kill_cell(w->instance, w->handle) < 0)
		log_warn("cannot kill a cell", LOG_STR("workload", w->path));
	workload_lose(w, "it was killed past its keeper, which cannot be spoken to");
}

void workload_end_by(struct workload *w, nsec_t stop_by)
{
	bool changed = w->stop_by != stop_by;

	w->stop_by = stop_by;
	if (changed)
		workload_save(w);
	loop_timer_set(&w->timer, stop_by > clock_mono() ? stop_by - clock_mono() : 0);
}

void workload_kill(struct workload *w)
{
	bool hastened = w->stop_by > clock_mono();

	w->killed = true;
	w->stop_by = 0;
	if (hastened)
		workload_save(w);
	/* The end of its containers would never be told. */
	if (w->instance && !w->instance->ended && w->instance->mute) {
		workload_lose_to_mute(w);
		return;
	}
	FAILPOINT_BEFORE("workload.kill");
	if (w->n_kills++ < WORKLOAD_KILLS_MAX)
		workload_ask_to_end(w);
	else
		workload_end_around(w);
	FAILPOINT_AFTER("workload.kill");
	loop_timer_set(&w->timer, WORKLOAD_KILL_AGAIN);
}

/* ---- starting ---- */

/* The answer to its start: a status, or view NULL and why there is none. */
static void pod_container_started(struct pod_container *c, const struct container_view *view,
				  const char *reason)
{
	struct workload *w = c->workload;
	struct container_status failed = { .state = CONTAINER_FAILED, .exit_code = 125 };

	assert(c->starting && w->n_starting > 0);
	c->starting = false;
	c->unanswered = false;
	/* One that is to end first, and then to be started again (container_end()). */
	c->restarting = c->restarting && c->stop_by;
	c->stays = true;
	w->n_starting--;
	c->seen = true;
	FAILPOINT_BEFORE("container.started");
	if (view) {
		pod_container_update(c, &view->status);
		if (w->instance && instance_is_remote(w->instance))
			remote_follow_log(&w->all->config, c);
	} else {
		failed.finished_at = clock_real();
		(void)str_copy(failed.reason, sizeof(failed.reason), reason);
		pod_container_update(c, &failed);
	}
	FAILPOINT_AFTER("container.started");
	if (w->killed || w->state == WORKLOAD_STOPPING)
		pod_container_end(c, w->killed || c->is_debug);
	else if (c->is_leaving || c->stop_by || c->stopped)
		pod_container_end(c, c->is_leaving);
	loop_defer_schedule(&w->defer);
}

static const struct pod_container *workload_failed_container(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->status.state == CONTAINER_FAILED)
			return w->containers[i];
	return NULL;
}

/* The next containers in order; their files are there. */
static void workload_start_next(struct workload *w)
{
	const struct pod_container *first = order_first(w);
	static const struct etc no_etc = ETC_INIT;

	for (size_t i = 0; i < w->n_containers; i++)
		if (pod_container_is_created(w->containers[i]) &&
		    order_is_next(w->containers[i], first))
			workload_start_container(w->containers[i], &no_etc);
}

/* For whom others were never started. */
static void workload_tell_broken(const struct pod_container *c, char ret[WORKLOAD_REASON_MAX])
{
	if (pod_container_has_ended(c))
		(void)str_printf(ret, WORKLOAD_REASON_MAX, "the %scontainer %s ended with %d",
				 c->is_init ? "init " : "", c->name, c->status.exit_code);
	else
		(void)str_printf(ret, WORKLOAD_REASON_MAX, "the container %s is %s", c->name,
				 c->health_status == HEALTH_NONE ? "without a health check"
								 : "unhealthy");
}

static void workload_check_started(struct workload *w)
{
	const struct pod_container *failed = workload_failed_container(w), *init;
	enum order_step step = w->lasts ? ORDER_DONE : order_look(w, &init);
	char reason[WORKLOAD_REASON_MAX];

	if (w->state != WORKLOAD_STARTING || !w->asked || w->n_starting > 0 || w->killed)
		return;
	if (!failed && step == ORDER_NEXT)
		workload_start_next(w);
	if (!failed && step == ORDER_DONE) {
		workload_event(w, WORKLOAD_UP);
		instances_rest(w->all->config.instances);
	}
	if (!failed && step != ORDER_BROKEN)
		return;
	if (failed)
		(void)str_printf(reason, sizeof(reason), "container %s: %.400s", failed->name,
				 failed->status.reason);
	else
		workload_tell_broken(init, reason);
	workload_reason(w, reason);
	order_skip(w, reason);
	workload_kill(w);
}

/* Where the keeper has ended, workload_lose() says how; this is for when it has not. */
static void workload_on_answer(struct loop_timer *t)
{
	struct workload *w = container_of(t, struct workload, answer);
	char reason[CONTAINER_REASON_MAX];

	if (w->instance && instance_is_lost(w->instance) && !instance_has_ended(w->instance)) {
		loop_timer_set(&w->answer, WORKLOAD_ANSWER_DELAY);
		return;
	}
	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];

		if (!c->unanswered)
			continue;
		(void)str_copy(reason, sizeof(reason), c->status.reason);
		pod_container_started(c, NULL, reason);
	}
}

/* With the last one the workload has started: that is one thing to write. */
void workload_take_answer(struct pod_container *c, const struct container_view *view,
			  const char *reason)
{
	struct workload *w = c->workload;
	struct run_store *store = w->all->config.store;
	struct error err = ERROR_INIT;
	bool together = run_store_begin(store, NULL) == 0;

	pod_container_started(c, view, reason);
	workload_check_started(w);
	if (together && run_store_commit(store, &err) < 0)
		log_error("cannot record a start", LOG_STR("workload", w->path), LOG_ERR(&err));
}

const struct hosted_ops workload_hosted_ops = {
	.answer = workload_take_answer,
	.update = pod_container_update,
	.lose = workload_lose,
	.taken_down = workload_taken_down,
};

static void workload_on_started(void *userdata, const struct container_view *view,
				const struct error *err)
{
	struct pod_container *c = userdata;

	if (!view && (c->workload->lasts || c->is_debug))
		failure_keep_member(c, err);
	else if (!view)
		failure_refuse_limit(c->workload, c, err);
	if (view || err->kind != ERROR_UNAVAILABLE) {
		workload_take_answer(c, view, err ? error_text(err) : "");
		return;
	}
	c->unanswered = true;
	(void)str_copy(c->status.reason, sizeof(c->status.reason), error_text(err));
	loop_timer_set(&c->workload->answer, WORKLOAD_ANSWER_DELAY);
}

void workload_start_container(struct pod_container *c, const struct etc *etc)
{
	pod_container_launch(c, etc, c->workload->prepare_due, workload_on_started);
}

static void workload_start(struct workload *w)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	const struct pod_container *first;
	struct error err = ERROR_INIT;
	int r = FAILPOINT("container.start");

	if (r < 0)
		(void)error_set(&err, r, "start the containers of %s", w->path);
	else if (w->kind != WORKLOAD_VM && !workload_peer(w))
		r = error_refuse(&err, ERROR_UNAVAILABLE, "the instance of %s is gone", w->path);
	/* A pod's group is that of its instance; any other's is made by its keeper, and that of
	 * another kernel was limited by its keeper before it was ready. */
	else if (w->kind == WORKLOAD_VM)
		r = hosted_start(w, &workload_hosted_ops, &err);
	else if (w->kind == WORKLOAD_POD && !instance_is_remote(w->instance))
		r = limits_words_apply(w->instance->cgroup_fd, w->limits, &err);
	if (r >= 0 && w->kind != WORKLOAD_VM && instance_is_remote(w->instance))
		r = etc_make_for(&etc, w, &err);
	if (r < 0) {
		failure_refuse_limit(w, NULL, &err);
		workload_fail(w, &err);
		return;
	}
	w->asked = true;
	order_hold(w);
	first = order_first(w);
	for (size_t i = 0; w->kind != WORKLOAD_VM && i < w->n_containers; i++)
		if (order_is_next(w->containers[i], first))
			workload_start_container(w->containers[i], &etc);
	FAILPOINT_AFTER("container.start");
}

void workload_on_instance_ready(void *userdata, struct instance *i, const struct error *err)
{
	struct workload *w = userdata;

	(void)i;
	w->awaits_keeper = false;
	if (!err)
		w->start_due = true;
	else if (!workload_has_ended(w))
		workload_fail(w, err);
	loop_defer_schedule(&w->defer);
}

/* ---- removing ---- */

/* Nobody finds it any more; its names are free. */
static void workload_hide(struct workload *w)
{
	if (map_get(&w->all->by_path, w->path) == w)
		(void)map_remove(&w->all->by_path, w->path);
	if (map_get(&w->all->by_id, w->id) == w)
		(void)map_remove(&w->all->by_id, w->id);
	for (size_t i = 0; i < w->n_containers; i++)
		if (map_get(&w->all->containers, w->containers[i]->id) == w->containers[i])
			(void)map_remove(&w->all->containers, w->containers[i]->id);
	list_remove(&w->link);
}

void workload_unregister(struct workload *w)
{
	loop_timer_done(&w->timer);
	loop_timer_done(&w->answer);
	restart_done(w);
	loop_defer_done(&w->defer);
	for (size_t i = 0; i < w->n_containers; i++) {
		remote_close_log(w->containers[i]);
		member_leave(w->containers[i]);
	}
	workload_forget_roots(w, w->all->config.images);
	metadata_end(w);
	workload_hide(w);
	waiter_forget(w, NULL);
	workload_unmake(w);
}

/* The last step, when nothing of it lives in a keeper and nobody there names it. Frees w. */
static void workload_finish_removal(struct workload *w)
{
	struct workloads *all = w->all;
	struct error err = ERROR_INIT;

	if (!w->taken_down || w->n_starting > 0 || w->n_removing > 0 || w->awaits_keeper ||
	    w->n_disks > 0 || !plug_is_released(w))
		return;
	/* Before its record: what is left of a killed daemon is gone on with. */
	if (!workload_drop_volumes(w))
		return;
	if (w->kind == WORKLOAD_POD && w->instance && w->instance->state == INSTANCE_FAILED)
		instance_remove(w->instance);
	w->instance = NULL;
	FAILPOINT_BEFORE("workload.files");
	for (size_t i = 0; i < w->n_containers; i++)
		pod_container_drop_root(w->containers[i]);
	workload_drop_secrets(w);
	if (rootfd_remove_tree(all->config.logs_fd, w->id) < 0) {
		log_warn("cannot remove the logs of a workload yet", LOG_STR("workload", w->path));
		loop_timer_set(&all->sweep, WORKLOADS_SWEEP_FIRST);
	}
	FAILPOINT_AFTER("workload.files");
	FAILPOINT_BEFORE("workload.forget");
	if (run_store_drop_workload(all->config.store, w->id, &err) < 0)
		log_error("cannot drop a record", LOG_STR("workload", w->path), LOG_ERR(&err));
	reboot_forget(w);
	FAILPOINT_AFTER("workload.forget");
	publish_workload(all->config.events, w, "removed");
	/* One that is told may make another of the same name at once. */
	workload_hide(w);
	waiter_tell_removed(w);
	workload_unregister(w);
}

/* ---- what the loop makes true ---- */

static bool workload_all_ended(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (!container_is_over(w->containers[i]))
			return false;
	return !members_have_debug(w);
}

static void workload_check_ended(struct workload *w)
{
	if (w->lasts && w->state != WORKLOAD_STOPPING)
		return;
	if (workload_has_ended(w) || w->n_starting > 0 || !w->asked)
		return;
	if (!w->lasts && order_is_over(w)) {
		order_end_sidecars(w);
		members_end_debug(w);
	}
	if (!workload_all_ended(w))
		return;
	FAILPOINT_BEFORE("workload.end");
	workload_event(w, WORKLOAD_ENDED);
	FAILPOINT_AFTER("workload.end");
}

/* Each start that waits for its descriptors gets them; or none does. */
static void workload_settle_late(struct workload *w, bool give)
{
	struct peer *peer = workload_peer(w);

	w->late_due = false;
	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];

		if (!c->late)
			continue;
		c->late = false;
		if (!peer)
			container_fds_close(&c->fds);
		else if (give)
			peer->ops->give(peer, c->id, &c->fds);
		else
			peer->ops->withdraw(peer, c->id);
	}
}

/* Nothing of it is held but its files. */
static void workload_finish_creation(struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		container_fds_close(&w->containers[i]->fds);
	w->late_due = false;
	w->create_only = false;
	w->stays = true;
	w->taken_down = true;
	FAILPOINT_BEFORE("workload.created");
	workload_event(w, WORKLOAD_MADE);
	FAILPOINT_AFTER("workload.created");
}

/* Its containers' files, while its keeper answers to hello or makes ready what needs none. */
static void workload_make_files(struct workload *w)
{
	const struct workloads_config *config = &w->all->config;
	struct error err = ERROR_INIT;
	int r;

	w->prepare_due = false;
	/* One that was asked for is gone on with, whatever is wanted of it by now. */
	if (w->asked ? workload_has_ended(w) : w->state != WORKLOAD_STARTING) {
		workload_settle_late(w, false);
		return;
	}
	/* That its instance is its own is written when it has started; until then the instance's
	 * record says whose it is. */
	image_ballast_spend(config->images);
	r = workload_prepare(w, config->images, config->logs_fd, &err);
	w->late_due = r == 0;
	if (r < 0) {
		workload_settle_late(w, false);
		workload_fail(w, &err);
	} else if (w->create_only) {
		workload_finish_creation(w);
	}
}

/* What this node cannot do, or has no room for, is told as the failure of the call. */
static void workload_lose_root(struct workload *w, const struct error *err)
{
	if (err->kind == ERROR_PRECONDITION || err->kind == ERROR_EXHAUSTED)
		(void)failure_refuse(w, err);
	workload_fail(w, err);
}

static void workload_on_root(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	w->n_roots--;
	if (err && !workload_has_ended(w))
		workload_lose_root(w, err);
	loop_defer_schedule(&w->defer);
}

/* Whether it has to wait for what its root file systems lie upon first. One that does not start any
 * more waits for nothing. */
static bool workload_gets_roots(struct workload *w)
{
	const struct workloads_config *config = &w->all->config;
	struct error err = ERROR_INIT;
	bool starts = w->prepare_due && w->state == WORKLOAD_STARTING;

	if (starts && !w->has_roots && !(w->instance && instance_is_remote(w->instance))) {
		w->has_roots = true;
		if (workload_await_roots(w, config->images, workload_on_root, &err) < 0)
			workload_lose_root(w, &err);
	}
	if (w->state != WORKLOAD_STARTING)
		workload_forget_roots(w, config->images);
	return w->n_roots > 0;
}

/* Whether its keeper can be asked before there are files. That has begun when the loop turns. */
static bool workload_starts_early(const struct workload *w)
{
	struct peer *peer = workload_peer(w);

	return w->prepare_due && w->start_due && w->state == WORKLOAD_STARTING && !w->lasts &&
	       w->kind != WORKLOAD_EXECUTABLE && plug_has_netns(w) && peer && peer->ops->late &&
	       peer->ops->late(peer);
}

static void workload_on_disks(struct workload *w)
{
	w->has_disks = !w->disk_error.code;
	if (!w->has_disks && !workload_has_ended(w))
		workload_fail(w, &w->disk_error);
	w->start_due = w->has_disks;
	loop_defer_schedule(&w->defer);
}

/* Whether it has to wait for disks first. */
static bool workload_gets_disks(struct workload *w)
{
	struct error err = ERROR_INIT;

	if (w->has_disks || w->lasts || !workload_is_remote(w))
		return false;
	if (w->n_disks == 0 && remote_put_disks(&w->all->config, w, workload_on_disks, &err) < 0)
		workload_fail(w, &err);
	return true;
}

/* As plug_is_awaited(), with its metadata service. */
static int workload_awaits_network(struct workload *w, struct error *err)
{
	int plug = plug_is_awaited(w, err),
	    metadata = plug < 0 ? plug : metadata_is_awaited(w, err);

	return metadata < 0 ? metadata : MAX(plug, metadata);
}

static void workload_on_defer(struct loop_defer *d)
{
	struct workload *w = container_of(d, struct workload, defer);
	struct error err = ERROR_INIT;
	int awaits_plug = workload_awaits_network(w, &err);

	if (awaits_plug < 0)
		workload_fail(w, &err);
	if (w->save_due)
		workload_save(w);
	w->save_due = false;
	if (workload_gets_roots(w))
		return;
	if (workload_starts_early(w)) {
		w->start_due = false;
		workload_start(w);
		loop_defer_schedule(&w->defer);
		return;
	}
	if (w->prepare_due && !(awaits_plug > 0 && plug_chooses_address(w)))
		workload_make_files(w);
	if (w->late_due && awaits_plug <= 0)
		workload_settle_late(w, !workload_has_ended(w));
	if (w->start_due && w->state == WORKLOAD_STARTING && awaits_plug > 0)
		return;
	if (w->start_due && w->state == WORKLOAD_STARTING && !workload_gets_disks(w))
		workload_start(w);
	w->start_due = false;
	workload_check_started(w);
	container_restart_look(w);
	members_settle(w);
	if (!w->lasts && w->asked && (w->killed || w->state == WORKLOAD_STOPPING))
		order_skip(w, "its workload was stopped");
	workload_check_ended(w);
	waiter_tell_due(w);
	if (!workload_has_ended(w))
		return;
	metadata_end(w);
	if (w->auto_remove && w->state != WORKLOAD_CREATED)
		workload_event(w, WORKLOAD_REMOVE);
	workload_take_down(w);
	if (w->taken_down && plug_is_released(w) && !members_have_debug(w)) {
		restart_look(w);
		waiter_tell_down(w);
	}
	if (w->state == WORKLOAD_REMOVING)
		workload_finish_removal(w);
}

static void workload_on_timer(struct loop_timer *t)
{
	struct workload *w = container_of(t, struct workload, timer);

	if (workload_has_ended(w))
		loop_defer_schedule(&w->defer);
	else
		workload_kill(w);
}

int workload_register(struct workloads *all, struct workload *w, struct error *err)
{
	int r;

	w->all = all;
	loop_timer_init(&w->timer, all->config.loop, workload_on_timer);
	loop_timer_init(&w->answer, all->config.loop, workload_on_answer);
	restart_init(w);
	loop_defer_init(&w->defer, all->config.loop, workload_on_defer);
	r = map_add(&all->by_path, w->path, w);
	if (r == -EEXIST)
		return error_refuse(err, ERROR_EXISTS, "the name %s is taken by a %s", w->path,
				    workload_kind_word(w->kind));
	if (r == 0)
		r = map_add(&all->by_id, w->id, w);
	for (size_t i = 0; i < w->n_containers; i++)
		member_join(w->containers[i]);
	for (size_t i = 0; i < w->n_containers && r == 0; i++)
		r = map_add(&all->containers, w->containers[i]->id, w->containers[i]);
	if (r < 0)
		return error_set(err, r, "workload %s", w->path);
	list_add_tail(&all->list, &w->link);
	return 0;
}
