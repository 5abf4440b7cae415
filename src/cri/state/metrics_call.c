/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/metrics_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/array.h"
#include "base/text/str.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/resources.h"
#include "cri/services.h"
#include "cri/state/guest_usage.h"
#include "cri/state/metrics.h"
#include "network/attachment.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/groups.h"
#include "runtime/core/pool_call.h"
#include "runtime/services.h"
#include "runtime/start/settings.h"

/* Sandboxes in a message of a stream: one has some hundred metrics. */
#define METRICS_ITEMS 8

/* A sandbox, or a container of the sandbox in front of it. */
struct metrics_entry {
	struct cri_metrics_owner owner;
	struct cri_reading *reading; /* in the arena */
	bool is_container;
	size_t question; /* struct guest_usage: by whom it is told, as which container */
	struct machine_usage machine;
};

struct metrics_call {
	struct pool_call base;
	struct arena arena; /* what is said of an entry is copied: it may be gone by then */
	const struct cri_runtime_service *service;
	struct guest_usage guests;
	int top_fd;
	struct metrics_entry *entries;
	size_t n, size;
	bool streams;
};

static void metrics_free(struct pool_call *p)
{
	struct metrics_call *c = container_of(p, struct metrics_call, base);

	guest_usage_done(&c->guests);
	arena_done(&c->arena);
	free(c->entries);
	free(c);
}

static void metrics_no_memory(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "tell metrics");
	rpc_call_fail(call, &err);
}

/* ---- what is read ---- */

/* NULL without memory. */
static struct metrics_entry *metrics_add(struct metrics_call *c, const char *id, const char *group,
					 const Runtime__V1__PodSandboxMetadata *pod)
{
	void *room = c->entries;
	int r = array_grow(&room, c->n, &c->size, sizeof(*c->entries));
	struct metrics_entry *e;

	c->entries = room;
	if (r < 0)
		return NULL;
	e = &c->entries[c->n];
	*e = (struct metrics_entry){ .owner = { .container = "", .image = "" },
				     .question = GUEST_USAGE_NONE };
	e->reading = arena_alloc(&c->arena, sizeof(*e->reading));
	e->owner.id = arena_strdup(&c->arena, id);
	e->owner.group = arena_strdup(&c->arena, group);
	e->owner.space = pod->namespace_;
	e->owner.pod = pod->name;
	e->owner.root = c->service->root;
	if (!e->reading || !e->owner.id || !e->owner.group)
		return NULL;
	c->n++;
	return e;
}

/* The last entry is of a machine, or of a container that the kernel of one counts. */
static int metrics_ask(struct metrics_call *c, struct workload *w)
{
	struct metrics_entry *e = &c->entries[c->n - 1];
	int r;

	e->reading->result = -ENOENT;
	r = guest_usage_add(&c->guests, w->instance, &e->question);
	return r < 0 || e->is_container
		       ? r
		       : machine_usage_plan(&e->machine, &c->arena, c->service->work, w->instance);
}

/* The group, or the name that one in a machine has in that of its pod. -ENOENT: there is none. */
static int metrics_group(struct metrics_call *c, const struct pod_container *pc,
			 char ret[GROUP_PATH_MAX])
{
	const struct workload *w = pc->workload;

	if (!workload_is_remote(w))
		return group_of_container(c->service->work, pc, ret);
	return str_printf(ret, GROUP_PATH_MAX, "%s/%s",
			  w->instance->cgroup + strspn(w->instance->cgroup, "/"), pc->name) < 0
		       ? -ENOENT
		       : 0;
}

