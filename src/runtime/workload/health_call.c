/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/health_call.h"

#include <errno.h>
#include <signal.h>

#include "base/memory/arena.h"
#include "instance/instance.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/start/start_call.h"
#include "runtime/workload/health.h"
#include "runtime/workload/probe.h"

#define HEALTH_GRACE (10 * NSEC_PER_SEC)

/* ---- what the node does ---- */

static int rule(void *userdata, const struct pod_container *c, struct health_rule *ret)
{
	(void)userdata;
	return health_rule_of(c, ret);
}

static int probe(void *userdata, struct pod_container *c, struct health_probe **ret,
		 struct error *err)
{
	const struct runtime_service *s = ((struct starts *)userdata)->runtime;

	return probe_begin(s->loop, s->pool, c, ret, err);
}

static void health_ignore(void *userdata, const struct error *err)
{
	(void)userdata;
	(void)err;
}

static void act(void *userdata, struct pod_container *c, enum health_action action)
{
	struct peer *peer = workload_peer(c->workload);

	/* Its own policy starts it again alone. */
	if (action == HEALTH_RESTART && c->restart.policy != RESTART_NO)
		action = HEALTH_KILL;
	switch (action) {
	case HEALTH_KILL:
		if (peer)
			peer->ops->signal(peer, c->id, SIGKILL, true, health_ignore, NULL);
		break;
	case HEALTH_STOP:
		workload_stop(c->workload, HEALTH_GRACE, NULL, NULL);
		break;
	case HEALTH_RESTART:
		starts_begin_anew(userdata, c->workload, HEALTH_GRACE);
		break;
	case HEALTH_DO_NOTHING:
		break;
	}
}

const struct health_ops health_call_ops = {
	.rule = rule,
	.probe = probe,
	.cancel = probe_cancel,
	.act = act,
};

/* ---- HealthCheck ---- */

/* In the arena of its call. */
struct health_call {
	struct health_wait wait;
	struct rpc_call *call;
	const struct pod_container *container; /* until it was told */
};

static void health_call_told(struct health_wait *w, const struct health_result *result,
			     const struct error *err)
{
	Nacre__V1__HealthCheckResponse m = NACRE__V1__HEALTH_CHECK_RESPONSE__INIT;
	struct health_call *h = container_of(w, struct health_call, wait);
	struct error own = ERROR_INIT;

	rpc_call_on_cancel(h->call, NULL, NULL);
	if (result) {
		m.status = (char *)(uintptr_t)health_word(h->container->health_status);
		m.result = health_show_result(rpc_call_arena(h->call), result);
	}
	if (!err && !m.result) {
		(void)error_set(&own, -ENOMEM, "answer");
		err = &own;
	}
	if (err)
		rpc_call_fail(h->call, err);
	else
		rpc_call_reply(h->call, &m.base);
}

/* The probe goes on. */
static void health_call_cancelled(struct rpc_call *call, void *data)
{
	struct health_call *h = data;
	struct error err = ERROR_INIT;

	health_forget(&h->wait);
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	rpc_call_fail(call, &err);
}

int health_call_run(struct rpc_call *call, struct workload_service *s,
		    const Nacre__V1__HealthCheckRequest *q, struct error *err)
{
	struct health_call *h = arena_zalloc(rpc_call_arena(call), 1, sizeof(*h));
	struct pod_container *c;
	int r = target_container(s, q->target, q->container, &c, err);

	if (r < 0)
		return r;
	if (!h)
		return error_set(err, -ENOMEM, "check the health of %s", c->name);
	h->wait.done = health_call_told;
	list_init(&h->wait.link);
	h->call = call;
	h->container = c;
	r = health_run(c, &h->wait, err);
	if (r < 0)
		return r;
	rpc_call_on_cancel(call, health_call_cancelled, h);
	return 0;
}
