/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/list_call.h"

#include <errno.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/status.h"
#include "cri/services.h"
#include "cri/state/info.h"
#include "cri/streams/stream.h"
#include "instance/instance.h"
#include "pod/workload/workload.h"

static char *list_str(const char *s)
{
	return (char *)(uintptr_t)s;
}

static void list_no_memory(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

/* ---- what a filter lets through ---- */

/* An entry of any map of strings. */
struct list_entry {
	ProtobufCMessage base;
	const char *key, *value;
};

static bool list_has(const void *map, size_t n, const struct list_entry *wanted)
{
	struct list_entry *const *entries = map;

	for (size_t i = 0; i < n; i++)
		if (str_eq(entries[i]->key, wanted->key))
			return str_eq(entries[i]->value, wanted->value);
	return false;
}

bool cri_labels_match(const void *map, size_t n, const void *wanted, size_t n_wanted)
{
	struct list_entry *const *entries = wanted;

	for (size_t i = 0; i < n_wanted; i++)
		if (!list_has(map, n, entries[i]))
			return false;
	return true;
}

static bool sandbox_passes(const struct workload *w, const Runtime__V1__PodSandboxConfig *config,
			   const Runtime__V1__PodSandboxFilter *f)
{
	return !f || (str_has_prefix(w->id, f->id) &&
		      (!f->state || f->state->state == cri_sandbox_state(w)) &&
		      cri_labels_match(config->labels, config->n_labels, f->label_selector,
				       f->n_label_selector));
}

static bool container_passes(const struct pod_container *c,
			     const Runtime__V1__ContainerConfig *config,
			     const Runtime__V1__ContainerFilter *f)
{
	return !f || (str_has_prefix(c->id, f->id) &&
		      str_has_prefix(c->workload->id, f->pod_sandbox_id) &&
		      (!f->state || f->state->state == cri_container_state(c)) &&
		      cri_labels_match(config->labels, config->n_labels, f->label_selector,
				       f->n_label_selector));
}

/* One that was never ready is nobody's yet, and one that is removed no more. */
bool cri_sandbox_is_shown(const struct workload *w)
{
	return w->lasts && w->state != WORKLOAD_STARTING && w->state != WORKLOAD_REMOVING;
}

/* ---- sandboxes ---- */

static int list_sandboxes(const struct cri_runtime_service *s, struct arena *a,
			  const Runtime__V1__PodSandboxFilter *f, Runtime__V1__PodSandbox **items,
			  size_t *n)
{
	const struct workload *w;

	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		const Runtime__V1__RunPodSandboxRequest *q;

		if (!cri_sandbox_is_shown(w))
			continue;
		q = cri_record_of_sandbox(a, w);
		if (!q || !sandbox_passes(w, q->config, f))
			continue;
		items[*n] = cri_sandbox_item(a, w, q);
		if (!items[(*n)++])
			return -ENOMEM;
	}
	return 0;
}

static size_t count_workloads(const struct cri_runtime_service *s, bool containers)
{
	const struct workload *w;
	size_t n = 0;

	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		if (w->lasts)
			n += containers ? w->n_containers : 1;
	return n;
}

void cri_list_pod_sandbox(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__ListPodSandboxRequest *q =
		(const Runtime__V1__ListPodSandboxRequest *)(const void *)request;
	Runtime__V1__ListPodSandboxResponse m = RUNTIME__V1__LIST_POD_SANDBOX_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);

	m.items = arena_zalloc(a, count_workloads(userdata, false) + 1, sizeof(*m.items));
	if (!m.items || list_sandboxes(userdata, a, q->filter, m.items, &m.n_items) < 0) {
		list_no_memory(call);
		return;
	}
	rpc_call_reply(call, &m.base);
}

/* What somebody who looks for a fault wants to know. NULL without memory. */
static char *sandbox_info(struct arena *a, const struct workload *w)
{
	struct cri_info info;

	if (cri_info_open(&info) < 0)
		return NULL;
	json_put_string(&info.json, "name", w->path);
	json_put_string(&info.json, "kind", instance_kind_word(w->choice.kind));
	json_put_string(&info.json, "reason", w->reason);
	json_put_integer(&info.json, "pid", w->instance ? w->instance->pid : 0);
	json_put_string(&info.json, "cgroup", w->instance ? w->instance->cgroup : "");
	return cri_info_close(&info, a);
}

