/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/image.h"
#include "isolate/cgroup/limits_words.h"
#include "pod/log/log_pull.h"
#include "pod/networks/etc.h"
#include "pod/workload/alloc.h"
#include "pod/workload/container.h"
#include "pod/workload/life.h"
#include "pod/workload/member.h"
#include "pod/workload/pause.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/remote.h"
#include "pod/workload/waiter.h"
#include "store/store.h"

static int sandbox_check(const struct workload *w, const struct pod_container_spec *spec,
			 struct error *err)
{
	const char *what = w->lasts ? "sandbox" : workload_kind_word(w->kind);

	if (!w->lasts && !spec->is_debug)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is no sandbox: its containers came with it", w->path);
	if (w->state != WORKLOAD_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "the %s %s is %s", what, w->path,
				    workload_state_word(w->state));
	if (w->n_containers >= WORKLOAD_CONTAINERS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "the %s %s has %d containers already, its limit", what, w->path,
				    WORKLOAD_CONTAINERS_MAX);
	for (size_t i = 0; i < w->n_containers; i++)
		if (str_eq(w->containers[i]->name, spec->name))
			return error_refuse(err, ERROR_EXISTS,
					    "the %s %s has a container %s already", what, w->path,
					    spec->name);
	return 0;
}

static int sandbox_adopt_etc(struct workload *w, const struct etc_wish *etc, struct error *err)
{
	struct etc_wish *copy;

	if (!etc)
		return 0;
	copy = etc_wish_copy(etc);
	if (!copy)
		return error_set(err, -ENOMEM, "sandbox %s", w->path);
	(void)etc_wish_free(w->etc);
	w->etc = copy;
	return 0;
}

static int sandbox_add(struct pod_container *c, const struct pod_container_spec *spec,
		       workload_fn done, void *userdata, struct error *err)
{
	struct workload *w = c->workload;
	struct workloads *all = w->all;
	int r;

	r = pod_container_make(c, spec, 0, workload_is_remote(w), &all->config, err);
	if (r < 0)
		return r;
	if (map_add(&all->containers, c->id, c) < 0 ||
	    waiter_add(w, WAITER_CREATED, c, done, userdata) < 0)
		return error_set(err, -ENOMEM, "container %s", c->name);
	r = FAILPOINT("sandbox.create");
	if (r < 0)
		return error_set(err, r, "record container %s", c->name);
	r = record_put_container(all->config.store, c, err);
	if (r < 0)
		return r;
	FAILPOINT_AFTER("sandbox.create");
	r = member_await_root(c, err);
	if (r < 0)
		(void)run_store_drop_container(all->config.store, c->id, NULL);
	return r;
}

int sandbox_create_container(struct workload *w, const struct pod_container_spec *spec,
			     const struct etc_wish *etc, workload_fn done, void *userdata,
			     struct pod_container **ret, struct error *err)
{
	struct pod_container *c;
	int r;

	image_ballast_spend(w->all->config.images);
	r = sandbox_check(w, spec, err);
	if (r == 0)
		r = sandbox_adopt_etc(w, etc, err);
	if (r < 0)
		return r;
	c = workload_add_container(w);
	if (!c)
		return error_set(err, -ENOMEM, "container %s", spec->name);
	member_join(c);
	r = sandbox_add(c, spec, done, userdata, err);
	if (r < 0) {
		waiter_forget_container(w, c);
		if (map_get(&w->all->containers, c->id) == c)
			(void)map_remove(&w->all->containers, c->id);
		member_leave(c);
		workload_drop_container(w, c);
		remote_settle_shares(&w->all->config, w);
		return r;
	}
	publish_container(w->all->config.events, c, pod_container_state_word(c));
	loop_defer_schedule(&w->defer);
	*ret = c;
	return 0;
}

int sandbox_wait_created(struct pod_container *c, workload_fn done, void *userdata,
			 struct error *err)
{
	if (waiter_add(c->workload, WAITER_CREATED, c, done, userdata) < 0)
		return error_set(err, -ENOMEM, "wait for %s/%s", c->workload->path, c->name);
	loop_defer_schedule(&c->workload->defer);
	return 0;
}

/* Puts a word in the place of the one for the same file. -ENOMEM. */
static int sandbox_limit_put(char ***words, const char *word)
{
	size_t n = strcspn(word, "=") + 1;
	char *copy;

	for (size_t i = 0; *words && (*words)[i]; i++) {
		if (strncmp((*words)[i], word, n) != 0)
			continue;
		copy = strdup(word);
		if (!copy)
			return -ENOMEM;
		free((*words)[i]);
		(*words)[i] = copy;
		return 0;
	}
	return strv_add(words, word);
}