/* 0, also where it does not run; or -ENOMEM. */
static int metrics_add_container(struct metrics_call *c, struct pod_container *pc,
				 const Runtime__V1__PodSandboxMetadata *pod)
{
	const Runtime__V1__CreateContainerRequest *q;
	const Aurae__Runtime__V0__Resources *now;
	char group[GROUP_PATH_MAX];
	struct metrics_entry *e;

	if (pc->status.state != CONTAINER_RUNNING || metrics_group(c, pc, group) < 0)
		return 0;
	q = cri_record_of_container(&c->arena, pc);
	if (!q)
		return 0;
	now = settings_resources(&c->arena, pc->settings);
	e = metrics_add(c, pc->id, group, pod);
	if (!e)
		return -ENOMEM;
	e->is_container = true;
	e->owner.container = q->config->metadata->name;
	e->owner.image = q->config->image->image;
	e->owner.pid = pod_container_pid(pc);
	e->owner.started_at = pc->status.started_at;
	e->owner.files = pc->written;
	e->owner.limits = cri_limits_show(
		&c->arena, q->config->linux ? q->config->linux->resources : NULL, now);
	e->owner.reserved = now ? now->memory_low : 0;
	if (!e->owner.limits)
		return -ENOMEM;
	return workload_is_remote(pc->workload) ? metrics_ask(c, pc->workload) : 0;
}

static int metrics_add_sandbox(struct metrics_call *c, struct workload *w)
{
	const Runtime__V1__RunPodSandboxRequest *q;
	char group[GROUP_PATH_MAX];
	struct metrics_entry *e;
	int r = 0;

	if (!w->lasts || w->state != WORKLOAD_RUNNING ||
	    !instance_kind_can(w->choice.kind, INSTANCE_LOCAL_CGROUP) ||
	    group_of_workload(c->service->work, w, group) < 0)
		return 0;
	q = cri_record_of_sandbox(&c->arena, w);
	if (!q)
		return 0;
	e = metrics_add(c, w->id, group, q->config->metadata);
	if (!e)
		return -ENOMEM;
	e->owner.started_at = w->created_at;
	if (w->attachment)
		(void)str_copy(e->owner.device, sizeof(e->owner.device), w->attachment->device);
	if (workload_is_remote(w))
		r = metrics_ask(c, w);
	for (size_t i = 0; i < w->n_containers && r == 0; i++)
		r = metrics_add_container(c, w->containers[i], q->config->metadata);
	return r;
}

static int metrics_add_all(struct metrics_call *c)
{
	struct workload *w;
	int r = 0;

	list_for_each (w, workloads_list(c->service->workloads), struct workload, link)
		if (r == 0)
			r = metrics_add_sandbox(c, w);
	return r;
}

static void metrics_run(struct pool_call *p)
{
	struct metrics_call *c = container_of(p, struct metrics_call, base);

	for (size_t i = 0; i < c->n; i++) {
		struct metrics_entry *e = &c->entries[i];

		if (e->machine.vmm)
			cri_reading_take_machine(e->reading, &e->machine, c->top_fd, &e->owner);
		else if (e->question == GUEST_USAGE_NONE)
			cri_reading_take(e->reading, c->top_fd, &e->owner);
	}
}

static void metrics_told(struct guest_usage *g, size_t n, const struct peer_group *group)
{
	struct metrics_call *c = container_of(g, struct metrics_call, guests);

	for (size_t i = 0; i < c->n; i++)
		if (c->entries[i].question == n && c->entries[i].is_container &&
		    str_eq(c->entries[i].owner.id, group->id))
			cri_reading_told(c->entries[i].reading, &group->usage);
}

static void metrics_asked(struct guest_usage *g)
{
	struct metrics_call *c = container_of(g, struct metrics_call, guests);

	pool_call_submit(&c->base, c->service->work->pool);
}

/* ---- the answer ---- */

static Runtime__V1__ContainerMetrics *metrics_of_container(struct arena *a,
							   const struct metrics_entry *e)
{
	Runtime__V1__ContainerMetrics *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__container_metrics__init(m);
	m->container_id = (char *)(uintptr_t)e->owner.id;
	m->metrics = cri_metrics(a, e->reading, &e->owner, &m->n_metrics);
	return m->metrics ? m : NULL;
}

/* The sandbox at `e` with the n containers behind it. */
static Runtime__V1__PodSandboxMetrics *metrics_of_sandbox(struct arena *a,
							  const struct metrics_entry *e, size_t n)
{
	Runtime__V1__PodSandboxMetrics *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__pod_sandbox_metrics__init(m);
	m->pod_sandbox_id = (char *)(uintptr_t)e->owner.id;
	m->metrics = cri_metrics(a, e->reading, &e->owner, &m->n_metrics);
	m->container_metrics = arena_zalloc(a, n + 1, sizeof(*m->container_metrics));
	if (!m->metrics || !m->container_metrics)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		m->container_metrics[i] = metrics_of_container(a, e + 1 + i);
		if (!m->container_metrics[i])
			return NULL;
		m->n_container_metrics++;
	}
	return m;
}