void cri_pod_sandbox_status(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__PodSandboxStatusRequest *q =
		(const Runtime__V1__PodSandboxStatusRequest *)(const void *)request;
	Runtime__V1__PodSandboxStatusResponse m = RUNTIME__V1__POD_SANDBOX_STATUS_RESPONSE__INIT;
	Runtime__V1__PodSandboxStatusResponse__InfoEntry info =
		RUNTIME__V1__POD_SANDBOX_STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__PodSandboxStatusResponse__InfoEntry *infos[] = { &info };
	struct arena *a = rpc_call_arena(call);
	const Runtime__V1__RunPodSandboxRequest *made = NULL;
	struct error err = ERROR_INIT;
	struct workload *w;
	int r;

	r = cri_find_sandbox(userdata, "pod_sandbox_id", q->pod_sandbox_id, &w, &err);
	if (r == 0)
		made = cri_record_of_sandbox(a, w);
	if (r == 0 && !made)
		r = error_refuse(&err, ERROR_NOT_FOUND, "%s was not made by RunPodSandbox", w->id);
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	info.key = list_str(CRI_INFO_KEY);
	info.value = q->verbose ? sandbox_info(a, w) : list_str("");
	m.info = infos;
	m.n_info = q->verbose;
	m.status = cri_sandbox_status(a, w, made);
	if (m.status && info.value)
		rpc_call_reply(call, &m.base);
	else
		list_no_memory(call);
}

/* ---- containers ---- */

static int list_containers_of(struct arena *a, const struct workload *w,
			      const Runtime__V1__ContainerFilter *f, Runtime__V1__Container **items,
			      size_t *n)
{
	for (size_t i = 0; i < w->n_containers; i++) {
		const struct pod_container *c = w->containers[i];
		const Runtime__V1__CreateContainerRequest *q;

		/* One whose files are not there yet may come to nothing. */
		if (c->phase == POD_CONTAINER_ROOT || c->phase == POD_CONTAINER_FILES)
			continue;
		q = cri_record_of_container(a, c);
		if (!q || !container_passes(c, q->config, f))
			continue;
		items[*n] = cri_container_item(a, c, q);
		if (!items[(*n)++])
			return -ENOMEM;
	}
	return 0;
}

static int list_containers(const struct cri_runtime_service *s, struct arena *a,
			   const Runtime__V1__ContainerFilter *f, Runtime__V1__Container **items,
			   size_t *n)
{
	const struct workload *w;
	int r = 0;

	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		if (cri_sandbox_is_shown(w) && r == 0)
			r = list_containers_of(a, w, f, items, n);
	return r;
}

void cri_list_containers(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__ListContainersRequest *q =
		(const Runtime__V1__ListContainersRequest *)(const void *)request;
	Runtime__V1__ListContainersResponse m = RUNTIME__V1__LIST_CONTAINERS_RESPONSE__INIT;
	const struct cri_runtime_service *s = userdata;
	struct arena *a = rpc_call_arena(call);

	m.containers = arena_zalloc(a, count_workloads(s, true) + 1, sizeof(*m.containers));
	if (!m.containers || list_containers(s, a, q->filter, m.containers, &m.n_containers) < 0) {
		list_no_memory(call);
		return;
	}
	rpc_call_reply(call, &m.base);
}

static char *container_info(struct arena *a, struct pod_container *c)
{
	struct cri_info info;

	if (cri_info_open(&info) < 0)
		return NULL;
	json_put_string(&info.json, "sandboxID", c->workload->id);
	json_put_string(&info.json, "name", c->name);
	json_put_integer(&info.json, "pid", pod_container_pid(c));
	json_put_string(&info.json, "command", c->command);
	json_put_string(&info.json, "reason", c->status.reason);
	return cri_info_close(&info, a);
}

