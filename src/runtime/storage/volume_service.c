/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/macros.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "pod/storage/volumes.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/services.h"
#include "runtime/storage/volume_sizes.h"
#include "volumes/fill.h"
#include "volumes/volumes.h"

static void volume_no_memory(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

/* ---- as messages ---- */

static int volume_labels(struct arena *a, const struct volume *v, Nacre__V1__NodeVolume *m)
{
	char *rest = arena_strdup(a, v->labels), *save = NULL;

	m->labels = arena_zalloc(a, VOLUME_LABELS_MAX, sizeof(char *));
	if (!rest || !m->labels)
		return -ENOMEM;
	for (char *label = strtok_r(rest, "\n", &save); label && m->n_labels < VOLUME_LABELS_MAX;
	     label = strtok_r(NULL, "\n", &save))
		m->labels[m->n_labels++] = label;
	return 0;
}

static Nacre__V1__NodeVolume *volume_message(struct arena *a, const struct volume *v)
{
	Nacre__V1__NodeVolume *m = arena_alloc(a, sizeof(*m));
	char path[PATH_MAX];

	if (!m || volume_path(v, path, sizeof(path)) < 0)
		return NULL;
	nacre__v1__node_volume__init(m);
	m->name = (char *)(uintptr_t)v->name;
	m->id = (char *)(uintptr_t)v->id;
	m->anonymous = v->anonymous;
	m->created_at = v->created_at;
	m->path = arena_strdup(a, path);
	return m->path && volume_labels(a, v, m) == 0 ? m : NULL;
}

/* The workload has it: one more of its path. */
static int volume_add_user(struct arena *a, Nacre__V1__NodeVolume *m, const struct workload *w)
{
	enum { STEP = 8 };
	char **more;

	if (m->n_workloads % STEP == 0) {
		more = arena_zalloc(a, m->n_workloads + STEP, sizeof(*more));
		if (!more)
			return -ENOMEM;
		for (size_t i = 0; i < m->n_workloads; i++)
			more[i] = m->workloads[i];
		m->workloads = more;
	}
	m->workloads[m->n_workloads++] = (char *)(uintptr_t)w->path;
	return 0;
}

/* Once for each workload, whatever number of its containers have it. */
static int volume_users(struct arena *a, const struct workloads *all, const struct volume *v,
			Nacre__V1__NodeVolume *m)
{
	const struct workload *w;
	int r = 0;

	list_for_each (w, workloads_list(all), struct workload, link)
		if (r == 0 && workload_has_volume(w, v->id))
			r = volume_add_user(a, m, w);
	return r;
}

static Nacre__V1__NodeVolume *volume_with_users(struct arena *a, const struct volume_service *s,
						const struct volume *v)
{
	Nacre__V1__NodeVolume *m = volume_message(a, v);

	return m && volume_users(a, s->workloads, v, m) == 0 ? m : NULL;
}

/* ---- CreateVolume ---- */

/* A call that waits for a volume, in its arena. */
struct volume_call {
	struct volume_waiter waiter;
	struct rpc_call *call;
};

static struct volume_call *volume_call_new(struct rpc_call *call,
					   void (*done)(struct volume_waiter *waiter,
							struct volume *v, const struct error *err),
					   struct error *err)
{
	struct volume_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));

	if (!c) {
		(void)error_set(err, -ENOMEM, "wait for a volume");
		return NULL;
	}
	c->call = call;
	c->waiter.done = done;
	return c;
}

static void volume_created(struct volume_waiter *waiter, struct volume *v, const struct error *err)
{
	Nacre__V1__CreateVolumeResponse m = NACRE__V1__CREATE_VOLUME_RESPONSE__INIT;
	struct rpc_call *call = container_of(waiter, struct volume_call, waiter)->call;

	if (err) {
		rpc_call_fail(call, err);
		return;
	}
	m.volume = volume_message(rpc_call_arena(call), v);
	if (m.volume)
		rpc_call_reply(call, &m.base);
	else
		volume_no_memory(call);
}

