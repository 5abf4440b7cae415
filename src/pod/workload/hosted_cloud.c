/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/hosted_cloud.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "clouds/clouds.h"
#include "pod/workload/failure.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workloads.h"

/*
 * Theory of operation. The cloud's events come from within its own calls, so what they mean is
 * worked out when the loop turns (hosted_cloud_on_step()), from the state that the record of the
 * machine has then. The workload is STARTING until the cloud says that the machine runs; whatever
 * else the cloud says of one that nobody has ended is its end.
 */

struct hosted_cloud {
	struct workload *w;
	struct loop_defer step;
	bool making;  /* clouds_run() has not called back */
	bool leaving; /* its record is to go, and then the workload is told */
};

static struct clouds *hosted_clouds(const struct hosted_cloud *m)
{
	return m->w->all->config.clouds;
}

static bool hosted_cloud_is_refused(const struct error *err)
{
	return err->kind == ERROR_INVALID || err->kind == ERROR_PRECONDITION ||
	       err->kind == ERROR_EXHAUSTED;
}

/* ---- what the cloud says ---- */

static void hosted_cloud_up(struct hosted_cloud *m)
{
	struct workload *w = m->w;
	struct pod_container *c = w->containers[0];
	struct container_view view = { .id = c->id, .cell = w->handle, .name = c->name };

	w->wish = hosted_wish_free(w->wish);
	view.status.state = CONTAINER_RUNNING;
	view.status.started_at = clock_real();
	w->hosted_ops->answer(c, &view, "");
}

/* That its guest has switched it off. EC2 ends a machine that does (and says so); the others keep
 * it, stopped, and do not say who it was. */
static bool hosted_cloud_is_off(const struct cloud_view *v)
{
	return str_has_prefix(v->reason, "Client.InstanceInitiatedShutdown") ||
	       (v->state == CLOUD_STOPPED && !str_eq(v->provider, "ec2"));
}

static void hosted_cloud_over(struct hosted_cloud *m, const struct cloud_view *v, bool asked)
{
	struct workload *w = m->w;
	struct pod_container *c = w->containers[0];
	struct container_status status = { .state = CONTAINER_EXITED,
					   .exit_code = asked ? 128 + SIGKILL : 0,
					   .signal = asked ? SIGKILL : 0,
					   .started_at = c->status.started_at,
					   .finished_at = clock_real() };
	char reason[ERROR_TEXT_MAX];

	(void)str_printf(reason, sizeof(reason), "its machine in the cloud is %s%s%.300s",
			 v ? cloud_state_word(v->state) : "gone", v && *v->reason ? ": " : "",
			 v ? v->reason : "");
	log_info("a machine in the cloud has ended", LOG_STR("workload", w->path),
		 LOG_STR("reason", reason));
	(void)str_copy(status.reason, sizeof(status.reason), reason);
	if (c->starting)
		w->hosted_ops->answer(c, NULL, reason);
	else if (asked || (v && hosted_cloud_is_off(v)))
		w->hosted_ops->update(c, &status);
	else
		w->hosted_ops->lose(w, reason);
	loop_defer_schedule(&w->defer);
}

static void hosted_cloud_look(struct hosted_cloud *m)
{
	const struct cloud_vm *vm = clouds_find_workload(hosted_clouds(m), m->w->id);
	struct pod_container *c = m->w->containers[0];
	bool asked = m->w->killed || m->w->state == WORKLOAD_STOPPING;
	struct cloud_view v;

	if (!vm) {
		hosted_cloud_over(m, NULL, asked);
		return;
	}
	cloud_vm_view(vm, &v);
	if (v.state == CLOUD_RUNNING && c->starting)
		hosted_cloud_up(m);
	else if (v.state == CLOUD_EXITED || v.state == CLOUD_FAILED)
		hosted_cloud_over(m, &v, asked);
	else if ((v.state == CLOUD_ENDING || v.state == CLOUD_STOPPED) && !asked)
		hosted_cloud_over(m, &v, false);
}

static void hosted_cloud_on_step(struct loop_defer *d)
{
	struct hosted_cloud *m = container_of(d, struct hosted_cloud, step);
	struct workload *w = m->w;

	if (m->leaving && !clouds_find_workload(hosted_clouds(m), w->id)) {
		m->leaving = false;
		w->hosted_ops->taken_down(w);
	} else if (!m->leaving && !m->making && !workload_has_ended(w)) {
		hosted_cloud_look(m);
	}
}

static void hosted_cloud_on_event(void *userdata, const struct cloud_vm *vm, bool gone)
{
	const struct workloads *all = userdata;
	const struct workload *w;
	struct cloud_view v;

	(void)gone;
	cloud_vm_view(vm, &v);
	w = map_get(&all->by_id, v.workload);
	if (w && w->cloud)
		loop_defer_schedule(&w->cloud->step);
}

