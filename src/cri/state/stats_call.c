/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop writes down what is asked for, with the group of each; a thread reads the groups, and
 * the loop answers. What an entry says is copied: its sandbox may be gone by then.
 */

#include "cri/state/stats_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/array.h"
#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "cri/sandbox/list_call.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/status.h"
#include "cri/services.h"
#include "cri/state/guest_usage.h"
#include "cri/state/stats.h"
#include "cri/streams/stream.h"
#include "network/attachment.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/groups.h"
#include "runtime/core/pool_call.h"
#include "runtime/services.h"

/* A sandbox, or a container of the sandbox in front of it. */
struct stats_entry {
	Runtime__V1__PodSandboxAttributes *sandbox;
	Runtime__V1__ContainerAttributes *container;
	char *group; /* NULL: nothing is read */
	/* GUEST_USAGE_NONE, or by whom it is told, and as what: the id of a container, or "". */
	size_t question;
	const char *id;
	struct machine_usage machine;
	char device[IF_NAMESIZE];
	struct disk_written files;
	struct cri_usage usage;
};

struct stats_call {
	struct pool_call base;
	struct arena arena;
	const struct cri_runtime_service *service;
	struct guest_usage guests;
	int top_fd;
	struct stats_entry *entries;
	size_t n, size;
	size_t n_sandboxes, n_containers;
	/* Ends the call. */
	void (*answer)(struct stats_call *c, struct rpc_call *call);
	Runtime__V1__ContainerStats **containers;
	Runtime__V1__PodSandboxStats **sandboxes;
};

static void stats_free(struct pool_call *p)
{
	struct stats_call *c = container_of(p, struct stats_call, base);

	guest_usage_done(&c->guests);
	arena_done(&c->arena);
	free(c->entries);
	free(c);
}

static void stats_no_memory(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "tell what is used");
	rpc_call_fail(call, &err);
}

/* ---- what is asked for ---- */

/* NULL without memory. */
static struct stats_entry *stats_add(struct stats_call *c, const char *group)
{
	void *room = c->entries;
	int r = array_grow(&room, c->n, &c->size, sizeof(*c->entries));
	struct stats_entry *e;

	c->entries = room;
	if (r < 0)
		return NULL;
	e = &c->entries[c->n];
	*e = (struct stats_entry){ .question = GUEST_USAGE_NONE, .usage = { .result = -ENOENT } };
	e->group = group ? arena_strdup(&c->arena, group) : NULL;
	if (group && !e->group)
		return NULL;
	c->n++;
	return e;
}

/* Of the last entry: its keeper counts, where that has a kernel of its own. id: of a container. */
static int stats_ask(struct stats_call *c, const struct workload *w, const char *id)
{
	struct stats_entry *e = &c->entries[c->n - 1];
	int r;

	if (!workload_is_remote(w))
		return 0;
	e->id = id;
	r = guest_usage_add(&c->guests, w->instance, &e->question);
	if (r < 0 || *id || !instance_kind_can(w->choice.kind, INSTANCE_LOCAL_CGROUP))
		return r;
	return machine_usage_plan(&e->machine, &c->arena, c->service->work, w->instance);
}

static bool stats_runs(const struct pod_container *c)
{
	return !pod_container_is_created(c) && !pod_container_has_ended(c);
}

/* 0, also where it is none of the CRI's; or -ENOMEM. */
static int stats_add_container(struct stats_call *c, const struct pod_container *pc)
{
	const Runtime__V1__CreateContainerRequest *q = cri_record_of_container(&c->arena, pc);
	Runtime__V1__ContainerAttributes *m = arena_alloc(&c->arena, sizeof(*m));
	const Runtime__V1__Container *item = q ? cri_container_item(&c->arena, pc, q) : NULL;
	char group[GROUP_PATH_MAX];
	struct stats_entry *e;
	bool runs;

	if (!q)
		return 0;
	if (!m || !item)
		return -ENOMEM;
	runtime__v1__container_attributes__init(m);
	m->id = item->id;
	m->metadata = item->metadata;
	/* Maps of strings look alike. */
	m->labels = (void *)item->labels;
	m->n_labels = item->n_labels;
	m->annotations = (void *)item->annotations;
	m->n_annotations = item->n_annotations;
	runs = stats_runs(pc) && group_of_container(c->service->work, pc, group) == 0;
	e = stats_add(c, runs ? group : NULL);
	if (!e)
		return -ENOMEM;
	e->container = m;
	e->files = pc->written;
	c->n_containers++;
	return stats_runs(pc) ? stats_ask(c, pc->workload, m->id) : 0;
}