void cri_container_status_call(struct rpc_call *call, const ProtobufCMessage *request,
			       void *userdata)
{
	const Runtime__V1__ContainerStatusRequest *q =
		(const Runtime__V1__ContainerStatusRequest *)(const void *)request;
	Runtime__V1__ContainerStatusResponse m = RUNTIME__V1__CONTAINER_STATUS_RESPONSE__INIT;
	Runtime__V1__ContainerStatusResponse__InfoEntry info =
		RUNTIME__V1__CONTAINER_STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__ContainerStatusResponse__InfoEntry *infos[] = { &info };
	struct arena *a = rpc_call_arena(call);
	const Runtime__V1__CreateContainerRequest *made = NULL;
	struct error err = ERROR_INIT;
	struct pod_container *c;
	int r;

	r = cri_find_container(userdata, "container_id", q->container_id, &c, &err);
	if (r == 0)
		made = cri_record_of_container(a, c);
	if (r == 0 && !made)
		r = error_refuse(&err, ERROR_NOT_FOUND, "%s was not made by CreateContainer",
				 c->id);
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	info.key = list_str(CRI_INFO_KEY);
	info.value = q->verbose ? container_info(a, c) : list_str("");
	m.info = infos;
	m.n_info = q->verbose;
	m.status = cri_container_status(a, c, made);
	if (m.status && info.value)
		rpc_call_reply(call, &m.base);
	else
		list_no_memory(call);
}

/* ---- lists in pieces ---- */

/* What passed when the call began, and has not been told yet; in the call's arena. */
struct list_stream {
	union {
		Runtime__V1__PodSandbox **sandboxes;
		Runtime__V1__Container **containers;
	} items;
	size_t n, at;
};

static int stream_send(struct rpc_call *call, const ProtobufCMessage *m, struct error *err)
{
	int r = rpc_call_send(call, m);

	return r < 0 ? error_set(err, r, "answer") : 0;
}

static int stream_sandboxes(struct rpc_call *call, void *userdata, struct error *err)
{
	Runtime__V1__StreamPodSandboxesResponse m =
		RUNTIME__V1__STREAM_POD_SANDBOXES_RESPONSE__INIT;
	struct list_stream *t = userdata;
	int r;

	if (t->at == t->n)
		return 0;
	m.pod_sandboxes = t->items.sandboxes + t->at;
	m.n_pod_sandboxes = MIN(t->n - t->at, (size_t)CRI_STREAM_ITEMS);
	t->at += m.n_pod_sandboxes;
	r = stream_send(call, &m.base, err);
	return r < 0 ? r : t->at < t->n;
}

static int stream_containers(struct rpc_call *call, void *userdata, struct error *err)
{
	Runtime__V1__StreamContainersResponse m = RUNTIME__V1__STREAM_CONTAINERS_RESPONSE__INIT;
	struct list_stream *t = userdata;
	int r;

	if (t->at == t->n)
		return 0;
	m.containers = t->items.containers + t->at;
	m.n_containers = MIN(t->n - t->at, (size_t)CRI_STREAM_ITEMS);
	t->at += m.n_containers;
	r = stream_send(call, &m.base, err);
	return r < 0 ? r : t->at < t->n;
}

void cri_stream_pod_sandboxes(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata)
{
	const Runtime__V1__StreamPodSandboxesRequest *q =
		(const Runtime__V1__StreamPodSandboxesRequest *)(const void *)request;
	struct arena *a = rpc_call_arena(call);
	struct list_stream *t = arena_zalloc(a, 1, sizeof(*t));

	if (t)
		t->items.sandboxes = arena_zalloc(a, count_workloads(userdata, false) + 1,
						  sizeof(*t->items.sandboxes));
	if (!t || !t->items.sandboxes ||
	    list_sandboxes(userdata, a, q->filter, t->items.sandboxes, &t->n) < 0)
		list_no_memory(call);
	else
		cri_stream_start(call, stream_sandboxes, t);
}

void cri_stream_containers(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__StreamContainersRequest *q =
		(const Runtime__V1__StreamContainersRequest *)(const void *)request;
	struct arena *a = rpc_call_arena(call);
	struct list_stream *t = arena_zalloc(a, 1, sizeof(*t));

	if (t)
		t->items.containers = arena_zalloc(a, count_workloads(userdata, true) + 1,
						   sizeof(*t->items.containers));
	if (!t || !t->items.containers ||
	    list_containers(userdata, a, q->filter, t->items.containers, &t->n) < 0)
		list_no_memory(call);
	else
		cri_stream_start(call, stream_containers, t);
}