static void volume_create(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__CreateVolumeRequest *q =
		(const Nacre__V1__CreateVolumeRequest *)(const void *)request;
	const struct volume_spec spec = { .name = q->name,
					  .labels = q->labels,
					  .n_labels = q->n_labels };
	const struct volume_service *s = userdata;
	struct error err = ERROR_INIT;
	struct volume_call *c = volume_call_new(call, volume_created, &err);

	if (!c || volumes_create(s->volumes, &spec, &c->waiter, NULL, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- ListVolumes, InspectVolume ---- */

/* The message of the volume with this id. */
static Nacre__V1__NodeVolume *volume_told(const Nacre__V1__ListVolumesResponse *m, const char *id)
{
	for (size_t i = 0; i < m->n_volumes; i++)
		if (str_eq(m->volumes[i]->id, id))
			return m->volumes[i];
	return NULL;
}

static int volume_list_users(struct arena *a, const struct workloads *all,
			     const Nacre__V1__ListVolumesResponse *m)
{
	const struct workload *w;

	list_for_each (w, workloads_list(all), struct workload, link) {
		for (size_t i = 0; i < w->n_containers; i++) {
			char *const *id = w->containers[i]->volumes;

			for (; id && *id; id++) {
				Nacre__V1__NodeVolume *told = volume_told(m, *id);
				size_t n = told ? told->n_workloads : 0;

				if (!told || (n > 0 && told->workloads[n - 1] == w->path))
					continue;
				if (volume_add_user(a, told, w) < 0)
					return -ENOMEM;
			}
		}
	}
	return 0;
}

/* NULL without memory. */
static Nacre__V1__ListVolumesResponse *volume_list_answer(const struct volume_service *s,
							  struct arena *a)
{
	Nacre__V1__ListVolumesResponse *m = arena_alloc(a, sizeof(*m));
	const struct volume *v;

	if (!m)
		return NULL;
	nacre__v1__list_volumes_response__init(m);
	m->volumes = arena_zalloc(a, volumes_count(s->volumes) + 1, sizeof(*m->volumes));
	if (!m->volumes)
		return NULL;
	list_for_each (v, volumes_list(s->volumes), struct volume, link) {
		if (v->state == VOLUME_REMOVING)
			continue;
		m->volumes[m->n_volumes] = volume_message(a, v);
		if (!m->volumes[m->n_volumes++])
			return NULL;
	}
	return volume_list_users(a, s->workloads, m) < 0 ? NULL : m;
}

static void volume_list(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ListVolumesRequest *q =
		(const Nacre__V1__ListVolumesRequest *)(const void *)request;
	const struct volume_service *s = userdata;
	struct arena *a = rpc_call_arena(call);
	Nacre__V1__ListVolumesResponse *m = volume_list_answer(s, a);
	struct error err = ERROR_INIT;

	if (!m)
		volume_no_memory(call);
	else if (!q->sizes)
		rpc_call_reply(call, &m->base);
	else if (volume_sizes_answer(call, s->pool, s->volumes, m, &err) < 0)
		rpc_call_fail(call, &err);
}

static struct volume *volume_named(const struct volume_service *s, const char *field,
				   const char *name, struct error *err)
{
	struct volume *v = NULL;

	if (str_empty(name))
		(void)error_field(err, ERROR_INVALID, field, "required");
	else if (volume_check_name(field, name, err) == 0)
		v = volumes_find(s->volumes, name);
	if (!v && !err->code)
		(void)error_field(err, ERROR_NOT_FOUND, field, "this node has no volume %s", name);
	return v;
}

static void volume_inspect(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__InspectVolumeRequest *q =
		(const Nacre__V1__InspectVolumeRequest *)(const void *)request;
	Nacre__V1__InspectVolumeResponse m = NACRE__V1__INSPECT_VOLUME_RESPONSE__INIT;
	const struct volume_service *s = userdata;
	struct error err = ERROR_INIT;
	const struct volume *v = volume_named(s, "name", q->name, &err);

	if (!v) {
		rpc_call_fail(call, &err);
		return;
	}
	m.volume = volume_with_users(rpc_call_arena(call), s, v);
	if (m.volume)
		rpc_call_reply(call, &m.base);
	else
		volume_no_memory(call);
}

/* ---- RemoveVolume ---- */

static int volume_check_unused(const struct volume_service *s, const struct volume *v,
			       struct error *err)
{
	const struct workload *w = workloads_with_volume(s->workloads, v->id, NULL);

	if (w)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the volume %s belongs to %s, which is %s: remove that first",
				    v->name, w->path, workload_state_word(w->state));
	if (v->n_held > 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the volume %s is given to something that starts just now, or "
				    "its files are copied",
				    v->name);
	return 0;
}

static void volume_removed(struct volume_waiter *waiter, struct volume *v, const struct error *err)
{
	Nacre__V1__RemoveVolumeResponse m = NACRE__V1__REMOVE_VOLUME_RESPONSE__INIT;
	struct rpc_call *call = container_of(waiter, struct volume_call, waiter)->call;

	(void)v;
	if (err)
		rpc_call_fail(call, err);
	else
		rpc_call_reply(call, &m.base);
}

static void volume_remove_named(struct rpc_call *call, const ProtobufCMessage *request,
				void *userdata)
{
	const Nacre__V1__RemoveVolumeRequest *q =
		(const Nacre__V1__RemoveVolumeRequest *)(const void *)request;
	const struct volume_service *s = userdata;
	struct error err = ERROR_INIT;
	struct volume *v = volume_named(s, "name", q->name, &err);
	struct volume_call *c = NULL;

	if (v && volume_check_unused(s, v, &err) == 0)
		c = volume_call_new(call, volume_removed, &err);
	if (!c || volume_remove(v, &c->waiter, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- PruneVolumes ---- */

/* In the arena of its call. */
struct volume_prune {
	struct rpc_call *call;
	size_t n_left; /* and one while it is begun */
	char **removed;
	size_t n;
};

struct volume_prune_one {
	struct volume_waiter waiter;
	struct volume_prune *prune;
	char *name;
};

static void volume_prune_end(struct volume_prune *p)
{
	Nacre__V1__PruneVolumesResponse m = NACRE__V1__PRUNE_VOLUMES_RESPONSE__INIT;

	if (--p->n_left > 0)
		return;
	m.removed = p->removed;
	m.n_removed = p->n;
	rpc_call_reply(p->call, &m.base);
}

static void volume_pruned(struct volume_waiter *waiter, struct volume *v, const struct error *err)
{
	struct volume_prune_one *one = container_of(waiter, struct volume_prune_one, waiter);
	struct volume_prune *p = one->prune;

	(void)v;
	if (!err)
		p->removed[p->n++] = one->name;
	volume_prune_end(p);
}

/* Whether somebody has it: all volumes of all workloads are looked at once. */
static int volume_prune_users(const struct workloads *all, struct map *used)
{
	const struct workload *w;
	int r = 0;

	list_for_each (w, workloads_list(all), struct workload, link)
		for (size_t i = 0; i < w->n_containers; i++)
			for (char *const *id = w->containers[i]->volumes; id && *id; id++) {
				r = map_add(used, *id, *id);
				if (r < 0 && r != -EEXIST)
					return r;
			}
	return 0;
}

static int volume_prune_each(struct volume_prune *p, const struct volume_service *s, bool all,
			     const struct map *used)
{
	struct arena *a = rpc_call_arena(p->call);
	struct volume *v;

	list_for_each (v, volumes_list(s->volumes), struct volume, link) {
		struct volume_prune_one *one;

		if (v->state != VOLUME_READY || v->n_held > 0 || (!v->anonymous && !all) ||
		    map_get(used, v->id))
			continue;
		one = arena_zalloc(a, 1, sizeof(*one));
		if (!one)
			return -ENOMEM;
		one->prune = p;
		one->waiter.done = volume_pruned;
		one->name = arena_strdup(a, v->name);
		if (!one->name)
			return -ENOMEM;
		if (volume_remove(v, &one->waiter, NULL) == 0)
			p->n_left++;
	}
	return 0;
}

static void volume_prune(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__PruneVolumesRequest *q =
		(const Nacre__V1__PruneVolumesRequest *)(const void *)request;
	const struct volume_service *s = userdata;
	struct arena *a = rpc_call_arena(call);
	struct volume_prune *p = arena_zalloc(a, 1, sizeof(*p));
	struct map used = MAP_INIT;

	if (p)
		p->removed = arena_zalloc(a, volumes_count(s->volumes) + 1, sizeof(char *));
	if (!p || !p->removed || volume_prune_users(s->workloads, &used) < 0) {
		map_done(&used);
		volume_no_memory(call);
		return;
	}
	p->call = call;
	p->n_left = 1;
	/* What has begun goes on without memory too, and is told. */
	(void)volume_prune_each(p, s, q->all, &used);
	map_done(&used);
	volume_prune_end(p);
}

/* ---- ExportVolume, ImportVolume ---- */

#define VOLUME_CONTENT "/."

/* For a copy, which holds it: its directory. */
static int volume_open_held(const struct volume_service *s, const struct copies *copies,
			    struct volume *v, struct error *err)
{
	int fd;

	if (v->state != VOLUME_READY || v->filling)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the volume %s is being made: try again", v->name);
	fd = copies_check(copies, VOLUME_CONTENT, err);
	if (fd == 0)
		fd = fill_open(volumes_dir(s->volumes), v->id, err);
	if (fd >= 0)
		v->n_held++;
	return fd;
}

static void volume_export(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ExportVolumeRequest *q =
		(const Nacre__V1__ExportVolumeRequest *)(const void *)request;
	Nacre__V1__CopyFromRequest what = NACRE__V1__COPY_FROM_REQUEST__INIT;
	struct volume_service *s = userdata;
	struct error err = ERROR_INIT;
	struct volume *v = volume_named(s, "name", q->name, &err);
	int r = v ? volume_open_held(s, &s->exports, v, &err) : err.code;

	what.path = (char *)(uintptr_t)VOLUME_CONTENT;
	what.exact = true;
	what.one_mount = true;
	if (r >= 0)
		r = copy_from_begin(&s->exports, call, r, v->id, NULL, &what, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

static void volume_import(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__CopyToRequest *q = (const Nacre__V1__CopyToRequest *)(const void *)request;
	Nacre__V1__CopyToRequest first = NACRE__V1__COPY_TO_REQUEST__INIT;
	struct volume_service *s = userdata;
	struct error err = ERROR_INIT;
	struct volume *v = NULL;
	int r = 0;

	if (q)
		first = *q;
	if (*first.container || *first.path || first.directory)
		r = error_field(&err, ERROR_INVALID, *first.container ? "container" : "path",
				"a volume has none: leave it out");
	first.path = (char *)(uintptr_t)VOLUME_CONTENT;
	first.directory = true;
	if (r == 0)
		v = volume_named(s, "target", first.target, &err);
	r = v ? volume_open_held(s, &s->imports, v, &err) : err.code;
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	/* No first container fills it now, which puts another directory in its place. */
	v->n_opened++;
	if (copy_to_begin(&s->imports, call, r, v->id, NULL, &first, &err) < 0)
		rpc_call_fail(call, &err);
}

void volume_service_copied(struct volume_service *s, const char *id, bool into)
{
	struct volume *v = volumes_find(s->volumes, id);

	if (!v)
		return;
	v->n_held--;
	v->n_opened -= into;
	if (v->unwanted && v->n_held == 0 && !workloads_with_volume(s->workloads, v->id, NULL))
		(void)volume_remove(v, NULL, NULL);
}

static const struct rpc_method volume_methods[] = {
	{ "CreateVolume", &nacre__v1__create_volume_request__descriptor,
	  &nacre__v1__create_volume_response__descriptor, false, volume_create },
	{ "ListVolumes", &nacre__v1__list_volumes_request__descriptor,
	  &nacre__v1__list_volumes_response__descriptor, false, volume_list },
	{ "InspectVolume", &nacre__v1__inspect_volume_request__descriptor,
	  &nacre__v1__inspect_volume_response__descriptor, false, volume_inspect },
	{ "RemoveVolume", &nacre__v1__remove_volume_request__descriptor,
	  &nacre__v1__remove_volume_response__descriptor, false, volume_remove_named },
	{ "PruneVolumes", &nacre__v1__prune_volumes_request__descriptor,
	  &nacre__v1__prune_volumes_response__descriptor, false, volume_prune },
	{ "ExportVolume", &nacre__v1__export_volume_request__descriptor,
	  &nacre__v1__copy_from_response__descriptor, true, volume_export },
	{ .name = "ImportVolume",
	  .input = &nacre__v1__copy_to_request__descriptor,
	  .output = &nacre__v1__copy_to_response__descriptor,
	  .handle = volume_import,
	  .client_streaming = true },
};

const struct rpc_service volume_service = {
	.name = "nacre.v1.VolumeService",
	.methods = volume_methods,
	.n_methods = ARRAY_SIZE(volume_methods),
};