static int stats_add_sandbox(struct stats_call *c, const struct workload *w,
			     const Runtime__V1__RunPodSandboxRequest *q)
{
	Runtime__V1__PodSandboxAttributes *m = arena_alloc(&c->arena, sizeof(*m));
	const Runtime__V1__PodSandbox *item = cri_sandbox_item(&c->arena, w, q);
	char group[GROUP_PATH_MAX];
	struct stats_entry *e;
	int r = 0;

	if (!m || !item)
		return -ENOMEM;
	runtime__v1__pod_sandbox_attributes__init(m);
	m->id = item->id;
	m->metadata = item->metadata;
	m->labels = (void *)item->labels;
	m->n_labels = item->n_labels;
	m->annotations = (void *)item->annotations;
	m->n_annotations = item->n_annotations;
	/* The group of another kernel's is that of its gate. */
	e = stats_add(c,
		      !workload_is_remote(w) && group_of_workload(c->service->work, w, group) == 0
			      ? group
			      : NULL);
	if (!e)
		return -ENOMEM;
	e->sandbox = m;
	if (w->attachment)
		(void)str_copy(e->device, sizeof(e->device), w->attachment->device);
	c->n_sandboxes++;
	r = stats_ask(c, w, "");
	for (size_t i = 0; i < w->n_containers && r == 0; i++)
		if (stats_runs(w->containers[i]))
			r = stats_add_container(c, w->containers[i]);
	return r;
}

/* Those that run. */
static int stats_add_containers(struct stats_call *c, const Runtime__V1__ContainerStatsFilter *f)
{
	const struct workload *w;
	int r = 0;

	list_for_each (w, workloads_list(c->service->workloads), struct workload, link) {
		if (!cri_sandbox_is_shown(w) || (f && !str_has_prefix(w->id, f->pod_sandbox_id)))
			continue;
		for (size_t i = 0; i < w->n_containers && r == 0; i++) {
			const struct pod_container *pc = w->containers[i];
			const Runtime__V1__CreateContainerRequest *q;

			if (!stats_runs(pc) || (f && !str_has_prefix(pc->id, f->id)))
				continue;
			q = f && f->n_label_selector ? cri_record_of_container(&c->arena, pc)
						     : NULL;
			if (q && !cri_labels_match(q->config->labels, q->config->n_labels,
						   f->label_selector, f->n_label_selector))
				continue;
			r = stats_add_container(c, pc);
		}
	}
	return r;
}

/* Those that are ready. */
static int stats_add_sandboxes(struct stats_call *c, const Runtime__V1__PodSandboxStatsFilter *f)
{
	const struct workload *w;
	int r = 0;

	list_for_each (w, workloads_list(c->service->workloads), struct workload, link) {
		const Runtime__V1__RunPodSandboxRequest *q;

		if (r < 0 || !w->lasts || w->state != WORKLOAD_RUNNING ||
		    (f && !str_has_prefix(w->id, f->id)))
			continue;
		q = cri_record_of_sandbox(&c->arena, w);
		if (!q || (f && !cri_labels_match(q->config->labels, q->config->n_labels,
						  f->label_selector, f->n_label_selector)))
			continue;
		r = stats_add_sandbox(c, w, q);
	}
	return r;
}

/* ---- the answer ---- */

static void stats_run(struct pool_call *p)
{
	struct stats_call *c = container_of(p, struct stats_call, base);

	for (size_t i = 0; i < c->n; i++) {
		struct stats_entry *e = &c->entries[i];

		if (e->machine.vmm)
			cri_usage_read_machine(&e->usage, &e->machine, c->top_fd, e->device);
		else if (e->group)
			cri_usage_read(&e->usage, c->top_fd, e->group, e->device);
	}
}

