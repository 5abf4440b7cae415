/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/debug_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "pod/restart/again.h"
#include "pod/workload/sandbox.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/convert.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/start/resources.h"
#include "runtime/start/run_spec.h"
#include "runtime/start/start_call.h"
#include "runtime/storage/volumes_call.h"
#include "runtime/storage/volumes_take.h"

/* A call in hand; in its arena. */
struct debug_call {
	struct rpc_call *call;
	struct workload_service *service;
	const Nacre__V1__DebugRequest *request;
	struct workload_spec spec;
	char target[ID_SIZE]; /* the container that it is to see */
	char id[ID_SIZE];     /* its own */
};

static void debug_call_fail(struct debug_call *h, const struct error *err)
{
	resources_fail(h->call, err);
}

/* ---- whether ---- */

static int debug_check_target(const struct pod_container *c, struct error *err)
{
	const struct workload *w = c->workload;
	const char *is = w->kind == WORKLOAD_EXECUTABLE ? "an executable, whose root is the node's"
			 : w->kind == WORKLOAD_VM       ? "a machine with a system of its own"
			 : w->lasts ? "a sandbox of Kubernetes: use `kubectl debug`"
			 : workload_is_remote(w)
				 ? "in a machine (kind vm), which takes no container more: put the "
				   "tools into its image and use `nacre exec`, or into a second "
				   "container of the pod when it is made"
				 : NULL;

	if (is)
		return error_field(err, ERROR_UNSUPPORTED, "target", "%s is %s", w->path, is);
	if (c->is_debug)
		return error_field(err, ERROR_INVALID, "container",
				   "%s is a debug container itself", c->name);
	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s/%s is %s: only one that runs has "
				    "anything to look at",
				    w->path, c->name, pod_container_state_word(c));
	return 0;
}

/* What was right before its volumes were opened may have changed meanwhile: it is done twice. */
static int debug_specify(struct debug_call *h, struct pod_container *c, struct error *err)
{
	struct arena *a = rpc_call_arena(h->call);
	char *wish = NULL, *kept;
	int r = debug_check_target(c, err);

	if (r == 0)
		r = workload_wish(c->workload, &wish, err);
	if (r < 0)
		return r;
	kept = arena_strdup(a, wish);
	free(wish);
	if (!kept)
		return error_set(err, -ENOMEM, "debug %s", c->workload->path);
	return run_specify_debug(h->service->starts->runtime, a, c, kept, h->request, &h->spec,
				 err);
}

/* ---- its start ---- */

static void debug_on_started(void *userdata, struct workload *w, const struct error *err)
{
	Nacre__V1__DebugResponse m = NACRE__V1__DEBUG_RESPONSE__INIT;
	struct debug_call *h = userdata;
	struct pod_container *c =
		w && !err ? workloads_find_container(h->service->workloads, h->id) : NULL;
	struct error own = ERROR_INIT;

	if (err)
		(void)error_copy(&own, err);
	else if (!c)
		(void)error_refuse(&own, ERROR_ABORTED, "it ended while it was started");
	else if (c->status.state == CONTAINER_FAILED && c->failed)
		(void)error_copy(&own, c->failed);
	else if (c->status.state == CONTAINER_FAILED)
		(void)error_refuse(&own, ERROR_ABORTED, "container %s: %.400s", c->name,
				   c->status.reason);
	if (own.code == 0) {
		m.container = convert_one(rpc_call_arena(h->call), c);
		if (!m.container)
			(void)error_set(&own, -ENOMEM, "answer");
	}
	if (own.code)
		debug_call_fail(h, &own);
	else
		rpc_call_reply(h->call, &m.base);
}

static void debug_on_created(void *userdata, struct workload *w, const struct error *err)
{
	struct debug_call *h = userdata;
	struct pod_container *c =
		w && !err ? workloads_find_container(h->service->workloads, h->id) : NULL;
	struct error own = ERROR_INIT;
	int r;

	if (err)
		r = error_copy(&own, err);
	else if (!c || pod_container_has_ended(c))
		r = error_refuse(&own, ERROR_ABORTED, "its pod or cell ended meanwhile");
	else
		r = sandbox_start_container(c, debug_on_started, h, &own);
	if (r == 0)
		return;
	/* Nobody else would start it. */
	if (c)
		(void)sandbox_remove_container(c, NULL, NULL, NULL);
	debug_call_fail(h, &own);
}

static int debug_create(struct debug_call *h, struct workload *w, struct error *err)
{
	struct pod_container *c;
	int r = sandbox_create_container(w, h->spec.containers, h->spec.etc, debug_on_created, h,
					 &c, err);

	if (r < 0)
		run_debug_blame(err);
	else
		(void)str_copy(h->id, sizeof(h->id), c->id);
	return r;
}

static void debug_on_opened(void *userdata, const struct volumes_opened *opened)
{
	struct debug_call *h = userdata;
	struct pod_container *c = workloads_find_container(h->service->workloads, h->target);
	struct error err = ERROR_INIT;
	int r;

	if (!c)
		r = error_refuse(&err, ERROR_ABORTED, "its pod or cell was removed meanwhile");
	else
		r = debug_specify(h, c, &err);
	if (r == 0) {
		volumes_call_take(&h->spec, opened);
		r = debug_create(h, c->workload, &err);
	}
	if (r < 0)
		debug_call_fail(h, &err);
}

int debug_call_start(struct rpc_call *call, struct workload_service *s,
		     const Nacre__V1__DebugRequest *q, struct error *err)
{
	struct debug_call *h = arena_zalloc(rpc_call_arena(call), 1, sizeof(*h));
	struct pod_container *c;
	int r = target_container(s, q->target, q->container, &c, err);

	if (r < 0)
		return r;
	if (!h)
		return error_set(err, -ENOMEM, "take the request up");
	h->call = call;
	h->service = s;
	h->request = q;
	(void)str_copy(h->target, sizeof(h->target), c->id);
	r = debug_specify(h, c, err);
	if (r == 0)
		r = volumes_call_start(&s->starts->runtime->volumes, call, &h->spec,
				       debug_on_opened, h, err);
	return r > 0 ? debug_create(h, c->workload, err) : r;
}
