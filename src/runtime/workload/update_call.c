/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/update_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "isolate/cgroup/limits_words.h"
#include "pod/workload/events.h"
#include "pod/workload/publish.h"
#include "pod/workload/sandbox.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/groups.h"
#include "runtime/core/pool_call.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/start/resources.h"
#include "runtime/start/settings.h"
#include "runtime/start/size.h"

struct update_call {
	struct pool_call base;
	struct arena arena;
	struct update_wish wish; /* of another family; its arena is the one above */
	struct workload_service *service;
	int top_fd;
	char group[GROUP_PATH_MAX];
	char id[ID_SIZE];              /* of the workload or instance */
	char container[ID_SIZE];       /* "": the whole */
	struct peer *peer;             /* of the keeper that has the group; NULL: it is here */
	char cell[NAME_LABEL_MAX + 1]; /* there; "": all of it, or `container` */
	char **words;
	char *added; /* settings with what changes alone */
	bool ran, kept;
	struct error error;
};

static void update_run(struct pool_call *p)
{
	struct update_call *c = container_of(p, struct update_call, base);
	_cleanup_fd_ int fd = rootfd_point(c->top_fd, c->group);

	if (fd == -ENOENT)
		(void)error_refuse(&c->error, ERROR_PRECONDITION, "it has ended meanwhile");
	else if (fd < 0)
		(void)error_set(&c->error, fd, "open its cgroup");
	else
		(void)limits_words_apply(fd, c->words, &c->error);
	c->ran = c->error.code == 0;
}

static struct pod_container *update_container(struct workload *w, const char *id)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (str_eq(w->containers[i]->id, id))
			return w->containers[i];
	return NULL;
}

/* An instance that was made for a pod is shown as that pod. */
static void update_publish_instance(struct events *events, const struct instance *i)
{
	struct event e = {
		.object = "instance",
		.id = i->id,
		.name = i->path,
		.kind = "instance",
		.state = "updated",
		.reason = i->reason,
	};

	if (!i->owner[0])
		events_publish(events, &e);
}

/* NULL without memory. */
static char *update_settings(struct update_call *c, const char *now)
{
	static char none[] = "";
	char *next = c->added ? settings_add(&c->arena, now, c->added) : (char *)(uintptr_t)now;

	next = next || c->added ? next : none;
	return next && c->wish.keep ? c->wish.keep(&c->arena, next, c->wish.userdata) : next;
}

/* The record has what the kernel has now; what is gone by then needs none. */
static int update_keep(struct update_call *c, struct error *err)
{
	bool closing = !c->service->workloads; /* the daemon ends */
	struct workload *w = closing ? NULL : workloads_find_id(c->service->workloads, c->id);
	struct instance *i = w || closing ? NULL : instances_find_id(c->service->instances, c->id);
	struct pod_container *pc = w && c->container[0] ? update_container(w, c->container) : NULL;
	const char *now = pc ? pc->settings : w ? w->settings : i ? i->settings : NULL;
	char *next;
	int r;

	c->kept = true;
	if ((!w && !i) || (c->container[0] && !pc))
		return 0;
	next = update_settings(c, now);
	if (!next)
		return error_set(err, -ENOMEM, "keep the limits");
	r = w ? workload_set_settings(w, pc, next, err) : instance_set_settings(i, next, err);
	/* Also where it was not recorded: they hold. */
	if (pc)
		publish_container(c->service->events, pc, "updated");
	else if (w)
		publish_workload(c->service->events, w, "updated");
	else
		update_publish_instance(c->service->events, i);
	return r;
}

static void update_reply(struct pool_call *p, struct rpc_call *call)
{
	Nacre__V1__UpdateResponse m = NACRE__V1__UPDATE_RESPONSE__INIT;
	struct update_call *c = container_of(p, struct update_call, base);

	if (c->ran)
		(void)update_keep(c, &c->error);
	else
		resources_blame(&c->error);
	if (c->error.code && c->wish.blame)
		c->wish.blame(&c->error);
	if (c->error.code)
		rpc_call_fail(call, &c->error);
	else if (c->wish.reply)
		c->wish.reply(call);
	else
		rpc_call_reply(call, &m.base);
}

static void update_free(struct pool_call *p)
{
	struct update_call *c = container_of(p, struct update_call, base);

	/* Also where nobody waits for the answer any more. */
	if (c->ran && !c->kept)
		(void)update_keep(c, NULL);
	arena_done(&c->arena);
	free(c);
}

static int update_whole(struct update_call *c, const struct target *t, struct error *err)
{
	bool over = t->workload ? workload_has_ended(t->workload) : instance_has_ended(t->instance);
	const char *path = t->workload ? t->workload->path : t->instance->path;

	(void)str_copy(c->id, sizeof(c->id), t->workload ? t->workload->id : t->instance->id);
	if (t->workload && t->workload->kind != WORKLOAD_POD)
		(void)str_copy(c->cell, sizeof(c->cell), t->workload->handle);
	if (!over && c->peer)
		return 0;
	if (over || (t->workload ? group_of_workload(c->service, t->workload, c->group)
				 : group_of_instance(c->service, t->instance, c->group)) < 0)
		return error_field(err, ERROR_PRECONDITION, "target", "%s does not run", path);
	return 0;
}

static int update_of(struct update_call *c, const struct pod_container *pc, struct error *err)
{
	(void)str_copy(c->id, sizeof(c->id), pc->workload->id);
	(void)str_copy(c->container, sizeof(c->container), pc->id);
	if (pc->status.state != CONTAINER_RUNNING ||
	    (!c->peer && group_of_container(c->service, pc, c->group) < 0))
		return error_field(err, ERROR_PRECONDITION, "target", "%s does not run", pc->name);
	return 0;
}

