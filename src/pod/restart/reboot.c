/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart/reboot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/log/log.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "pod/workload/record.h"
#include "store/root.h"
#include "store/store.h"

#define REBOOT_REASON "the host was restarted"

/* ---- to root.db ---- */

static bool reboot_has_volumes(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->volumes && w->containers[i]->volumes[0])
			return true;
	return false;
}

/* One that is removed when it has ended is kept for its volumes, which go with it. */
static bool reboot_is_wanted(const struct workload *w)
{
	return (w->kind == WORKLOAD_POD || w->kind == WORKLOAD_CELL) && !w->lasts &&
	       instance_kind_can(w->choice.kind, INSTANCE_KEEPS_ROOTS) && !strchr(w->path, '/') &&
	       (!w->auto_remove || w->state == WORKLOAD_CREATED || reboot_has_volumes(w)) &&
	       (w->state != WORKLOAD_STARTING || w->stays);
}

static void reboot_written(void *userdata, const struct error *err)
{
	(void)userdata;
	if (err)
		log_warn("a workload is not kept for a reboot", LOG_ERR(err));
}

static void reboot_write(struct workload *w)
{
	const struct workloads_config *config = &w->all->config;
	_cleanup_str_ char *text = NULL;
	struct error err = ERROR_INIT;
	struct root_kept kept = { .id = w->id };
	int r = record_keep(config->store, w, &text, &err);

	/* That of an earlier release cannot be started again. */
	if (r < 0 && err.kind == ERROR_PRECONDITION)
		return;
	kept.text = text;
	if (r == 0)
		r = root_store_put_kept(config->kept, &kept, reboot_written, NULL, &err);
	if (r < 0)
		log_error("a workload is not kept for a reboot", LOG_STR("workload", w->path),
			  LOG_ERR(&err));
	else
		w->kept = true;
}

static void reboot_write_due(struct workloads *all)
{
	struct workload *w;

	list_for_each (w, &all->list, struct workload, link) {
		if (w->keep_due && reboot_is_wanted(w))
			reboot_write(w);
		w->keep_due = false;
	}
	all->keep_set = false;
}

static void reboot_on_timer(struct loop_timer *t)
{
	reboot_write_due(container_of(t, struct workloads, keep));
}

void reboot_init(struct workloads *all)
{
	loop_timer_init(&all->keep, all->config.loop, reboot_on_timer);
}

void reboot_done(struct workloads *all)
{
	if (all->keep_set)
		reboot_write_due(all);
	loop_timer_done(&all->keep);
	strv_free(TAKE_PTR(all->kept_ids));
}

void reboot_forget(struct workload *w)
{
	struct error err = ERROR_INIT;

	w->keep_due = false;
	if (!w->kept)
		return;
	w->kept = false;
	if (root_store_drop_kept(w->all->config.kept, w->id, NULL, NULL, &err) < 0)
		log_error("cannot drop what is kept of a workload", LOG_STR("workload", w->path),
			  LOG_ERR(&err));
}

void reboot_touch(struct workload *w)
{
	struct workloads *all = w->all;

	if (!all->config.kept)
		return;
	if (!reboot_is_wanted(w)) {
		reboot_forget(w);
		return;
	}
	w->keep_due = true;
	if (all->keep_set)
		return;
	all->keep_set = true;
	loop_timer_set(&all->keep, REBOOT_SETTLE);
}

/* ---- from root.db ---- */

/* What ran has ended with the host. */
static void reboot_end(struct run_kept *k)
{
	struct run_workload *w = &k->workload;
	bool ran = w->state < WORKLOAD_EXITED;

	w->instance = "";
	w->attachment = "";
	w->handle = ""; /* nothing of it lives under any */
	w->stop_by = 0;
	w->stays = true;
	if (!ran)
		return;
	w->state = WORKLOAD_EXITED;
	w->state_word = workload_state_word(WORKLOAD_EXITED);
	w->reason = REBOOT_REASON;
	w->stopped = w->stopped || str_eq(w->restart, restart_policy_word(RESTART_ON_FAILURE));
	for (size_t i = 0; i < k->n_containers; i++) {
		struct run_container *c = &k->containers[i];

		if (c->state >= CONTAINER_EXITED)
			continue;
		c->state = CONTAINER_EXITED;
		c->state_word = "exited";
		c->exit_code = 128 + SIGKILL;
		c->signal = SIGKILL;
		c->reason = REBOOT_REASON;
		c->finished_at = clock_real();
	}
}

static int reboot_put_back(struct run_store *s, struct run_kept *k, struct error *err)
{
	int r;

	reboot_end(k);
	r = run_store_put_workload(s, &k->workload, err);
	for (size_t i = 0; i < k->n_containers && r == 0; i++)
		r = run_store_put_container(s, &k->containers[i], err);
	return r == 0 ? run_store_put_wish(s, &k->wish, err) : r;
}

struct reboot_walk {
	struct workloads *all;
	bool restore;
	struct error *err;
};

static int reboot_each(void *data, const struct root_kept *kept)
{
	struct reboot_walk *walk = data;
	struct arena a = ARENA_INIT;
	struct run_kept k;
	int r = strv_add(&walk->all->kept_ids, kept->id);

	if (r < 0)
		return error_set(walk->err, r, "workloads");
	if (!walk->restore)
		return 0;
	r = run_kept_read(&a, kept->text, &k, walk->err);
	if (r == 0)
		r = reboot_put_back(walk->all->config.store, &k, walk->err);
	arena_done(&a);
	return r;
}

int reboot_restore(struct workloads *all, struct error *err)
{
	struct run_store *store = all->config.store;
	struct reboot_walk walk = { .all = all, .err = err };
	bool restored;
	int r, ended;

	if (!all->config.kept)
		return 0;
	r = run_store_is_restored(store, &restored, err);
	if (r < 0)
		return r;
	walk.restore = !restored;
	if (restored)
		return root_store_each_kept(all->config.kept, reboot_each, &walk, err);
	r = run_store_begin(store, err);
	if (r < 0)
		return r;
	r = root_store_each_kept(all->config.kept, reboot_each, &walk, err);
	if (r == 0)
		r = run_store_set_restored(store, err);
	ended = run_store_commit(store, r == 0 ? err : NULL);
	return r < 0 ? r : ended;
}

void reboot_sweep(struct workloads *all)
{
	struct error err = ERROR_INIT;
	struct workload *w;

	for (size_t i = 0; all->kept_ids && all->kept_ids[i]; i++) {
		w = map_get(&all->by_id, all->kept_ids[i]);
		if (w)
			w->kept = true;
		else if (root_store_drop_kept(all->config.kept, all->kept_ids[i], NULL, NULL,
					      &err) < 0)
			log_error("cannot drop what is kept of a workload", LOG_ERR(&err));
	}
	strv_free(TAKE_PTR(all->kept_ids));
	/* The daemon before may have ended in the moment between. */
	list_for_each (w, &all->list, struct workload, link)
		reboot_touch(w);
}
