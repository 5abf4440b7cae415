/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/hosted.h"

#include <errno.h>
#include <signal.h>

#include "base/log/log.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "pod/workload/hosted_cloud.h"
#include "pod/workload/workloads.h"

void hosted_leave(struct workload *w)
{
	w->cloud = hosted_cloud_free(w->cloud);
	w->machine = foreign_free(w->machine);
	w->wish = hosted_wish_free(w->wish);
}

/* ---- what the machine tells ---- */

static void hosted_on_up(void *userdata, pid_t pid)
{
	struct workload *w = userdata;
	struct pod_container *c = w->containers[0];
	struct container_view view = { .id = c->id, .cell = w->handle, .name = c->name };

	/* The machine has its files now. */
	w->wish = hosted_wish_free(w->wish);
	if (!c->starting)
		return;
	view.status.state = CONTAINER_RUNNING;
	view.status.pid = pid;
	view.status.started_at = clock_real();
	w->hosted_ops->answer(c, &view, "");
}

static void hosted_on_paused(void *userdata, bool paused)
{
	const struct workload *w = userdata;

	if (paused)
		log_warn("a machine stands still: its monitor could not write to a disk, or was "
			 "told so",
			 LOG_STR("workload", w->path));
	else
		log_info("a machine goes on", LOG_STR("workload", w->path));
}

static void hosted_on_io_error(void *userdata, const struct vm_io_error *e)
{
	const struct workload *w = userdata;

	log_warn("a disk of a machine fails", LOG_STR("workload", w->path), LOG_INT("disk", e->n),
		 LOG_STR("doing", e->writing ? "write" : "read"), LOG_STR("err", e->text),
		 LOG_STR("then", e->stopped ? "it stands still" : "its guest was told"));
}

static void hosted_ended_well(struct workload *w, const struct vm_end *end)
{
	struct pod_container *c = w->containers[0];
	bool killed = end->cause == VM_END_ASKED;
	struct container_status status = { .state = CONTAINER_EXITED,
					   .exit_code = killed ? 128 + SIGKILL : 0,
					   .signal = killed ? SIGKILL : 0,
					   .started_at = c->status.started_at,
					   .finished_at = clock_real() };

	(void)str_copy(status.reason, sizeof(status.reason), end->text);
	w->hosted_ops->update(c, &status);
}

static void hosted_on_end(void *userdata, const struct vm_end *end, const char *console)
{
	struct workload *w = userdata;
	struct pod_container *c = w->containers[0];
	bool well = end->cause == VM_END_POWERED_OFF || end->cause == VM_END_ASKED;
	char reason[sizeof(c->status.reason)];

	log_info("a machine has ended", LOG_STR("workload", w->path), LOG_STR("reason", end->text));
	hosted_leave(w);
	(void)str_printf(reason, sizeof(reason), "%.190s%s%.60s%s%.200s", end->text,
			 end->words[0] ? ": " : "", end->words,
			 *console ? "; its console ends: " : "", console);
	if (c->starting && !workload_has_ended(w))
		w->hosted_ops->answer(c, NULL, reason);
	else if (well)
		hosted_ended_well(w, end);
	else if (!workload_has_ended(w))
		w->hosted_ops->lose(w, reason);
	loop_defer_schedule(&w->defer);
}

static const struct foreign_events hosted_events = {
	.on_up = hosted_on_up,
	.on_paused = hosted_on_paused,
	.on_io_error = hosted_on_io_error,
	.on_end = hosted_on_end,
};

/* ---- what is asked of it ---- */

int hosted_start(struct workload *w, const struct hosted_ops *ops, struct error *err)
{
	struct pod_container *c = w->containers[0];
	int r;

	w->hosted_ops = ops;
	if (hosted_is_in_cloud(w))
		return hosted_cloud_start(w, err);
	r = foreign_start(&w->machine, w->all->config.foreigns, w->id, w->handle, &w->wish->spec,
			  &hosted_events, w, err);
	if (r < 0)
		return r;
	c->starting = true;
	w->n_starting++;
	return 0;
}

int hosted_adopt(struct workload *w, const struct hosted_ops *ops, struct error *err)
{
	w->hosted_ops = ops;
	if (hosted_is_in_cloud(w))
		return hosted_cloud_adopt(w, err);
	return foreign_adopt(&w->machine, w->all->config.foreigns, w->id, w->handle, &hosted_events,
			     w, err);
}

void hosted_end(struct workload *w, bool kill)
{
	if (w->cloud)
		hosted_cloud_end(w->cloud);
	if (!w->machine)
		return;
	if (kill)
		foreign_kill(w->machine);
	else
		foreign_ask_to_end(w->machine);
}

int hosted_take_down(struct workload *w, const struct hosted_ops *ops)
{
	w->hosted_ops = ops;
	/* Its end is told, and then this is asked again. */
	if (w->machine) {
		foreign_kill(w->machine);
		return -EBUSY;
	}
	w->wish = hosted_wish_free(w->wish);
	if (hosted_is_in_cloud(w))
		return hosted_cloud_take_down(w);
	return foreign_clean(w->all->config.foreigns, w->id, w->handle);
}

/* ---- what has no record ---- */

static bool hosted_knows_id(void *userdata, const char *id)
{
	const struct workloads *all = userdata;

	return map_get(&all->by_id, id) != NULL;
}

static bool hosted_knows_name(void *userdata, const char *name)
{
	const struct workloads *all = userdata;
	const struct workload *w;

	list_for_each (w, &all->list, struct workload, link)
		if (w->kind == WORKLOAD_VM && str_eq(w->handle, name))
			return true;
	return false;
}

void hosted_sweep(struct workloads *all)
{
	foreigns_sweep(all->config.foreigns, hosted_knows_id, hosted_knows_name, all);
	hosted_cloud_sweep(all);
}
