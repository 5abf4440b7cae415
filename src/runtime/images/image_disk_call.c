/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_disk_call.h"

#include <errno.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "image/image.h"
#include "pod/workload/events.h"
#include "runtime/services.h"

/* In the call's arena. */
struct image_disk {
	struct rpc_call *call;
	struct image_service *service;
	bool dry_run;
};

static struct image_disk *image_disk_new(struct rpc_call *call, void *userdata, struct error *err)
{
	struct image_disk *d = arena_zalloc(rpc_call_arena(call), 1, sizeof(*d));

	if (!d) {
		(void)error_set(err, -ENOMEM, "look at the images");
		return NULL;
	}
	*d = (struct image_disk){ .call = call, .service = userdata };
	return d;
}

static void image_disk_fail(struct rpc_call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, -ENOMEM, "answer");
	rpc_call_fail(call, &err);
}

/* ---- DiskUsage ---- */

static Nacre__V1__ImageUsage **usage_images(struct arena *a, const struct image_usage *u, size_t n)
{
	Nacre__V1__ImageUsage **list = arena_zalloc(a, n + 1, sizeof(*list));

	for (size_t i = 0; list && i < n; i++) {
		const struct image_usage_image *from = &u->images[i];

		list[i] = arena_alloc(a, sizeof(*list[i]));
		if (!list[i])
			return NULL;
		nacre__v1__image_usage__init(list[i]);
		list[i]->id = (char *)(uintptr_t)from->image->id;
		list[i]->names = from->image->names;
		list[i]->n_names = strv_len(from->image->names);
		list[i]->own = from->own;
		list[i]->shared = from->shared;
	}
	return list;
}

static Nacre__V1__FileUsage **usage_files(struct arena *a, const struct image_usage_item *items,
					  size_t n)
{
	Nacre__V1__FileUsage **list = arena_zalloc(a, n + 1, sizeof(*list));

	for (size_t i = 0; list && i < n; i++) {
		list[i] = arena_alloc(a, sizeof(*list[i]));
		if (!list[i])
			return NULL;
		nacre__v1__file_usage__init(list[i]);
		list[i]->name = (char *)(uintptr_t)items[i].name;
		list[i]->bytes = items[i].bytes;
		list[i]->changed_at =
			items[i].changed > 0 ? (uint64_t)items[i].changed * NSEC_PER_SEC : 0;
	}
	return list;
}

static void image_usage_done(void *userdata, const struct image_usage *u, const struct error *err)
{
	Nacre__V1__DiskUsageResponse m = NACRE__V1__DISK_USAGE_RESPONSE__INIT;
	struct image_disk *d = userdata;
	struct arena *a = rpc_call_arena(d->call);

	if (err) {
		rpc_call_fail(d->call, err);
		return;
	}
	m.n_images = MIN(u->n_images, (size_t)IMAGE_DISK_LIST_MAX);
	m.n_containers = MIN(u->n_containers, (size_t)IMAGE_DISK_LIST_MAX);
	m.n_partials = MIN(u->n_partials, (size_t)IMAGE_DISK_LIST_MAX);
	m.images = usage_images(a, u, m.n_images);
	m.containers = usage_files(a, u->containers, m.n_containers);
	m.partials = usage_files(a, u->partials, m.n_partials);
	m.layer_bytes = u->layer_bytes;
	m.blob_bytes = u->blob_bytes;
	m.erofs_bytes = u->erofs_bytes;
	m.container_bytes = u->container_bytes;
	m.partial_bytes = u->partial_bytes;
	m.staging_bytes = u->staging_bytes;
	m.database_bytes = u->database_bytes;
	m.reclaimable_bytes = u->reclaimable;
	m.free_bytes = u->free_bytes;
	m.reserve_bytes = u->reserve;
	m.incomplete = u->incomplete;
	if (m.images && m.containers && m.partials)
		rpc_call_reply(d->call, &m.base);
	else
		image_disk_fail(d->call);
}

void image_usage_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;
	struct image_disk *d = image_disk_new(call, userdata, &err);

	(void)request;
	if (!d || image_store_usage(d->service->images, image_usage_done, d, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- Prune ---- */

static Nacre__V1__PrunedItem *pruned_item(struct arena *a, const struct image_pruned_item *from)
{
	Nacre__V1__PrunedItem *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__pruned_item__init(m);
	m->kind = (char *)(uintptr_t)from->kind;
	m->id = (char *)(uintptr_t)from->id;
	m->names = (char **)(uintptr_t)from->names;
	m->n_names = from->names ? strv_len(from->names) : 0;
	m->bytes = from->bytes;
	m->error = from->err.code ? arena_strdup(a, error_text(&from->err)) : m->error;
	return m->error ? m : NULL;
}

static void pruned_tell(const struct image_disk *d, const struct image_pruned_item *i)
{
	struct event e = {
		.object = "image",
		.id = i->id,
		.name = i->names && i->names[0] ? i->names[0] : "",
		.kind = "image",
		.state = "removed",
		.reason = "pruned",
	};

	if (!d->dry_run && !i->err.code && str_eq(i->kind, "image"))
		events_publish(d->service->events, &e);
}

static void image_prune_done(void *userdata, const struct image_pruned *p, const struct error *err)
{
	Nacre__V1__PruneImagesResponse m = NACRE__V1__PRUNE_IMAGES_RESPONSE__INIT;
	struct image_disk *d = userdata;
	struct arena *a = rpc_call_arena(d->call);
	bool whole;

	if (err) {
		rpc_call_fail(d->call, err);
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		pruned_tell(d, &p->items[i]);
	m.n_items = MIN(p->n, (size_t)IMAGE_DISK_LIST_MAX);
	m.items = arena_zalloc(a, m.n_items + 1, sizeof(*m.items));
	whole = m.items != NULL;
	for (size_t i = 0; whole && i < m.n_items; i++) {
		m.items[i] = pruned_item(a, &p->items[i]);
		whole = m.items[i] != NULL;
	}
	m.bytes = p->bytes;
	if (whole)
		rpc_call_reply(d->call, &m.base);
	else
		image_disk_fail(d->call);
}

void image_prune_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__PruneImagesRequest *q =
		(const Nacre__V1__PruneImagesRequest *)(const void *)request;
	const struct image_prune_options options = {
		.all = q->all,
		.dry_run = q->dry_run,
		.older_than = q->older_than_s < INT64_MAX ? q->older_than_s : INT64_MAX,
	};
	struct error err = ERROR_INIT;
	struct image_disk *d = image_disk_new(call, userdata, &err);

	if (d)
		d->dry_run = q->dry_run;
	if (!d || image_store_prune(d->service->images, &options, image_prune_done, d, &err) < 0)
		rpc_call_fail(call, &err);
}
