/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/wait_call.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "pod/workload/health.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/convert.h"
#include "runtime/core/target.h"
#include "runtime/services.h"

enum wait_condition { WAIT_STOPPED, WAIT_RUNNING, WAIT_HEALTHY, WAIT_UNHEALTHY };

static const char *const wait_conditions[] = {
	[WAIT_STOPPED] = "stopped",
	[WAIT_RUNNING] = "running",
	[WAIT_HEALTHY] = "healthy",
	[WAIT_UNHEALTHY] = "unhealthy",
};

/* In the arena of its call. */
struct wait_call {
	struct rpc_call *call;
	struct workload_service *service;
	enum wait_condition condition;
	char id[ID_SIZE];
	char container[NAME_LABEL_MAX + 1];
};

static bool wait_runs(const struct workload *w, const struct pod_container *c)
{
	return c ? c->status.state == CONTAINER_RUNNING : w->state == WORKLOAD_RUNNING;
}

/* Whether it is as it was to be; why not. */
static int wait_check(const struct wait_call *c, struct workload *w, struct pod_container *only,
		      struct error *err)
{
	enum health_status health =
		c->condition == WAIT_UNHEALTHY ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;
	int r = 1;

	if (c->condition == WAIT_RUNNING)
		r = wait_runs(w, only);
	else if (c->condition != WAIT_STOPPED)
		r = health_compare(w, only, health);
	if (r == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION, "%s has no health check", w->path);
	return r ? 0
		 : error_refuse(err, ERROR_ABORTED, "%s ended before it was %s", w->path,
				wait_conditions[c->condition]);
}

static void wait_done(void *userdata, struct workload *w, const struct error *err)
{
	struct wait_call *c = userdata;
	Nacre__V1__WaitResponse m = NACRE__V1__WAIT_RESPONSE__INIT;
	struct error own = ERROR_INIT;
	struct pod_container *container = NULL;

	rpc_call_on_cancel(c->call, NULL, NULL);
	if (!w)
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed before its end was told");
	if (w && c->container[0])
		container = workload_container(w, c->container, &own);
	if (!err && !own.code)
		(void)wait_check(c, w, container, &own);
	if (err || own.code) {
		rpc_call_fail(c->call, err ? err : &own);
		return;
	}
	if (container)
		m.exit_code = container->status.exit_code;
	else if (workload_has_ended(w))
		m.exit_code = workload_exit_code(w);
	m.workload = convert_workload(rpc_call_arena(c->call), w);
	if (!m.workload)
		(void)error_set(&own, -ENOMEM, "answer");
	if (m.workload)
		rpc_call_reply(c->call, &m.base);
	else
		rpc_call_fail(c->call, &own);
}

static void wait_cancelled(struct rpc_call *call, void *data)
{
	struct wait_call *c = data;
	struct workload *w = workloads_find(c->service->workloads, c->id);
	struct error err = ERROR_INIT;

	if (w)
		workload_forget_waiter(w, c);
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_fail(call, &err);
}

static int wait_condition_of(const char *word, enum wait_condition *ret, struct error *err)
{
	*ret = WAIT_STOPPED;
	if (str_empty(word))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(wait_conditions); i++) {
		if (!str_eq(word, wait_conditions[i]))
			continue;
		*ret = (enum wait_condition)i;
		return 0;
	}
	return error_field(err, ERROR_INVALID, "condition",
			   "\"%.80s\" is none of stopped, running, healthy and unhealthy", word);
}

static void wait_begin(struct wait_call *c, struct workload *w, struct pod_container *container)
{
	if (c->condition == WAIT_RUNNING)
		workload_wait_started(w, wait_done, c);
	else if (c->condition == WAIT_STOPPED)
		workload_wait(w, container, wait_done, c);
	else
		workload_wait_health(w, container, c->condition == WAIT_HEALTHY, wait_done, c);
}

int wait_call_start(struct rpc_call *call, struct workload_service *s,
		    const Nacre__V1__WaitRequest *q, struct error *err)
{
	struct wait_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct pod_container *container = NULL;
	struct target t;
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "wait");
	r = wait_condition_of(q->condition, &c->condition, err);
	if (r == 0)
		r = target_find(s, q->target, &t, err);
	if (r == 0 && !t.workload)
		r = error_field(err, ERROR_INVALID, "target",
				"%s is an instance, which lives until it is "
				"stopped",
				t.instance->path);
	if (r == 0 && !str_empty(q->container)) {
		container = workload_container(t.workload, q->container, err);
		r = container ? 0 : err->code;
	}
	if (r < 0)
		return r;
	c->call = call;
	c->service = s;
	(void)str_copy(c->id, sizeof(c->id), t.workload->id);
	if (container)
		(void)str_copy(c->container, sizeof(c->container), container->name);
	rpc_call_on_cancel(call, wait_cancelled, c);
	wait_begin(c, t.workload, container);
	return 0;
}
