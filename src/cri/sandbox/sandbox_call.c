/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/sandbox_call.h"

#include <errno.h>

#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/sandbox_spec.h"
#include "cri/services.h"
#include "pod/workload/failure.h"
#include "pod/workload/sandbox.h"
#include "pod/workload/workload.h"

/* ---- RunPodSandbox ---- */

static void run_reply(struct rpc_call *call, const struct workload *w)
{
	Runtime__V1__RunPodSandboxResponse m = RUNTIME__V1__RUN_POD_SANDBOX_RESPONSE__INIT;

	m.pod_sandbox_id = (char *)(uintptr_t)w->id;
	rpc_call_reply(call, &m.base);
}

/* A sandbox that never was ready leaves nothing, so that the call can be made again. */
static void run_done(void *userdata, struct workload *w, const struct error *err)
{
	struct rpc_call *call = userdata;
	struct error own = ERROR_INIT;

	if (w && !err && w->state == WORKLOAD_RUNNING) {
		run_reply(call, w);
		return;
	}
	if (err)
		(void)error_copy(&own, err);
	else if (w)
		(void)failure_tell(w, &own);
	else
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed while it started");
	if (w && !err)
		(void)workload_remove(w, true, NULL, NULL, NULL);
	rpc_call_fail(call, &own);
}

static bool metadata_eq(const Runtime__V1__PodSandboxMetadata *a,
			const Runtime__V1__PodSandboxMetadata *b)
{
	return a->attempt == b->attempt && str_eq(a->uid, b->uid) && str_eq(a->name, b->name) &&
	       str_eq(a->namespace_, b->namespace_);
}

/* The sandbox with this metadata: a call that is made again, as its answer was lost, finds it. */
static struct workload *run_find(const struct cri_runtime_service *s, struct arena *a,
				 const Runtime__V1__PodSandboxMetadata *m)
{
	struct workload *w;

	if (!m)
		return NULL;
	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		const Runtime__V1__RunPodSandboxRequest *q;

		if (!w->lasts || workload_is_leaving(w))
			continue;
		q = cri_record_of_sandbox(a, w);
		if (q && metadata_eq(q->config->metadata, m))
			return w;
	}
	return NULL;
}

static int run_again(struct rpc_call *call, struct workload *w, struct error *err)
{
	if (w->state == WORKLOAD_STARTING) {
		workload_wait_started(w, run_done, call);
		return 0;
	}
	if (w->state == WORKLOAD_RUNNING) {
		run_reply(call, w);
		return 0;
	}
	return error_field(err, ERROR_EXISTS, "config.metadata",
			   "the sandbox %s has this name, namespace, uid and attempt, and is %s; "
			   "remove it, or count the attempt up",
			   w->id, workload_state_word(w->state));
}

void cri_run_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__RunPodSandboxRequest *q =
		(const Runtime__V1__RunPodSandboxRequest *)(const void *)request;
	const struct cri_runtime_service *s = userdata;
	struct arena *a = rpc_call_arena(call);
	struct error err = ERROR_INIT;
	struct workload_spec spec;
	struct workload *w;
	int r;

	w = run_find(s, a, q->config ? q->config->metadata : NULL);
	if (w) {
		r = run_again(call, w, &err);
	} else {
		r = cri_sandbox_spec(s, a, q, &spec, &err);
		if (r == 0)
			r = workload_run(s->workloads, &spec, run_done, call, &w, &err);
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- StopPodSandbox ---- */

static void stop_reply(struct rpc_call *call)
{
	Runtime__V1__StopPodSandboxResponse m = RUNTIME__V1__STOP_POD_SANDBOX_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

static void stop_done(void *userdata, struct workload *w, const struct error *err)
{
	(void)w;
	if (err)
		rpc_call_fail(userdata, err);
	else
		stop_reply(userdata);
}

void cri_stop_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__StopPodSandboxRequest *q =
		(const Runtime__V1__StopPodSandboxRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct workload *w;
	int r;

	r = cri_find_sandbox(userdata, "pod_sandbox_id", q->pod_sandbox_id, &w, &err);
	if (r < 0 && err.kind == ERROR_NOT_FOUND) {
		stop_reply(call);
		return;
	}
	if (r == 0 && sandbox_wait_down(w, stop_done, call) < 0)
		r = error_set(&err, -ENOMEM, "stop sandbox %s", w->id);
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		workload_stop(w, 0, NULL, NULL);
}

/* ---- RemovePodSandbox ---- */

static void remove_reply(struct rpc_call *call)
{
	Runtime__V1__RemovePodSandboxResponse m = RUNTIME__V1__REMOVE_POD_SANDBOX_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

static void remove_done(void *userdata, struct workload *w, const struct error *err)
{
	(void)w;
	if (err)
		rpc_call_fail(userdata, err);
	else
		remove_reply(userdata);
}

void cri_remove_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__RemovePodSandboxRequest *q =
		(const Runtime__V1__RemovePodSandboxRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct workload *w;
	int r;

	r = cri_find_sandbox(userdata, "pod_sandbox_id", q->pod_sandbox_id, &w, &err);
	if (r < 0 && err.kind == ERROR_NOT_FOUND) {
		remove_reply(call);
		return;
	}
	if (r == 0)
		r = workload_remove(w, true, remove_done, call, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}
