/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart/again.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/text/str.h"
#include "image/image.h"
#include "pod/networks/etc_wish.h"
#include "pod/networks/plug.h"
#include "pod/restart/container_reset.h"
#include "pod/restart/restart.h"
#include "pod/workload/alloc.h"
#include "pod/workload/find_keeper.h"
#include "pod/workload/life.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/rename.h"
#include "pod/workload/waiter.h"

/*
 * Theory of operation. The specification makes a second workload that nobody knows; what is only
 * there until a start (commands, mounts, limits) is moved from it into the one that is known, whose
 * ids, root file systems and settings stay. From there on it is a start as any other.
 */

static void unmakep(struct workload **w)
{
	workload_unmake(*w);
}

/* ---- whether ---- */

static int again_check_kind(const struct workload *w, struct error *err)
{
	if (w->kind == WORKLOAD_EXECUTABLE || w->kind == WORKLOAD_VM)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "%s is %s, which runs once: run it anew (a pod or cell can be "
				    "started again)",
				    w->path,
				    w->kind == WORKLOAD_VM ? "a foreign machine" : "an executable");
	if (w->lasts)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "%s is a sandbox of Kubernetes, which never starts one again",
				    w->path);
	if (w->kind == WORKLOAD_POD && !instance_kind_can(w->choice.kind, INSTANCE_KEEPS_ROOTS))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "%s is a pod of kind %s, whose files were in the memory of its "
				    "machine: run it anew",
				    w->path, instance_kind_word(w->choice.kind));
	return 0;
}

int workload_check_start(const struct workload *w, struct error *err)
{
	int r = again_check_kind(w, err);

	if (r < 0)
		return r;
	if (w->state == WORKLOAD_STARTING || w->state == WORKLOAD_RUNNING)
		return 1;
	if (w->state == WORKLOAD_REMOVING || (w->auto_remove && w->state != WORKLOAD_CREATED))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is removed as soon as it has ended, and cannot be started",
				    w->path);
	return 0;
}

static int again_check(const struct workload *w, const struct workload_spec *spec,
		       struct error *err)
{
	int r = workload_check_start(w, err);

	if (r < 0)
		return r;
	if (spec->parent && instance_is_remote(spec->parent))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "%s was in an instance of kind vm, whose containers have their "
				    "files in the memory of its machine: run it anew",
				    w->path);
	if (r > 0 || !workload_has_ended(w) || !w->taken_down || w->attachment ||
	    w->awaits_keeper || w->n_starting > 0 || w->n_removing > 0 || w->n_disks > 0 ||
	    w->pausing)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "%s is %s, and is still being taken down (try again)", w->path,
				    workload_state_word(w->state));
	return keeper_check_parent(w->all, spec, err);
}

int workload_wish(const struct workload *w, char **ret, struct error *err)
{
	return record_wish(w->all->config.store, w, ret, err);
}

/* ---- its parts ---- */

static int again_match(const struct workload *w, const struct workload *n, struct error *err)
{
	bool same = w->n_containers == n->n_containers;

	for (size_t i = 0; i < w->n_containers && same; i++)
		same = str_eq(w->containers[i]->name, n->containers[i]->name) &&
		       str_eq(w->containers[i]->image_id, n->containers[i]->image_id);
	return same ? 0
		    : error_refuse(
			      err, ERROR_PRECONDITION,
			      "the containers of %s are not those of its request: remove it, and "
			      "run it anew",
			      w->path);
}

static void again_reset(struct workload *w)
{
	w->reason[0] = '\0';
	free(TAKE_PTR(w->refused));
	free(TAKE_PTR(w->failed));
	w->plug_failed = w->asked = w->killed = w->adopted = false;
	w->has_roots = w->late_due = w->start_due = w->has_disks = w->taken_down = false;
	w->grown = 0;
	w->stop_by = 0;
	w->n_kills = 0;
	w->stays = true;
	loop_timer_stop(&w->timer);
	loop_timer_stop(&w->answer);
	if (w->kind == WORKLOAD_POD && w->instance && w->instance->state == INSTANCE_FAILED)
		instance_remove(w->instance);
	w->instance = NULL;
	for (size_t i = 0; i < w->n_containers; i++)
		container_reset(w->containers[i]);
}

static void again_move(struct workload *w, struct workload *n, const struct workload_spec *spec)
{
	char **limits = w->limits;

	for (size_t i = 0; i < w->n_containers; i++)
		container_reset_move(w->containers[i], n->containers[i]);
	w->limits = n->limits;
	n->limits = limits;
	again_reset(w);
	if (w->kind != WORKLOAD_POD)
		w->instance =
			spec->parent ? spec->parent : instances_find(w->all->config.instances, "");
	rename_choose_handle(w->all, w);
}

/* ---- the start ---- */

/* Undoes what was reserved: it goes on as one that has ended. */
static int again_fail(struct workload *w, int r)
{
	loop_defer_schedule(&w->defer);
	return r;
}

static int again_reserve(struct workload *w, struct workload *n, const struct workload_spec *spec,
			 struct error *err)
{
	struct etc_wish *etc = w->etc;
	int r;

	w->etc = n->etc;
	n->etc = etc;
	r = plug_reserve(w, w->all->config.networks, spec, err);
	return r < 0 ? again_fail(w, r) : 0;
}

int workload_start(struct workload *w, const struct workload_spec *spec, bool by_policy,
		   workload_fn done, void *userdata, struct error *err)
{
	_cleanup_(unmakep) struct workload *n = NULL;
	struct workload_spec own_spec = *spec;
	struct workloads *all = w->all;
	struct error own = ERROR_INIT;
	int r = again_check(w, spec, err);

	/* Those that it has, for as long as it is there. */
	own_spec.ids = w->ids;
	spec = &own_spec;
	image_ballast_spend(all->config.images);
	if (r == 0)
		r = workload_make(spec, &all->config, &n, err);
	if (r == 0)
		r = again_match(w, n, err);
	if (r == 0)
		r = again_reserve(w, n, spec, err);
	if (r < 0)
		return r;
	if (waiter_add(w, WAITER_STARTED, NULL, done, userdata) < 0)
		return again_fail(w, error_set(err, -ENOMEM, "start %s", w->path));

	/* From here on it starts; a failure is its state. */
	again_move(w, n, spec);
	restart_begin(w, by_policy);
	r = FAILPOINT("workload.again");
	if (r < 0)
		(void)error_set(&own, r, "record workload %s", w->path);
	workload_event(w, WORKLOAD_START);
	if (r == 0)
		r = record_put_again(all->config.store, w, &own);
	FAILPOINT_AFTER("workload.again");
	if (r == 0)
		r = keeper_find(w, spec, &own);
	if (r < 0)
		workload_fail(w, &own);
	w->prepare_due = r == 0;
	loop_defer_schedule(&w->defer);
	return 0;
}
