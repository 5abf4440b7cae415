/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/storage/volumes.h"

#include <stdlib.h>

#include "base/log/log.h"
#include "base/text/str.h"
#include "pod/workload/model.h"
#include "pod/workload/workloads.h"
#include "volumes/secrets.h"
#include "volumes/volumes.h"

bool workload_has_volume(const struct workload *w, const char *id)
{
	for (size_t i = 0; i < w->n_containers; i++)
		for (char *const *v = w->containers[i]->volumes; v && *v; v++)
			if (str_eq(*v, id))
				return true;
	return false;
}

struct workload *workloads_with_volume(const struct workloads *all, const char *id,
				       const struct workload *but)
{
	struct workload *w;

	list_for_each (w, &all->list, struct workload, link)
		if (w != but && workload_has_volume(w, id))
			return w;
	return NULL;
}

/* ---- what goes with a workload ---- */

/* One of them, until it is gone. */
struct volume_leaving {
	struct volume_waiter waiter;
	struct list link; /* workload.volumes_leaving */
	struct workload *workload;
};

static void volume_leaving_free(struct volume_leaving *l)
{
	list_remove(&l->waiter.link);
	list_remove(&l->link);
	free(l);
}

static void workload_on_volume_gone(struct volume_waiter *waiter, struct volume *v,
				    const struct error *err)
{
	struct volume_leaving *l = container_of(waiter, struct volume_leaving, waiter);
	struct workload *w = l->workload;

	(void)v;
	if (err)
		log_warn("cannot remove a volume of a workload", LOG_STR("workload", w->path),
			 LOG_ERR(err));
	volume_leaving_free(l);
	loop_defer_schedule(&w->defer);
}

static void workload_drop_volume(struct workload *w, const char *id)
{
	struct volume *v = volumes_find(w->all->config.volumes, id);
	struct volume_leaving *l;
	struct error err = ERROR_INIT;

	if (!v || !v->anonymous || workloads_with_volume(w->all, id, w))
		return;
	v->unwanted = v->n_held > 0;
	if (v->unwanted)
		return;
	l = calloc(1, sizeof(*l));
	if (!l) {
		/* Nobody is told then. */
		(void)volume_remove(v, NULL, NULL);
		return;
	}
	l->workload = w;
	l->waiter.done = workload_on_volume_gone;
	list_init(&l->link);
	list_add_tail(&w->volumes_leaving, &l->link);
	if (volume_remove(v, &l->waiter, &err) < 0)
		workload_on_volume_gone(&l->waiter, NULL, &err);
}

bool workload_drop_volumes(struct workload *w)
{
	if (w->drops_volumes && !w->volumes_dropped) {
		w->volumes_dropped = true;
		for (size_t i = 0; i < w->n_containers; i++)
			for (char *const *v = w->containers[i]->own_volumes; v && *v; v++)
				workload_drop_volume(w, *v);
	}
	return list_empty(&w->volumes_leaving);
}

void workload_forget_volumes(struct workload *w)
{
	while (!list_empty(&w->volumes_leaving))
		volume_leaving_free(list_first(&w->volumes_leaving, struct volume_leaving, link));
}

/* ---- secrets ---- */

void workload_drop_secrets(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		for (char *const *v = w->containers[i]->volumes; v && *v; v++)
			if (!volumes_find(w->all->config.volumes, *v))
				secret_set_drop(w->all->config.sets_fd, *v);
}

static bool workloads_have_set(void *userdata, const char *id)
{
	return workloads_with_volume(userdata, id, NULL);
}

void workloads_collect_secrets(struct workloads *all)
{
	if (all->config.sets_fd >= 0)
		secret_sets_collect(all->config.sets_fd, workloads_have_set, all);
}
