/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/workload.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/image.h"
#include "pod/networks/change.h"
#include "pod/networks/plug.h"
#include "pod/restart/reboot.h"
#include "pod/restart/restart.h"
#include "pod/restart/sweep.h"
#include "pod/storage/image_mounts.h"
#include "pod/workload/find_keeper.h"
#include "pod/workload/life.h"
#include "pod/workload/pause.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/rename.h"
#include "pod/workload/waiter.h"

/* ---- running ---- */

static int workload_check_room(const struct workloads *all, struct error *err)
{
	return all->by_id.n < WORKLOADS_MAX
		       ? 0
		       : error_refuse(err, ERROR_EXHAUSTED,
				      "this node has %d workloads already, its limit",
				      WORKLOADS_MAX);
}

/* The name must not be that of an instance, nor that of the cell that the pod around it has. */
static int workload_check_name(const struct workload *w, const struct instance *parent,
			       struct error *err)
{
	if (instances_find(w->all->config.instances, w->path))
		return error_refuse(err, ERROR_EXISTS, "the name %s is taken by an instance",
				    w->path);
	if (w->kind != WORKLOAD_POD && parent && parent->owner[0] &&
	    str_eq(name_last(w->path), name_last(parent->path)))
		return error_refuse(err, ERROR_EXISTS, "the name %s is taken by the pod %s itself",
				    w->path, parent->path);
	return 0;
}

static int workload_begin(struct workload *w, const struct workload_spec *spec, workload_fn done,
			  void *userdata, struct error *err)
{
	int r;

	r = workload_check_name(w, spec->parent, err);
	if (r < 0)
		return r;
	r = waiter_add(w, WAITER_STARTED, NULL, done, userdata);
	if (r < 0)
		return error_set(err, r, "workload %s", w->path);
	if (!spec->create_only) {
		r = plug_reserve(w, w->all->config.networks, spec, err);
		if (r < 0)
			return r;
	}
	r = FAILPOINT("workload.create");
	if (r < 0)
		return error_set(err, r, "record workload %s", w->path);
	r = record_put_all(w->all->config.store, w, spec->wish, err);
	if (r == 0)
		FAILPOINT_AFTER("workload.create");
	return r;
}

/* The specification with ids of its own, where it asks for some. */
static int workload_choose_ids(const struct workloads *all, const struct workload_spec **spec,
			       struct workload_spec *chosen, struct error *err)
{
	struct ids_taken taken;
	const struct workload *w;

	if (!(*spec)->users || isolate_ids_are_set(&(*spec)->ids))
		return 0;
	ids_taken_init(&taken, &all->config.ids);
	list_for_each (w, &all->list, struct workload, link)
		ids_taken_add(&taken, &w->ids);
	*chosen = **spec;
	*spec = chosen;
	return ids_choose(&taken, &chosen->ids, err);
}

int workload_run(struct workloads *all, const struct workload_spec *spec, workload_fn done,
		 void *userdata, struct workload **ret, struct error *err)
{
	struct error own = ERROR_INIT;
	struct workload_spec chosen;
	struct workload *w = NULL;
	int r;

	image_ballast_spend(all->config.images);
	r = workload_check_room(all, err);
	if (r == 0)
		r = keeper_check_parent(all, spec, err);
	if (r < 0)
		return r;
	r = workload_choose_ids(all, &spec, &chosen, err);
	if (r == 0)
		r = workload_make(spec, &all->config, &w, err);
	if (r < 0)
		return r;
	if (w->kind != WORKLOAD_POD && w->kind != WORKLOAD_VM && !w->instance)
		w->instance = instances_find(all->config.instances, "");
	rename_choose_handle(all, w);
	r = workload_register(all, w, err);
	if (r == 0)
		r = workload_begin(w, spec, done, userdata, err);
	if (r < 0) {
		workload_unregister(w);
		return r;
	}
	publish_workload(all->config.events, w, workload_state_word(w->state));

	/* From here on it exists; a failure is its state. */
	if (!w->create_only)
		r = keeper_find(w, spec, &own);
	if (r < 0)
		workload_fail(w, &own);
	w->prepare_due = r == 0 && w->kind != WORKLOAD_VM;
	w->wish = spec->machine;
	loop_defer_schedule(&w->defer);
	*ret = w;
	return 0;
}