static void hosted_cloud_on_run(void *userdata, const struct cloud_vm *vm, const struct error *err)
{
	struct hosted_cloud *m = userdata;
	struct workload *w = m->w;

	(void)vm;
	m->making = false;
	loop_defer_schedule(&m->step);
	if (!err || workload_has_ended(w) || !w->containers[0]->starting)
		return;
	failure_keep(w, err);
	if (hosted_cloud_is_refused(err))
		(void)failure_refuse(w, err);
	w->hosted_ops->answer(w->containers[0], NULL, error_text(err));
}

/* ---- what is asked of it ---- */

static int hosted_cloud_new(struct workload *w, struct error *err)
{
	struct hosted_cloud *m = calloc(1, sizeof(*m));

	if (!m)
		return error_set(err, -ENOMEM, "a machine in a cloud");
	m->w = w;
	loop_defer_init(&m->step, w->all->config.loop, hosted_cloud_on_step);
	clouds_watch_workloads(w->all->config.clouds, hosted_cloud_on_event, w->all);
	w->cloud = m;
	return 0;
}

static int hosted_cloud_check(struct clouds *clouds, const char *provider, struct error *err)
{
	int r = clouds_check(clouds, err);

	if (r < 0 || str_eq(clouds_provider(clouds), provider))
		return r;
	return error_refuse(err, ERROR_PRECONDITION,
			    "the cloud of this node is %s (cloud.%s in the configuration), not %s",
			    clouds_provider(clouds), clouds_provider(clouds), provider);
}

int hosted_cloud_start(struct workload *w, struct error *err)
{
	struct clouds *clouds = w->all->config.clouds;
	struct pod_container *c = w->containers[0];
	const char *provider = "", *image = hosted_cloud_image(c->image_name, &provider);
	char name[NAME_LABEL_MAX + 1];
	const struct cloud_wish wish = { .name = name,
					 .image = image,
					 .type = "",
					 .cpus = w->wish->cpus,
					 .memory = w->wish->memory,
					 .workload = w->id };
	int r = hosted_cloud_new(w, err);

	if (r < 0)
		return r;
	r = hosted_cloud_check(clouds, provider, err);
	(void)str_printf(name, sizeof(name), "pod-%s", w->id);
	if (r == 0)
		r = clouds_run(clouds, &wish, hosted_cloud_on_run, w->cloud, err);
	if (r < 0) {
		if (hosted_cloud_is_refused(err))
			(void)failure_refuse(w, err);
		return r;
	}
	w->cloud->making = true;
	c->starting = true;
	w->n_starting++;
	return 0;
}

int hosted_cloud_adopt(struct workload *w, struct error *err)
{
	int r = hosted_cloud_new(w, err);

	if (r == 0)
		loop_defer_schedule(&w->cloud->step);
	return r;
}

static void hosted_cloud_on_ended(void *userdata, const struct cloud_vm *vm,
				  const struct error *err)
{
	(void)userdata;
	(void)vm;
	if (err)
		log_warn("the machine of a workload is not ended yet; it is tried again",
			 LOG_ERR(err));
}

void hosted_cloud_end(struct hosted_cloud *m)
{
	struct cloud_vm *vm = clouds_find_workload(hosted_clouds(m), m->w->id);
	struct error err = ERROR_INIT;

	if (vm && cloud_vm_stop(vm, hosted_cloud_on_ended, NULL, &err) < 0)
		log_error("the machine of a workload is not ended", LOG_STR("workload", m->w->path),
			  LOG_ERR(&err));
	loop_defer_schedule(&m->step);
}

int hosted_cloud_take_down(struct workload *w)
{
	struct cloud_vm *vm = clouds_find_workload(w->all->config.clouds, w->id);
	struct error err = ERROR_INIT;

	if (!vm)
		return 0;
	if (!w->cloud && hosted_cloud_new(w, &err) < 0)
		return -EBUSY;
	w->cloud->leaving = true;
	if (cloud_vm_remove(vm, true, hosted_cloud_on_ended, NULL, &err) == 0)
		return -EINPROGRESS;
	/* Where no cloud is configured any more: `nacre cloud ls` shows what is left. */
	log_error("the machine of a workload is not ended", LOG_STR("workload", w->path),
		  LOG_ERR(&err));
	w->cloud->leaving = false;
	return 0;
}

struct hosted_cloud *hosted_cloud_free(struct hosted_cloud *m)
{
	if (!m)
		return NULL;
	clouds_forget_run(hosted_clouds(m), m);
	loop_defer_done(&m->step);
	free(m);
	return NULL;
}

void hosted_cloud_sweep(struct workloads *all)
{
	struct clouds *clouds = all->config.clouds;
	struct cloud_vm *vm, *next;
	struct error err = ERROR_INIT;
	struct cloud_view v;

	for (vm = clouds_next(clouds, NULL); vm; vm = next) {
		next = clouds_next(clouds, vm);
		cloud_vm_view(vm, &v);
		if (!*v.workload || map_get(&all->by_id, v.workload))
			continue;
		log_warn("a machine in the cloud has no workload any more and is ended",
			 LOG_STR("workload", v.workload), LOG_STR("machine", v.instance));
		if (cloud_vm_remove(vm, true, hosted_cloud_on_ended, NULL, &err) < 0)
			log_error("it is not ended", LOG_ERR(&err));
	}
}