/* All entries as messages. -ENOMEM. */
static int stats_convert(struct stats_call *c, struct arena *a)
{
	size_t n_containers = 0, n_sandboxes = 0;

	c->containers = arena_zalloc(a, c->n_containers + 1, sizeof(*c->containers));
	c->sandboxes = arena_zalloc(a, c->n_sandboxes + 1, sizeof(*c->sandboxes));
	if (!c->containers || !c->sandboxes)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		const struct stats_entry *e = &c->entries[i];

		if (!e->container)
			continue;
		c->containers[n_containers] = cri_stats_container(a, &e->usage, e->container,
								  &e->files, c->service->root);
		if (!c->containers[n_containers++])
			return -ENOMEM;
	}
	n_containers = 0;
	for (size_t i = 0, end = 0; i < c->n; i = end) {
		const struct stats_entry *e = &c->entries[i];

		for (end = i + 1; end < c->n && c->entries[end].container;)
			end++;
		if (!e->sandbox)
			break;
		c->sandboxes[n_sandboxes] = cri_stats_sandbox(
			a, &e->usage, e->sandbox, c->containers + n_containers, end - i - 1);
		if (!c->sandboxes[n_sandboxes++])
			return -ENOMEM;
		n_containers += end - i - 1;
	}
	return 0;
}

static void stats_reply(struct pool_call *p, struct rpc_call *call)
{
	struct stats_call *c = container_of(p, struct stats_call, base);

	if (stats_convert(c, rpc_call_arena(call)) < 0)
		stats_no_memory(call);
	else
		c->answer(c, call);
}

static void answer_container(struct stats_call *c, struct rpc_call *call)
{
	Runtime__V1__ContainerStatsResponse m = RUNTIME__V1__CONTAINER_STATS_RESPONSE__INIT;

	m.stats = c->containers[0];
	rpc_call_reply(call, &m.base);
}

static void answer_containers(struct stats_call *c, struct rpc_call *call)
{
	Runtime__V1__ListContainerStatsResponse m =
		RUNTIME__V1__LIST_CONTAINER_STATS_RESPONSE__INIT;

	m.stats = c->containers;
	m.n_stats = c->n_containers;
	rpc_call_reply(call, &m.base);
}

static void answer_sandbox(struct stats_call *c, struct rpc_call *call)
{
	Runtime__V1__PodSandboxStatsResponse m = RUNTIME__V1__POD_SANDBOX_STATS_RESPONSE__INIT;

	m.stats = c->sandboxes[0];
	rpc_call_reply(call, &m.base);
}

static void answer_sandboxes(struct stats_call *c, struct rpc_call *call)
{
	Runtime__V1__ListPodSandboxStatsResponse m =
		RUNTIME__V1__LIST_POD_SANDBOX_STATS_RESPONSE__INIT;

	m.stats = c->sandboxes;
	m.n_stats = c->n_sandboxes;
	rpc_call_reply(call, &m.base);
}

/* ---- streams ---- */

static void stats_end(struct rpc_call *call, int r)
{
	struct error err = ERROR_INIT;

	if (r == 0) {
		rpc_call_finish(call);
		return;
	}
	(void)error_set(&err, r, "answer");
	rpc_call_fail(call, &err);
}

static void answer_container_stream(struct stats_call *c, struct rpc_call *call)
{
	int r = 0;

	for (size_t i = 0; i < c->n_containers && r == 0; i += CRI_STREAM_ITEMS) {
		Runtime__V1__StreamContainerStatsResponse m =
			RUNTIME__V1__STREAM_CONTAINER_STATS_RESPONSE__INIT;

		m.container_stats = c->containers + i;
		m.n_container_stats = MIN(c->n_containers - i, (size_t)CRI_STREAM_ITEMS);
		r = rpc_call_send(call, &m.base);
	}
	stats_end(call, r);
}

static void answer_sandbox_stream(struct stats_call *c, struct rpc_call *call)
{
	int r = 0;

	for (size_t i = 0; i < c->n_sandboxes && r == 0; i += CRI_STREAM_ITEMS) {
		Runtime__V1__StreamPodSandboxStatsResponse m =
			RUNTIME__V1__STREAM_POD_SANDBOX_STATS_RESPONSE__INIT;

		m.pod_sandbox_stats = c->sandboxes + i;
		m.n_pod_sandbox_stats = MIN(c->n_sandboxes - i, (size_t)CRI_STREAM_ITEMS);
		r = rpc_call_send(call, &m.base);
	}
	stats_end(call, r);
}

/* ---- the methods ---- */