/* ---- ending ---- */

static void workload_no_memory(struct workload *w, const char *what, workload_fn done,
			       void *userdata)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "%s %s", what, w->path);
	done(userdata, w, &err);
}

void workload_end(struct workload *w, nsec_t grace, workload_fn done, void *userdata)
{
	struct error err = ERROR_INIT;

	if (waiter_add(w, WAITER_IDLE, NULL, done, userdata) < 0) {
		workload_no_memory(w, "stop", done, userdata);
		return;
	}
	if (FAILPOINT("workload.stop") < 0)
		log_warn("failpoint workload.stop", LOG_STR("workload", w->path));
	loop_defer_schedule(&w->defer);
	if (workload_has_ended(w))
		return;
	workload_event(w, WORKLOAD_STOP);
	if (!w->asked) {
		(void)error_refuse(&err, ERROR_ABORTED, "it was stopped while it started");
		workload_fail(w, &err);
	} else if (grace == 0) {
		pause_end(w);
		workload_kill(w);
	} else if (!w->killed) {
		pause_end(w);
		workload_ask_to_end(w);
		workload_end_by(w, clock_mono() + grace);
	}
	FAILPOINT_AFTER("workload.stop");
}

void workload_stop(struct workload *w, nsec_t grace, workload_fn done, void *userdata)
{
	restart_rest(w);
	workload_end(w, grace, done, userdata);
}

void workload_stop_for(struct workload *w, const char *reason)
{
	if (!w->reason[0])
		(void)str_copy(w->reason, sizeof(w->reason), reason);
	workload_end(w, 0, NULL, NULL);
}

void workload_wait(struct workload *w, struct pod_container *container, workload_fn done,
		   void *userdata)
{
	if (waiter_add(w, WAITER_ENDED, container, done, userdata) < 0)
		workload_no_memory(w, "wait for", done, userdata);
	else
		loop_defer_schedule(&w->defer);
}

void workload_wait_health(struct workload *w, struct pod_container *container, bool healthy,
			  workload_fn done, void *userdata)
{
	if (waiter_add(w, healthy ? WAITER_HEALTHY : WAITER_UNHEALTHY, container, done, userdata) <
	    0)
		workload_no_memory(w, "wait for", done, userdata);
	else
		loop_defer_schedule(&w->defer);
}

void workload_wait_started(struct workload *w, workload_fn done, void *userdata)
{
	if (waiter_add(w, WAITER_STARTED, NULL, done, userdata) < 0)
		workload_no_memory(w, "wait for", done, userdata);
	else
		loop_defer_schedule(&w->defer);
}

int workload_wait_container_started(struct pod_container *c, workload_fn done, void *userdata,
				    struct error *err)
{
	if (waiter_add(c->workload, WAITER_STARTED, c, done, userdata) < 0)
		return error_set(err, -ENOMEM, "wait for %s/%s", c->workload->path, c->name);
	loop_defer_schedule(&c->workload->defer);
	return 0;
}

bool workload_is_leaving(const struct workload *w)
{
	return w->state == WORKLOAD_REMOVING ||
	       (w->auto_remove && workload_has_ended(w) && w->state != WORKLOAD_CREATED);
}

void workload_forget_waiter(struct workload *w, void *userdata)
{
	waiter_forget(w, userdata);
}

int workload_remove(struct workload *w, bool force, workload_fn done, void *userdata,
		    struct error *err)
{
	int r;

	if (!workload_has_ended(w) && !force)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is %s: stop it first, or remove it with force", w->path,
				    workload_state_word(w->state));
	image_ballast_spend(w->all->config.images);
	r = FAILPOINT("workload.remove");
	if (r < 0)
		return error_set(err, r, "remove %s", w->path);
	r = waiter_add(w, WAITER_REMOVED, NULL, done, userdata);
	if (r < 0)
		return error_set(err, r, "remove %s", w->path);
	w->auto_remove = true;
	/* Nothing else moves one on that was not started. */
	if (w->state == WORKLOAD_CREATED)
		workload_event(w, WORKLOAD_REMOVE);
	else if (workload_has_ended(w))
		loop_defer_schedule(&w->defer);
	else
		workload_stop(w, 0, NULL, NULL);
	FAILPOINT_AFTER("workload.remove");
	return 0;
}