static int update_one(struct update_call *c, const Nacre__V1__UpdateRequest *q, struct error *err)
{
	struct pod_container *pc;
	int r = target_container(c->service, q->target, q->container, &pc, err);

	return r < 0 ? r : update_of(c, pc, err);
}

/* The keeper of an instance that has a kernel of its own, which is to be there. */
static int update_find_peer(struct update_call *c, const struct instance *in, struct error *err)
{
	if (!in || !instance_is_remote(in))
		return 0;
	c->peer = in->state == INSTANCE_READY ? in->peer : NULL;
	if (!c->peer)
		return error_field(err, ERROR_PRECONDITION, "target", "%s does not run", in->path);
	return 0;
}

static int update_prepare(struct update_call *c, const Nacre__V1__UpdateRequest *q,
			  struct error *err)
{
	struct instance *in;
	struct target t;
	int r;

	r = target_find(c->service, q->target, &t, err);
	if (r < 0)
		return r;
	if (q->whole && !str_empty(q->container))
		return error_field(err, ERROR_INVALID, "whole", "not with a container");
	r = target_refuse_machine(t.workload, "its size stays as it is", err);
	if (r < 0)
		return r;
	in = t.workload ? t.workload->instance : t.instance;
	r = update_find_peer(c, in, err);
	if (r < 0)
		return r;
	r = q->whole || t.instance ? update_whole(c, &t, err) : update_one(c, q, err);
	if (r == 0 && in)
		r = size_check(in, q->resources, "resources", err);
	if (r < 0)
		return r;
	r = resources_words(&c->arena, q->resources, c->peer ? -1 : c->service->cgroup_fd,
			    "resources", &c->words, err);
	if (r < 0)
		return r;
	if (!c->words)
		return error_field(err, ERROR_INVALID, "resources", "required");
	c->added = settings_of_resources(&c->arena, q->resources);
	return c->added ? 0 : error_set(err, -ENOMEM, "resources");
}

static void update_limited(void *userdata, const struct error *err)
{
	struct update_call *c = userdata;

	if (err)
		c->error = *err;
	c->ran = !err;
	pool_call_end(&c->base);
}

/* On a thread, or by the keeper that has the group. */
static void update_go(struct update_call *c, struct rpc_call *call)
{
	static const struct pool_call_ops ops = { update_run, update_reply, update_free };

	if (!c->peer) {
		pool_call_start(&c->base, &ops, c->service->pool, call);
		return;
	}
	pool_call_begin(&c->base, &ops, call);
	c->peer->ops->limit(c->peer, c->container, c->container[0] ? "" : c->cell, c->words,
			    update_limited, c);
}

int update_call_start(struct rpc_call *call, struct workload_service *s,
		      const Nacre__V1__UpdateRequest *request, struct error *err)
{
	struct update_call *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "change limits");
	c->service = s;
	c->top_fd = s->top_fd;
	r = update_prepare(c, request, err);
	if (r < 0) {
		update_free(&c->base);
		return r;
	}
	update_go(c, call);
	return 0;
}

/* ---- for another family ---- */

static int update_join(struct update_call *c, struct error *err)
{
	size_t n = strv_len(c->words), n_more = strv_len(c->wish.more);
	char **all = arena_zalloc(&c->arena, n + n_more + 1, sizeof(*all));

	if (!all)
		return error_set(err, -ENOMEM, "change limits");
	for (size_t i = 0; i < n + n_more; i++)
		all[i] = i < n ? c->words[i] : c->wish.more[i - n];
	c->words = all;
	return 0;
}

static int update_prepare_container(struct update_call *c, const struct pod_container *pc,
				    struct error *err)
{
	struct instance *in = pc->workload->instance;
	int r = update_find_peer(c, in, err);

	if (r == 0 && !pod_container_is_created(pc))
		r = update_of(c, pc, err);
	if (r == 0 && in && c->wish.resources)
		r = size_check(in, c->wish.resources, "resources", err);
	if (r == 0)
		r = resources_words(&c->arena, c->wish.resources,
				    c->peer ? -1 : c->service->cgroup_fd, "resources", &c->words,
				    err);
	if (r == 0)
		r = update_join(c, err);
	if (r < 0 || !c->wish.resources)
		return r;
	c->added = settings_of_resources(&c->arena, c->wish.resources);
	return c->added ? 0 : error_set(err, -ENOMEM, "resources");
}

/* Nothing has a group yet. */
static int update_created(struct update_call *c, struct pod_container *pc, struct error *err)
{
	char *next;
	int r = sandbox_limit_created(pc, c->words, err);

	if (r < 0)
		return r;
	next = update_settings(c, pc->settings);
	if (!next)
		return error_set(err, -ENOMEM, "keep the limits");
	r = workload_set_settings(pc->workload, pc, next, err);
	publish_container(c->service->events, pc, "updated");
	return r;
}

int update_call_start_container(struct rpc_call *call, struct workload_service *s,
				struct pod_container *pc, const struct update_wish *wish,
				struct error *err)
{
	struct update_call *c = calloc(1, sizeof(*c));
	struct arena arena = wish->arena;
	bool created = pod_container_is_created(pc);
	int r;

	if (!c) {
		arena_done(&arena);
		return error_set(err, -ENOMEM, "change limits");
	}
	c->service = s;
	c->top_fd = s->top_fd;
	c->arena = arena;
	c->wish = *wish;
	r = update_prepare_container(c, pc, err);
	if (r == 0 && created)
		r = update_created(c, pc, err);
	if (r == 0 && !created) {
		update_go(c, call);
		return 0;
	}
	if (r == 0)
		wish->reply(call);
	else
		wish->blame(err);
	update_free(&c->base);
	return r;
}
