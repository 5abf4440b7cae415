/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/stop_call.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "base/time/clock.h"
#include "instance/instance.h"
#include "pod/restart/container_again.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/convert.h"
#include "runtime/core/target.h"
#include "runtime/services.h"

#define STOP_GRACE_MAX_MS ((uint64_t)3600 * 1000)

/* The stop of an instance; in the call's arena. */
struct stop_call {
	struct rpc_call *call;
	struct workload_service *service;
	char instance[ID_SIZE];
	nsec_t deadline; /* of the workloads in it */
	size_t n_left;   /* workloads that have not ended, and 1 while they are being asked */
	size_t n_asked;  /* workloads of this round */
	struct error err;
	void (*again)(struct stop_call *c, const struct instance *i); /* the next round */
};

static void stop_answer(struct rpc_call *call, Nacre__V1__Workload *w)
{
	Nacre__V1__StopResponse m = NACRE__V1__STOP_RESPONSE__INIT;
	struct error err = ERROR_INIT;

	m.workload = w;
	if (w) {
		rpc_call_reply(call, &m.base);
		return;
	}
	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

static void stop_answer_gone(struct rpc_call *call)
{
	Nacre__V1__StopResponse m = NACRE__V1__STOP_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

static void stop_on_workload(void *userdata, struct workload *w, const struct error *err)
{
	struct rpc_call *call = userdata;

	if (err)
		rpc_call_fail(call, err);
	else if (!w)
		stop_answer_gone(call); /* stopped, and removed by another call */
	else
		stop_answer(call, convert_workload(rpc_call_arena(call), w));
}

static void stop_on_instance(void *userdata, struct instance *i, const struct error *err)
{
	struct rpc_call *call = userdata;

	if (err)
		rpc_call_fail(call, err);
	else
		stop_answer(call, convert_instance(rpc_call_arena(call), i));
}

/* ---- an instance ---- */

static void stop_end_instance(struct stop_call *c)
{
	struct instance *i = instances_find_id(c->service->instances, c->instance);

	if (c->err.code)
		rpc_call_fail(c->call, &c->err);
	else if (!i)
		stop_answer_gone(c->call);
	else if (c->n_asked > 0 && c->deadline > clock_mono())
		c->again(c, i);
	else
		instance_stop(i, stop_on_instance, c->call);
}

static void stop_part_done(void *userdata, struct workload *w, const struct error *err)
{
	struct stop_call *c = userdata;

	(void)w;
	if (err && !c->err.code)
		c->err = *err;
	if (--c->n_left == 0)
		stop_end_instance(c);
}

/* One round. The next one finds what was started meanwhile; nothing, as a rule. */
static void stop_ask(struct stop_call *c, const struct instance *i)
{
	nsec_t now = clock_mono();
	size_t len = strlen(i->path);
	struct workload *w;

	c->n_asked = 0;
	/* The one of this function: a workload may report at once. */
	c->n_left = 1;
	list_for_each (w, workloads_list(c->service->workloads), struct workload, link) {
		if (strncmp(w->path, i->path, len) != 0 || w->path[len] != '/' ||
		    workload_has_ended(w))
			continue;
		c->n_asked++;
		c->n_left++;
		workload_stop(w, c->deadline > now ? c->deadline - now : 0, stop_part_done, c);
	}
	stop_part_done(c, NULL, NULL);
}

static int stop_instance(struct rpc_call *call, struct workload_service *s, struct instance *i,
			 nsec_t grace, struct error *err)
{
	struct stop_call *c;

	if (grace == 0 || instance_has_ended(i) || i->state == INSTANCE_STOPPING) {
		instance_stop(i, stop_on_instance, call);
		return 0;
	}
	c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	if (!c)
		return error_set(err, -ENOMEM, "stop %s", i->path);
	c->call = call;
	c->again = stop_ask;
	c->service = s;
	(void)str_copy(c->instance, sizeof(c->instance), i->id);
	c->deadline = clock_mono() + grace;
	stop_ask(c, i);
	return 0;
}

int stop_call_grace(uint64_t ms, nsec_t *ret, struct error *err)
{
	if (ms > STOP_GRACE_MAX_MS)
		return error_field(err, ERROR_INVALID, "grace_ms",
				   "%llu is more than an hour (%llu)", (unsigned long long)ms,
				   (unsigned long long)STOP_GRACE_MAX_MS);
	*ret = ms * NSEC_PER_MSEC;
	return 0;
}

int stop_call_start(struct rpc_call *call, struct workload_service *s,
		    const Nacre__V1__StopRequest *q, struct error *err)
{
	struct pod_container *c;
	struct target t;
	nsec_t grace;
	int r;

	r = target_find(s, q->target, &t, err);
	if (r == 0)
		r = stop_call_grace(q->grace_ms, &grace, err);
	if (r < 0)
		return r;
	/* The instance of a pod, named by its id. */
	if (!t.workload && t.instance->owner[0])
		t.workload = workloads_find_id(s->workloads, t.instance->owner);
	if (!str_empty(q->container)) {
		r = target_container(s, q->target, q->container, &c, err);
		return r < 0 ? r : container_stop(c, grace, stop_on_workload, call, err);
	}
	if (!t.workload)
		return stop_instance(call, s, t.instance, grace, err);
	workload_stop(t.workload, grace, stop_on_workload, call);
	return 0;
}
