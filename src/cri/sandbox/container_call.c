/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/container_call.h"

#include <errno.h>

#include "base/text/str.h"
#include "cri/sandbox/container_spec.h"
#include "cri/sandbox/devices.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/sandbox_spec.h"
#include "cri/services.h"
#include "pod/workload/sandbox.h"
#include "pod/workload/workload.h"
#include "runtime/storage/cdi_call.h"
#include "runtime/storage/volumes_call.h"
#include "runtime/storage/volumes_take.h"

/* A second more would not fit the clock. */
#define STOP_TIMEOUT_MAX ((int64_t)100 * 365 * 24 * 3600)

/* A call in hand; in its arena. */
struct container_call {
	struct rpc_call *call;
	struct cri_runtime_service *service;
	const Runtime__V1__CreateContainerRequest *request;
	struct pod_container_spec spec;
	char id[ID_SIZE]; /* of the container */
};

static struct container_call *container_call_new(struct rpc_call *call,
						 struct cri_runtime_service *s, const char *id,
						 struct error *err)
{
	struct container_call *h = arena_zalloc(rpc_call_arena(call), 1, sizeof(*h));

	if (!h) {
		(void)error_set(err, -ENOMEM, "take the request up");
		return NULL;
	}
	h->call = call;
	h->service = s;
	(void)str_copy(h->id, sizeof(h->id), id);
	return h;
}

/* ---- CreateContainer ---- */

static void create_reply(struct container_call *h)
{
	Runtime__V1__CreateContainerResponse m = RUNTIME__V1__CREATE_CONTAINER_RESPONSE__INIT;

	m.container_id = h->id;
	rpc_call_reply(h->call, &m.base);
}

static void create_done(void *userdata, struct workload *w, const struct error *err)
{
	struct container_call *h = userdata;
	struct pod_container *c = workloads_find_container(h->service->workloads, h->id);
	struct error own = ERROR_INIT;

	(void)w;
	if (err) {
		rpc_call_fail(h->call, err);
	} else if (!c || pod_container_has_ended(c)) {
		(void)error_refuse(&own, ERROR_ABORTED, "its sandbox ended meanwhile");
		rpc_call_fail(h->call, &own);
	} else {
		create_reply(h);
	}
}

static int create_now(struct container_call *h, struct workload *w,
		      const Runtime__V1__RunPodSandboxRequest *pod, struct error *err)
{
	struct workload_spec whole = { .kind = WORKLOAD_POD };
	struct pod_container *c;
	int r = cri_sandbox_etc(rpc_call_arena(h->call), pod->config, &whole, err);

	if (r < 0)
		return r;
	r = sandbox_create_container(w, &h->spec, whole.etc, create_done, h, &c, err);
	if (r == 0)
		(void)str_copy(h->id, sizeof(h->id), c->id);
	return r;
}

/* The sandbox, with the record of the call that made it. */
static int create_find(struct container_call *h, struct workload **ret,
		       const Runtime__V1__RunPodSandboxRequest **ret_pod, struct error *err)
{
	int r = cri_find_sandbox(h->service, "pod_sandbox_id", h->request->pod_sandbox_id, ret,
				 err);

	if (r < 0)
		return r;
	*ret_pod = cri_record_of_sandbox(rpc_call_arena(h->call), *ret);
	return *ret_pod ? 0
			: error_refuse(err, ERROR_PRECONDITION, "%s was not made by RunPodSandbox",
				       (*ret)->path);
}

/* The container with this metadata: a call that is made again, as its answer was lost, finds it. */
static struct pod_container *create_find_same(struct arena *a, const struct workload *w,
					      const Runtime__V1__ContainerConfig *config)
{
	if (!config || !config->metadata)
		return NULL;
	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];
		const Runtime__V1__CreateContainerRequest *q = cri_record_of_container(a, c);

		if (q && !c->is_leaving &&
		    q->config->metadata->attempt == config->metadata->attempt &&
		    str_eq(q->config->metadata->name, config->metadata->name))
			return c;
	}
	return NULL;
}

static int create_again(struct container_call *h, struct pod_container *c, struct error *err)
{
	(void)str_copy(h->id, sizeof(h->id), c->id);
	if (pod_container_is_created(c))
		return sandbox_wait_created(c, create_done, h, err);
	return error_field(err, ERROR_EXISTS, "config.metadata",
			   "the container %s has this name and attempt, and is %s; remove it, or "
			   "count the attempt up",
			   c->id, pod_container_state_word(c));
}

static void create_opened(void *userdata, const struct volumes_opened *opened)
{
	struct container_call *h = userdata;
	struct workload_spec whole = { .containers = &h->spec, .n_containers = 1 };
	const Runtime__V1__RunPodSandboxRequest *pod;
	struct error err = ERROR_INIT;
	struct pod_container *c = NULL;
	struct workload *w;
	int r = create_find(h, &w, &pod, &err);

	/* The same call may have come again meanwhile. */
	if (r == 0)
		c = create_find_same(rpc_call_arena(h->call), w, h->request->config);
	if (c) {
		r = create_again(h, c, &err);
	} else if (r == 0) {
		volumes_call_take(&whole, opened);
		r = create_now(h, w, pod, &err);
	}
	if (r < 0)
		rpc_call_fail(h->call, &err);
}

