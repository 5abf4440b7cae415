/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/pause_call.h"

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup_watch.h"
#include "pod/workload/pause.h"
#include "pod/workload/publish.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/pool_call.h"
#include "runtime/core/target.h"
#include "runtime/services.h"

#define PAUSE_TIMEOUT_MS 5000

struct pausing {
	struct pool_call base;
	struct workload_service *service;
	char id[ID_SIZE];
	bool pause; /* else unpause */
	int fds[WORKLOAD_CONTAINERS_MAX];
	size_t n;
	struct error err;
};

/* ---- on the thread ---- */

static int pausing_one(const struct pausing *p, size_t i, struct error *err)
{
	return p->pause ? cgroup_freeze(p->fds[i], PAUSE_TIMEOUT_MS, err)
			: cgroup_thaw(p->fds[i], PAUSE_TIMEOUT_MS, err);
}

static void pausing_run(struct pool_call *base)
{
	struct pausing *p = container_of(base, struct pausing, base);
	struct error ignored = ERROR_INIT;
	size_t i = 0;

	while (i < p->n && pausing_one(p, i, &p->err) >= 0)
		i++;
	if (i == p->n || !p->pause)
		return;
	/* All of them, or none. */
	while (i-- > 0)
		(void)cgroup_thaw(p->fds[i], PAUSE_TIMEOUT_MS, &ignored);
}

/* ---- and behind it ---- */

/* What the kernel has now. One that was told to end meanwhile is not left in its way. */
static void pausing_settle(const struct pausing *p)
{
	struct workloads *all = p->service->workloads;
	struct workload *w = all ? workloads_find_id(all, p->id) : NULL;
	bool was;

	/* The next life of the daemon asks the kernel itself. */
	if (!w)
		return;
	w->pausing = false;
	was = workload_is_paused(w);
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->status.state == CONTAINER_RUNNING)
			pause_look(w->containers[i]);
	if (w->state != WORKLOAD_RUNNING)
		pause_end(w);
	if (workload_is_paused(w) != was)
		publish_workload(p->service->events, w, was ? "unpaused" : "paused");
}

static void pausing_reply(struct pool_call *base, struct rpc_call *call)
{
	struct pausing *p = container_of(base, struct pausing, base);
	Nacre__V1__PauseResponse paused = NACRE__V1__PAUSE_RESPONSE__INIT;
	Nacre__V1__UnpauseResponse unpaused = NACRE__V1__UNPAUSE_RESPONSE__INIT;

	if (p->err.code)
		rpc_call_fail(call, &p->err);
	else
		rpc_call_reply(call, p->pause ? &paused.base : &unpaused.base);
}

static void pausing_free(struct pool_call *base)
{
	struct pausing *p = container_of(base, struct pausing, base);

	pausing_settle(p);
	for (size_t i = 0; i < p->n; i++)
		(void)fd_close(p->fds[i]);
	free(p);
}

/* ---- the call ---- */

static int pausing_check(const struct workload *w, struct error *err)
{
	int r = target_refuse_machine(w, "which cannot be paused", err);

	if (r < 0)
		return r;
	if (w->state != WORKLOAD_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "%s is %s, not running", w->path,
				    workload_state_word(w->state));
	if (w->instance && instance_is_remote(w->instance))
		return error_field(err, ERROR_UNSUPPORTED, "target",
				   "%s runs behind a kernel of its own, where nothing is paused",
				   w->path);
	if (w->pausing)
		return error_refuse(err, ERROR_ABORTED,
				    "another call pauses or unpauses %s at this moment", w->path);
	return 0;
}

static int pausing_open(struct pausing *p, const struct workload *w, struct error *err)
{
	for (size_t i = 0; i < w->n_containers; i++) {
		int fd;

		if (w->containers[i]->status.state != CONTAINER_RUNNING)
			continue;
		fd = pause_open_group(w->containers[i]);
		if (fd < 0)
			return error_set(err, fd, "open the cgroup of %s/%s", w->path,
					 w->containers[i]->name);
		p->fds[p->n++] = fd;
	}
	return 0;
}

static int pausing_begin(struct rpc_call *call, struct workload_service *s, const char *target,
			 bool pause, struct error *err)
{
	static const struct pool_call_ops ops = { pausing_run, pausing_reply, pausing_free };
	struct pausing *p;
	struct target t;
	int r = target_find(s, target, &t, err);

	if (r < 0)
		return r;
	if (!t.workload)
		return error_field(err, ERROR_INVALID, "target",
				   "%s is an instance: pause the workloads in it",
				   t.instance->path);
	r = pausing_check(t.workload, err);
	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(err, -ENOMEM, "pause %s", t.workload->path);
	p->service = s;
	p->pause = pause;
	(void)str_copy(p->id, sizeof(p->id), t.workload->id);
	r = pausing_open(p, t.workload, err);
	if (r < 0) {
		for (size_t i = 0; i < p->n; i++)
			(void)fd_close(p->fds[i]);
		free(p);
		return r;
	}
	t.workload->pausing = true;
	pool_call_start(&p->base, &ops, s->pool, call);
	return 0;
}

void pause_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__PauseRequest *q = (const Nacre__V1__PauseRequest *)(const void *)request;
	struct error err = ERROR_INIT;

	if (pausing_begin(call, userdata, q->target, true, &err) < 0)
		rpc_call_fail(call, &err);
}

void unpause_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__UnpauseRequest *q =
		(const Nacre__V1__UnpauseRequest *)(const void *)request;
	struct error err = ERROR_INIT;

	if (pausing_begin(call, userdata, q->target, false, &err) < 0)
		rpc_call_fail(call, &err);
}