/* In the call's own arena: that of the request would go with its answer. -ENOMEM. */
static int metrics_convert(struct metrics_call *c, Runtime__V1__PodSandboxMetrics ***ret, size_t *n)
{
	Runtime__V1__PodSandboxMetrics **list = arena_zalloc(&c->arena, c->n + 1, sizeof(*list));

	*n = 0;
	for (size_t i = 0, end = 0; list && i < c->n; i = end) {
		for (end = i + 1; end < c->n && c->entries[end].is_container;)
			end++;
		list[*n] = metrics_of_sandbox(&c->arena, &c->entries[i], end - i - 1);
		if (!list[(*n)++])
			return -ENOMEM;
	}
	*ret = list;
	return list ? 0 : -ENOMEM;
}

static void metrics_send(struct rpc_call *call, Runtime__V1__PodSandboxMetrics **list, size_t n)
{
	struct error err = ERROR_INIT;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i += METRICS_ITEMS) {
		Runtime__V1__StreamPodSandboxMetricsResponse m =
			RUNTIME__V1__STREAM_POD_SANDBOX_METRICS_RESPONSE__INIT;

		m.pod_sandbox_metrics = list + i;
		m.n_pod_sandbox_metrics = MIN(n - i, (size_t)METRICS_ITEMS);
		r = rpc_call_send(call, &m.base);
	}
	if (r == 0) {
		rpc_call_finish(call);
		return;
	}
	(void)error_set(&err, r, "answer");
	rpc_call_fail(call, &err);
}

static void metrics_reply(struct pool_call *p, struct rpc_call *call)
{
	Runtime__V1__ListPodSandboxMetricsResponse m =
		RUNTIME__V1__LIST_POD_SANDBOX_METRICS_RESPONSE__INIT;
	struct metrics_call *c = container_of(p, struct metrics_call, base);

	if (metrics_convert(c, &m.pod_metrics, &m.n_pod_metrics) < 0)
		metrics_no_memory(call);
	else if (c->streams)
		metrics_send(call, m.pod_metrics, m.n_pod_metrics);
	else
		rpc_call_reply(call, &m.base);
}

/* ---- the methods ---- */

static void metrics_start(struct rpc_call *call, const struct cri_runtime_service *s, bool streams)
{
	static const struct pool_call_ops ops = { metrics_run, metrics_reply, metrics_free };
	struct metrics_call *c = calloc(1, sizeof(*c));

	if (!c) {
		metrics_no_memory(call);
		return;
	}
	c->service = s;
	c->guests.told = metrics_told;
	c->guests.ready = metrics_asked;
	c->top_fd = s->work->top_fd;
	c->streams = streams;
	if (metrics_add_all(c) == 0) {
		pool_call_begin(&c->base, &ops, call);
		guest_usage_ask(&c->guests);
		return;
	}
	metrics_free(&c->base);
	metrics_no_memory(call);
}

void cri_list_pod_sandbox_metrics(struct rpc_call *call, const ProtobufCMessage *request,
				  void *userdata)
{
	(void)request;
	metrics_start(call, userdata, false);
}

void cri_stream_pod_sandbox_metrics(struct rpc_call *call, const ProtobufCMessage *request,
				    void *userdata)
{
	(void)request;
	metrics_start(call, userdata, true);
}

void cri_list_metric_descriptors(struct rpc_call *call, const ProtobufCMessage *request,
				 void *userdata)
{
	Runtime__V1__ListMetricDescriptorsResponse m =
		RUNTIME__V1__LIST_METRIC_DESCRIPTORS_RESPONSE__INIT;

	(void)request;
	(void)userdata;
	m.descriptors = cri_metrics_descriptors(rpc_call_arena(call), &m.n_descriptors);
	if (m.descriptors)
		rpc_call_reply(call, &m.base);
	else
		metrics_no_memory(call);
}