static int create_specified(struct container_call *h, struct workload *w,
			    const Runtime__V1__RunPodSandboxRequest *pod,
			    const struct cdi_changes *changes, struct error *err)
{
	struct workload_spec whole = { .containers = &h->spec, .n_containers = 1 };
	int r = cri_container_spec(h->service, rpc_call_arena(h->call), w, pod->config, h->request,
				   changes, &h->spec, err);

	if (r < 0)
		return r;
	r = volumes_call_start(h->service->volumes, h->call, &whole, create_opened, h, err);
	return r > 0 ? create_now(h, w, pod, err) : r;
}

/* Its devices are known. */
static void create_with(void *userdata, const struct cdi_changes *changes)
{
	const Runtime__V1__RunPodSandboxRequest *pod;
	struct container_call *h = userdata;
	struct error err = ERROR_INIT;
	struct pod_container *c = NULL;
	struct workload *w;
	int r = create_find(h, &w, &pod, &err);

	/* The same call may have come again meanwhile. */
	if (r == 0)
		c = create_find_same(rpc_call_arena(h->call), w, h->request->config);
	if (r == 0)
		r = c ? create_again(h, c, &err) : create_specified(h, w, pod, changes, &err);
	if (r < 0)
		rpc_call_fail(h->call, &err);
}

static int create(struct container_call *h, struct error *err)
{
	char **names;
	size_t n_names;
	struct arena *a = rpc_call_arena(h->call);
	const Runtime__V1__RunPodSandboxRequest *pod;
	struct pod_container *c;
	struct workload *w;
	int r = create_find(h, &w, &pod, err);

	if (r < 0)
		return r;
	c = create_find_same(a, w, h->request->config);
	if (c)
		return create_again(h, c, err);
	r = cri_container_devices(a, h->request->config, &names, &n_names, err);
	if (r < 0)
		return r;
	return n_names > 0 ? cdi_call_start(h->service->devices, h->call, CRI_FIELD_DEVICES, names,
					    n_names, create_with, h, err)
			   : create_specified(h, w, pod, NULL, err);
}

void cri_create_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;
	struct container_call *h = container_call_new(call, userdata, "", &err);
	int r = h ? 0 : -ENOMEM;

	if (r == 0) {
		h->request = (const Runtime__V1__CreateContainerRequest *)(const void *)request;
		r = create(h, &err);
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- StartContainer ---- */

static int start_result(struct container_call *h, struct error *err)
{
	const struct pod_container *c = workloads_find_container(h->service->workloads, h->id);

	if (!c)
		return error_refuse(err, ERROR_ABORTED, "it was removed while it started");
	if (c->status.state != CONTAINER_FAILED)
		return 0;
	if (c->failed)
		return error_copy(err, c->failed);
	return error_refuse(err, ERROR_PRECONDITION, "%s", c->status.reason);
}

static void start_done(void *userdata, struct workload *w, const struct error *err)
{
	Runtime__V1__StartContainerResponse m = RUNTIME__V1__START_CONTAINER_RESPONSE__INIT;
	struct container_call *h = userdata;
	struct error own = ERROR_INIT;

	(void)w;
	if (err)
		rpc_call_fail(h->call, err);
	else if (start_result(h, &own) < 0)
		rpc_call_fail(h->call, &own);
	else
		rpc_call_reply(h->call, &m.base);
}

void cri_start_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__StartContainerRequest *q =
		(const Runtime__V1__StartContainerRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct container_call *h;
	struct pod_container *c;
	int r;

	r = cri_find_container(userdata, "container_id", q->container_id, &c, &err);
	if (r == 0) {
		h = container_call_new(call, userdata, c->id, &err);
		r = h ? sandbox_start_container(c, start_done, h, &err) : -ENOMEM;
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- StopContainer ---- */

static void stop_reply(struct rpc_call *call)
{
	Runtime__V1__StopContainerResponse m = RUNTIME__V1__STOP_CONTAINER_RESPONSE__INIT;

	rpc_call_reply(call, &m.base);
}

/* One that was removed meanwhile has stopped, too. */
static void stop_done(void *userdata, struct workload *w, const struct error *err)
{
	(void)w;
	if (err)
		rpc_call_fail(userdata, err);
	else
		stop_reply(userdata);
}

void cri_stop_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__StopContainerRequest *q =
		(const Runtime__V1__StopContainerRequest *)(const void *)request;
	const Runtime__V1__CreateContainerRequest *made;
	int64_t timeout = MIN(MAX(q->timeout, 0), STOP_TIMEOUT_MAX);
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = cri_find_container(userdata, "container_id", q->container_id, &c, &err);
	/* One that never ran has nothing to stop. */
	if (r < 0 ? err.kind == ERROR_NOT_FOUND : pod_container_is_created(c)) {
		stop_reply(call);
		return;
	}
	if (r == 0) {
		made = cri_record_of_container(rpc_call_arena(call), c);
		r = sandbox_stop_container(c, made ? cri_container_stop_signal(made->config) : 0,
					   (nsec_t)timeout * NSEC_PER_SEC, stop_done, call, &err);
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- RemoveContainer ---- */

static void remove_reply(struct rpc_call *call)
{
	Runtime__V1__RemoveContainerResponse m = RUNTIME__V1__REMOVE_CONTAINER_RESPONSE__INIT;

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

void cri_remove_container(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__RemoveContainerRequest *q =
		(const Runtime__V1__RemoveContainerRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = cri_find_container(userdata, "container_id", q->container_id, &c, &err);
	if (r < 0 && err.kind == ERROR_NOT_FOUND) {
		remove_reply(call);
		return;
	}
	if (r == 0)
		r = sandbox_remove_container(c, remove_done, call, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}