/* ---- all of them ---- */

const struct list *workloads_list(const struct workloads *all)
{
	return &all->list;
}

struct workload *workloads_find(struct workloads *all, const char *target)
{
	struct workload *w = map_get(&all->by_path, target);

	return w ? w : map_get(&all->by_id, target);
}

struct workload *workloads_find_id(const struct workloads *all, const char *id)
{
	return map_get(&all->by_id, id);
}

struct pod_container *workloads_find_container(const struct workloads *all, const char *id)
{
	return map_get(&all->containers, id);
}

int workloads_new(struct workloads **ret, const struct workloads_config *config)
{
	struct workloads *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->config = *config;
	list_init(&all->list);
	workloads_init_sweep(all);
	reboot_init(all);
	mirrors_init(&all->mirrors, config->loop, &config->guard);
	all->config.mirrors = &all->mirrors;
	names_init(&all->names, config->loop, &all->list, &all->containers);
	guests_init(&all->guests, config->loop);
	*ret = all;
	return 0;
}

struct workloads *workloads_free(struct workloads *all)
{
	struct workload *w;

	if (!all)
		return NULL;
	list_for_each (w, &all->list, struct workload, link)
		waiter_tell_end(w);
	names_done(&all->names);
	guests_done(&all->guests);
	reboot_done(all);
	list_for_each (w, &all->list, struct workload, link) {
		/* What it holds of images lives on with its containers. */
		for (size_t i = 0; i < w->n_containers; i++) {
			w->containers[i]->image = NULL;
			image_mounts_forget(w->containers[i]);
		}
		instances_forget_waiter(all->config.instances, w);
		workload_unregister(w);
	}
	loop_timer_done(&all->sweep);
	mirrors_done(&all->mirrors);
	map_done(&all->by_path);
	map_done(&all->by_id);
	map_done(&all->containers);
	free(all);
	return NULL;
}

int workload_set_settings(struct workload *w, struct pod_container *c, const char *settings,
			  struct error *err)
{
	struct run_store *store = w->all->config.store;
	char *copy = strdup(settings), **at = c ? &c->settings : &w->settings;

	if (!copy)
		return error_set(err, -ENOMEM, "workload %s", w->path);
	free(*at);
	*at = copy;
	if (!c && w->change)
		w->change->stale = true;
	reboot_touch(w);
	return c ? record_put_container(store, c, err) : record_put_workload(store, w, err);
}

int pod_container_open_root(const struct pod_container *c, struct error *err)
{
	int fd;

	if (c->fds.rootfs >= 0) {
		fd = fd_copy(c->fds.rootfs);
		return fd < 0 ? error_set(err, fd, "open its root") : fd;
	}
	if (c->has_rootfs &&
	    (c->status.state > CONTAINER_RUNNING || c->workload->state == WORKLOAD_CREATED))
		return image_rootfs_open(c->workload->all->config.images, c->image, c->id, err);
	return error_refuse(err, ERROR_PRECONDITION, "%s/%s is %s, and has no files",
			    c->workload->path, c->name, pod_container_state_word(c));
}

int pod_container_open_changes(const struct pod_container *c, int *ret_image_fd, struct error *err)
{
	struct image_store *images = c->workload->all->config.images;
	_cleanup_fd_ int upper_fd = -1;
	int r;

	if (!c->has_rootfs)
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s is %s, and has no files",
				    c->workload->path, c->name, pod_container_state_word(c));
	if (!c->image)
		return error_refuse(err, ERROR_PRECONDITION, "the image of %s/%s is gone",
				    c->workload->path, c->name);
	upper_fd = image_rootfs_open_changes(images, c->id, err);
	if (upper_fd < 0 && err->kind == ERROR_PRECONDITION && c->status.state == CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s/%s runs with a limit of its disk, on a file system that "
				    "nobody else can have meanwhile: stop it first",
				    c->workload->path, c->name);
	if (upper_fd < 0)
		return error_wrap(err, upper_fd, "%s/%s", c->workload->path, c->name);
	r = image_view_open(images, c->image, NULL, err);
	if (r < 0)
		return r;
	*ret_image_fd = r;
	return TAKE_FD(upper_fd);
}