static void stats_told(struct guest_usage *g, size_t n, const struct peer_group *group)
{
	struct stats_call *c = container_of(g, struct stats_call, guests);

	for (size_t i = 0; i < c->n; i++)
		if (c->entries[i].question == n && str_eq(c->entries[i].id, group->id) &&
		    (*group->id || !*group->cell))
			cri_usage_take(&c->entries[i].usage, &group->usage);
}

static void stats_asked(struct guest_usage *g)
{
	struct stats_call *c = container_of(g, struct stats_call, guests);

	pool_call_submit(&c->base, c->service->work->pool);
}

/* NULL where the call has failed. */
static struct stats_call *stats_new(struct rpc_call *call, const struct cri_runtime_service *s,
				    void (*answer)(struct stats_call *c, struct rpc_call *call))
{
	struct stats_call *c = calloc(1, sizeof(*c));

	if (!c) {
		stats_no_memory(call);
		return NULL;
	}
	c->service = s;
	c->guests.told = stats_told;
	c->guests.ready = stats_asked;
	c->top_fd = s->work->top_fd;
	c->answer = answer;
	return c;
}

/* r: whether all was written down. */
static void stats_go(struct stats_call *c, struct rpc_call *call, int r)
{
	static const struct pool_call_ops ops = { stats_run, stats_reply, stats_free };

	if (r == 0) {
		pool_call_begin(&c->base, &ops, call);
		guest_usage_ask(&c->guests);
		return;
	}
	stats_free(&c->base);
	stats_no_memory(call);
}

void cri_container_stats(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__ContainerStatsRequest *q =
		(const Runtime__V1__ContainerStatsRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct pod_container *pc;
	struct stats_call *c;
	int r;

	if (cri_find_container(userdata, "container_id", q->container_id, &pc, &err) < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	c = stats_new(call, userdata, answer_container);
	if (!c)
		return;
	r = stats_add_container(c, pc);
	stats_go(c, call, r == 0 && c->n_containers == 0 ? -ENOMEM : r);
}

void cri_list_container_stats(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata)
{
	const Runtime__V1__ListContainerStatsRequest *q =
		(const Runtime__V1__ListContainerStatsRequest *)(const void *)request;
	struct stats_call *c = stats_new(call, userdata, answer_containers);

	if (c)
		stats_go(c, call, stats_add_containers(c, q->filter));
}

void cri_stream_container_stats(struct rpc_call *call, const ProtobufCMessage *request,
				void *userdata)
{
	const Runtime__V1__StreamContainerStatsRequest *q =
		(const Runtime__V1__StreamContainerStatsRequest *)(const void *)request;
	struct stats_call *c = stats_new(call, userdata, answer_container_stream);

	if (c)
		stats_go(c, call, stats_add_containers(c, q->filter));
}

void cri_pod_sandbox_stats(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__PodSandboxStatsRequest *q =
		(const Runtime__V1__PodSandboxStatsRequest *)(const void *)request;
	const Runtime__V1__RunPodSandboxRequest *made;
	struct error err = ERROR_INIT;
	struct stats_call *c;
	struct workload *w;

	if (cri_find_sandbox(userdata, "pod_sandbox_id", q->pod_sandbox_id, &w, &err) < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	c = stats_new(call, userdata, answer_sandbox);
	if (!c)
		return;
	made = cri_record_of_sandbox(&c->arena, w);
	stats_go(c, call, made ? stats_add_sandbox(c, w, made) : -ENOMEM);
}

void cri_list_pod_sandbox_stats(struct rpc_call *call, const ProtobufCMessage *request,
				void *userdata)
{
	const Runtime__V1__ListPodSandboxStatsRequest *q =
		(const Runtime__V1__ListPodSandboxStatsRequest *)(const void *)request;
	struct stats_call *c = stats_new(call, userdata, answer_sandboxes);

	if (c)
		stats_go(c, call, stats_add_sandboxes(c, q->filter));
}

void cri_stream_pod_sandbox_stats(struct rpc_call *call, const ProtobufCMessage *request,
				  void *userdata)
{
	const Runtime__V1__StreamPodSandboxStatsRequest *q =
		(const Runtime__V1__StreamPodSandboxStatsRequest *)(const void *)request;
	struct stats_call *c = stats_new(call, userdata, answer_sandbox_stream);

	if (c)
		stats_go(c, call, stats_add_sandboxes(c, q->filter));
}
