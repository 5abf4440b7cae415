/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/events_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/status.h"
#include "cri/services.h"
#include "pod/workload/workload.h"
#include "runtime/node/feed.h"

struct cri_events {
	struct feed feed;
	const struct cri_runtime_service *service;
};

/* Of a sandbox and of a container the same words mean the same here. */
static const struct {
	const char *state;
	Runtime__V1__ContainerEventType type;
} event_types[] = {
	{ "created", RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_CREATED_EVENT },
	{ "starting", RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_CREATED_EVENT },
	{ "running", RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_STARTED_EVENT },
	{ "exited", RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_STOPPED_EVENT },
	{ "failed", RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_STOPPED_EVENT },
	{ "removed", RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_DELETED_EVENT },
};

/* -ENOENT: the state means nothing to the kubelet. */
static int event_type(const struct event *e, Runtime__V1__ContainerEventType *ret)
{
	/* A container that was created begins to start: that is no second creation. */
	if (str_eq(e->object, "container") && str_eq(e->state, "starting"))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(event_types); i++) {
		if (!str_eq(e->state, event_types[i].state))
			continue;
		*ret = event_types[i].type;
		return 0;
	}
	return -ENOENT;
}

static int event_containers(struct arena *a, const struct workload *w, const struct event *e,
			    Runtime__V1__ContainerEventResponse *m)
{
	bool removed = str_eq(e->state, "removed");

	m->containers_statuses =
		arena_zalloc(a, w->n_containers + 1, sizeof(*m->containers_statuses));
	if (!m->containers_statuses)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_containers; i++) {
		struct pod_container *c = w->containers[i];
		const Runtime__V1__CreateContainerRequest *q = cri_record_of_container(a, c);
		Runtime__V1__ContainerStatus *status;

		if (!q || (removed && str_eq(c->id, e->id)))
			continue;
		status = cri_container_status(a, c, q);
		if (!status)
			return -ENOMEM;
		m->containers_statuses[m->n_containers_statuses++] = status;
	}
	return 0;
}

/* Without the sandbox the kubelet passes an event over: one whose sandbox is gone is not told. */
static int event_send(struct feed *f, struct arena *a, const struct event *e,
		      Runtime__V1__ContainerEventType type, struct error *err)
{
	Runtime__V1__ContainerEventResponse m = RUNTIME__V1__CONTAINER_EVENT_RESPONSE__INIT;
	const struct cri_events *c = container_of(f, struct cri_events, feed);
	const Runtime__V1__RunPodSandboxRequest *q;
	const struct workload *w;
	int r;

	w = workloads_find_id(c->service->workloads, str_empty(e->workload) ? e->id : e->workload);
	q = w && w->lasts ? cri_record_of_sandbox(a, w) : NULL;
	if (!q)
		return 0;
	m.container_id = (char *)(uintptr_t)e->id;
	m.container_event_type = type;
	m.created_at = (int64_t)e->time;
	m.pod_sandbox_status = cri_sandbox_status(a, w, q);
	if (!m.pod_sandbox_status || event_containers(a, w, e, &m) < 0)
		return error_set(err, -ENOMEM, "tell events");
	r = rpc_call_send(f->call, &m.base);
	return r < 0 ? error_set(err, r, "send an event") : 0;
}

static int event_tell(struct feed *f, const struct event *e, struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	Runtime__V1__ContainerEventType type;

	if (!str_eq(e->object, "workload") && !str_eq(e->object, "container"))
		return 0;
	return event_type(e, &type) < 0 ? 0 : event_send(f, &a, e, type, err);
}

static void event_free(struct feed *f)
{
	free(container_of(f, struct cri_events, feed));
}

static const struct feed_ops event_ops = {
	.event = event_tell,
	.free = event_free,
};

void cri_get_container_events(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata)
{
	const struct cri_runtime_service *s = userdata;
	struct cri_events *c = calloc(1, sizeof(*c));
	struct error err = ERROR_INIT;

	(void)request;
	if (!c) {
		(void)error_set(&err, -ENOMEM, "tell events");
		rpc_call_fail(call, &err);
		return;
	}
	c->service = s;
	c->feed.call = call;
	c->feed.events = s->events;
	c->feed.ops = &event_ops;
	c->feed.next = s->events->sequence + 1;
	feed_start(&c->feed);
}
