/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/late.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "rpc/server/server.h"

struct late {
	struct list link;
	struct lates *all;
	struct rpc_call *call;
	char id[ID_SIZE];
	uint64_t rootfs, log, log_dir; /* tokens; 0: none, or taken */
	unsigned n_lost;               /* as it was before */
	bool supplied;                 /* and waits for nothing but the program */
	struct loop_timer timer;
};

static void late_free(struct late *l)
{
	rpc_call_on_cancel(l->call, NULL, NULL);
	list_remove(&l->link);
	loop_timer_done(&l->timer);
	tokens_refuse(l->all->tokens, l->rootfs);
	tokens_refuse(l->all->tokens, l->log);
	tokens_refuse(l->all->tokens, l->log_dir);
	free(l);
}

static void late_started(void *userdata, const struct container_view *view)
{
	struct late *l = userdata;
	struct rpc_call *call = l->call;
	struct lates *all = l->all;

	late_free(l);
	all->started(call, view);
}

/* late_started() follows. */
static void late_withdraw(struct late *l, enum error_kind kind, const char *why)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, kind, "%s", why);
	keeper_withdraw(l->all->keeper, l->id, &err);
}

static void late_on_cancel(struct rpc_call *call _unused_, void *data)
{
	late_withdraw(data, ERROR_CANCELLED, "its start was taken back");
}

static void late_on_timer(struct loop_timer *timer)
{
	late_withdraw(container_of(timer, struct late, timer), ERROR_ABORTED,
		      "its descriptors did not come");
}

static bool late_has(const struct late *l, uint64_t token)
{
	return token == 0 || tokens_have(l->all->tokens, token);
}

static int late_take(struct late *l, uint64_t *token)
{
	int fd = *token ? tokens_take(l->all->tokens, *token) : -1;

	*token = 0;
	return fd < 0 ? -1 : fd;
}

static void late_look(struct late *l)
{
	struct container_fds fds = CONTAINER_FDS_NONE;

	if (l->supplied)
		return;
	if (!late_has(l, l->rootfs) || !late_has(l, l->log) || !late_has(l, l->log_dir)) {
		if (l->n_lost != l->all->tokens->n_lost)
			late_withdraw(l, ERROR_EXHAUSTED, "a descriptor of it was lost on its way");
		return;
	}
	fds.rootfs = late_take(l, &l->rootfs);
	fds.log = late_take(l, &l->log);
	fds.log_dir = late_take(l, &l->log_dir);
	l->supplied = true;
	loop_timer_stop(&l->timer);
	rpc_call_on_cancel(l->call, NULL, NULL);
	keeper_supply(l->all->keeper, l->id, &fds);
}

static void lates_on_defer(struct loop_defer *d)
{
	struct lates *all = container_of(d, struct lates, defer);
	struct late *l;

	list_for_each (l, &all->list, struct late, link)
		late_look(l);
}

void lates_init(struct lates *all, struct loop *loop, struct tokens *tokens, struct keeper *keeper,
		void (*started)(void *call, const struct container_view *view))
{
	*all = (struct lates){
		.loop = loop, .tokens = tokens, .keeper = keeper, .started = started
	};
	list_init(&all->list);
	loop_defer_init(&all->defer, loop, lates_on_defer);
}

void lates_done(struct lates *all)
{
	struct late *l;

	list_for_each (l, &all->list, struct late, link)
		late_free(l);
	loop_defer_done(&all->defer);
}

void lates_look(struct lates *all)
{
	if (!list_empty(&all->list))
		loop_defer_schedule(&all->defer);
}

int lates_start(struct lates *all, struct rpc_call *call, const struct cell_spec *cell,
		const struct container_spec *spec, struct container_fds *fds, struct error *err)
{
	struct late *l = malloc(sizeof(*l));
	int r;

	if (!l)
		return error_set(err, -ENOMEM, "start container %s", spec->name);
	*l = (struct late){
		.all = all,
		.call = call,
		.rootfs = spec->rootfs_token,
		.log = spec->log_token,
		.log_dir = spec->log_dir_token,
		.n_lost = all->tokens->n_lost,
	};
	list_init(&l->link);
	loop_timer_init(&l->timer, all->loop, late_on_timer);
	(void)str_copy(l->id, sizeof(l->id), spec->id);
	r = keeper_start(all->keeper, cell, spec, fds, late_started, l, err);
	if (r < 0) {
		free(l);
		return r;
	}
	list_add_tail(&all->list, &l->link);
	loop_timer_set(&l->timer, LATE_PATIENCE);
	rpc_call_on_cancel(call, late_on_cancel, l);
	if (rpc_call_cancelled(call))
		late_on_cancel(call, l);
	lates_look(all);
	return 0;
}