int sandbox_limit_created(struct pod_container *c, char *const *words, struct error *err)
{
	_cleanup_strv_ char **all = NULL;
	int r;

	if (!pod_container_is_created(c))
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s was started", c->workload->path,
				    c->name);
	if (c->limits) {
		all = strv_copy(c->limits);
		if (!all)
			return error_set(err, -ENOMEM, "limit %s", c->name);
	}
	for (size_t i = 0; words && words[i]; i++)
		if (sandbox_limit_put(&all, words[i]) < 0)
			return error_set(err, -ENOMEM, "limit %s", c->name);
	r = all ? limits_words_check(all, err) : 0;
	if (r < 0)
		return r;
	strv_free(c->limits);
	c->limits = TAKE_PTR(all);
	return 0;
}

int sandbox_start_container(struct pod_container *c, workload_fn done, void *userdata,
			    struct error *err)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	struct workload *w = c->workload;

	if (c->phase != POD_CONTAINER_CREATED)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s/%s is %s: only one that is created can be started", w->path,
				    c->name, pod_container_state_word(c));
	if (w->state != WORKLOAD_RUNNING || c->is_leaving)
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s is on its way out", w->path,
				    c->name);
	if (!workload_peer(w))
		return error_refuse(err, ERROR_UNAVAILABLE, "the instance of %s is gone", w->path);
	if (workload_is_remote(w) && etc_make_for(&etc, w, err) < 0)
		return err->code;
	if (waiter_add(w, WAITER_STARTED, c, done, userdata) < 0)
		return error_set(err, -ENOMEM, "start %s/%s", w->path, c->name);
	workload_start_container(c, &etc);
	pod_container_save(c);
	return 0;
}

int sandbox_stop_container(struct pod_container *c, int sig, nsec_t grace, workload_fn done,
			   void *userdata, struct error *err)
{
	struct workload *w = c->workload;
	nsec_t stop_by = clock_mono() + grace;

	if (pod_container_is_created(c))
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s was not started", w->path,
				    c->name);
	if (waiter_add(w, c->is_debug ? WAITER_REMOVED : WAITER_ENDED, c, done, userdata) < 0)
		return error_set(err, -ENOMEM, "stop %s/%s", w->path, c->name);
	loop_defer_schedule(&w->defer);
	if (pod_container_has_ended(c))
		return 0;
	if (c->paused)
		pause_let_go(c);
	if (!c->stop_by && grace > 0)
		pod_container_signal(c, sig);
	if (!c->stop_by || stop_by < c->stop_by)
		member_end_by(c, stop_by);
	return 0;
}

int sandbox_change_log(struct pod_container *c, int fd,
		       void (*done)(void *userdata, const struct error *err), void *userdata,
		       struct error *err)
{
	struct peer *peer = workload_peer(c->workload);
	_cleanup_fd_ int own = fd;
	int r;

	if (c->status.state != CONTAINER_RUNNING || !c->has_own_log || !peer)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s/%s is %s, and has no log that can be changed",
				    c->workload->path, c->name, pod_container_state_word(c));
	if (!workload_is_remote(c->workload)) {
		peer->ops->change_log(peer, c->id, TAKE_FD(own), done, userdata);
		return 0;
	}
	/* It could not be opened when the daemon began. */
	if (!c->log && !c->awaits_log) {
		(void)fd_close(c->log_fd);
		c->log_fd = TAKE_FD(own);
		c->log_over = false;
		remote_follow_log(&c->workload->all->config, c);
		done(userdata, NULL);
		return 0;
	}
	r = c->log ? log_pull_change(c->log, own, done, userdata) : -ENOENT;
	if (r < 0)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "the log of %s/%s cannot be changed now: try again",
				    c->workload->path, c->name);
	own = -1;
	return 0;
}

void sandbox_give_log(struct pod_container *c, int fd, const struct error *err)
{
	c->awaits_log = false;
	if (err) {
		remote_lose_log(c, err);
		return;
	}
	(void)fd_close(c->log_fd);
	c->log_fd = fd;
	remote_follow_log(&c->workload->all->config, c);
}

int sandbox_remove_container(struct pod_container *c, workload_fn done, void *userdata,
			     struct error *err)
{
	if (waiter_add(c->workload, WAITER_REMOVED, c, done, userdata) < 0)
		return error_set(err, -ENOMEM, "remove %s/%s", c->workload->path, c->name);
	c->is_leaving = true;
	c->stop_by = 0;
	loop_defer_schedule(&c->workload->defer);
	return 0;
}

int sandbox_wait_down(struct workload *w, workload_fn done, void *userdata)
{
	int r = waiter_add(w, WAITER_DOWN, NULL, done, userdata);

	if (r == 0)
		loop_defer_schedule(&w->defer);
	return r;
}
