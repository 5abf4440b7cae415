/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/images/images_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cri/images/image.h"
#include "cri/services.h"
#include "cri/state/info.h"
#include "cri/streams/stream.h"

/* ---- lists ---- */

/* An image's place in the list: that of its import, and where the clock gave two the same its id.
 */
struct images_place {
	uint64_t created;
	char id[sizeof(((struct image *)NULL)->id)];
};

static bool images_is_behind(const struct image *image, const struct images_place *place)
{
	if (image->created != place->created)
		return image->created > place->created;
	return strcmp(image->id, place->id) > 0;
}

static int images_compare(const void *a, const void *b)
{
	const struct image *x = *(const struct image *const *)a;
	const struct image *y = *(const struct image *const *)b;

	if (x->created != y->created)
		return x->created < y->created ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* Those behind `place` (NULL: all), in order; NULL without memory. */
static const struct image **images_collect(struct arena *a, const struct image_store *images,
					   const struct images_place *place, size_t *ret_n)
{
	const struct image **found, *image;
	size_t n = 0;

	list_for_each (image, image_store_list(images), struct image, link)
		n++;
	found = arena_zalloc(a, n + 1, sizeof(const struct image *));
	if (!found)
		return NULL;
	n = 0;
	list_for_each (image, image_store_list(images), struct image, link)
		if (!place || images_is_behind(image, place))
			found[n++] = image;
	qsort(found, n, sizeof(const struct image *), images_compare);
	*ret_n = n;
	return found;
}

/* NULL without memory. */
static Runtime__V1__Image **images_show(struct arena *a, const struct image *const *images,
					size_t n)
{
	Runtime__V1__Image **shown = arena_zalloc(a, n + 1, sizeof(*shown));

	for (size_t i = 0; shown && i < n; i++) {
		shown[i] = cri_image_show(a, images[i]);
		if (!shown[i])
			return NULL;
	}
	return shown;
}

/* What a filter lets through: 1 all, 0 only *ret, which may be NULL. */
static int images_filter(const struct cri_image_service *s, const Runtime__V1__ImageFilter *filter,
			 struct image **ret, struct error *err)
{
	int r;

	*ret = NULL;
	if (!filter || !filter->image || str_empty(filter->image->image))
		return 1;
	r = cri_image_find(s->images, "filter.image.image", filter->image, ret, err);
	return MIN(r, 0);
}

static int images_list(struct rpc_call *call, const struct cri_image_service *s,
		       const Runtime__V1__ListImagesRequest *q, struct error *err)
{
	Runtime__V1__ListImagesResponse m = RUNTIME__V1__LIST_IMAGES_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	const struct image **found = NULL;
	const struct image *const *some;
	struct image *one;
	int r = images_filter(s, q->filter, &one, err);

	if (r < 0)
		return r;
	some = (const struct image *const *)&one;
	m.n_images = one != NULL;
	if (r > 0) {
		found = images_collect(a, s->images, NULL, &m.n_images);
		some = found;
	}
	m.images = some ? images_show(a, some, m.n_images) : NULL;
	if (!m.images)
		return error_set(err, -ENOMEM, "list images");
	rpc_call_reply(call, &m.base);
	return 0;
}

void cri_list_images(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (images_list(call, userdata,
			(const Runtime__V1__ListImagesRequest *)(const void *)request, &err) < 0)
		rpc_call_fail(call, &err);
}

/* In the call's arena. */
struct images_stream {
	const struct cri_image_service *service;
	struct images_place place;
	char only[sizeof(((struct image *)NULL)->id)]; /* "": all */
	bool none;
};

static int images_send(struct rpc_call *call, const struct image *const *images, size_t n,
		       struct arena *a, struct error *err)
{
	Runtime__V1__StreamImagesResponse m = RUNTIME__V1__STREAM_IMAGES_RESPONSE__INIT;
	int r = -ENOMEM;

	m.n_images = n;
	m.images = images_show(a, images, n);
	if (m.images)
		r = rpc_call_send(call, &m.base);
	return r < 0 ? error_set(err, r, "answer") : 0;
}

static int images_next(struct rpc_call *call, void *userdata, struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct images_stream *t = userdata;
	const struct image *last, **found;
	size_t n = 0, n_sent;
	int r;

	found = images_collect(&a, t->service->images, &t->place, &n);
	if (!found)
		return error_set(err, -ENOMEM, "list images");
	n_sent = MIN(n, (size_t)CRI_STREAM_ITEMS);
	if (n_sent == 0)
		return 0;
	r = images_send(call, found, n_sent, &a, err);
	if (r < 0)
		return r;
	last = found[n_sent - 1];
	t->place.created = last->created;
	(void)str_copy(t->place.id, sizeof(t->place.id), last->id);
	return n_sent < n;
}

static int images_next_one(struct rpc_call *call, void *userdata, struct error *err)
{
	const struct images_stream *t = userdata;
	const struct image *image =
		t->none ? NULL : image_store_find(t->service->images, t->only, NULL);

	return image ? images_send(call, &image, 1, rpc_call_arena(call), err) : 0;
}

void cri_stream_images(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__StreamImagesRequest *q =
		(const Runtime__V1__StreamImagesRequest *)(const void *)request;
	struct images_stream *t = arena_zalloc(rpc_call_arena(call), 1, sizeof(*t));
	struct error err = ERROR_INIT;
	struct image *one = NULL;
	int r = t ? images_filter(userdata, q->filter, &one, &err)
		  : error_set(&err, -ENOMEM, "list images");

	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	t->service = userdata;
	t->none = !one;
	if (one)
		(void)str_copy(t->only, sizeof(t->only), one->id);
	cri_stream_start(call, r > 0 ? images_next : images_next_one, t);
}

/* ---- ImageStatus ---- */

static void image_lease_drop(struct image_lease **l)
{
	*l = image_lease_free(*l);
}

/*
 * The configuration as imageSpec, as other runtimes have it: a document that was parsed when it
 * came, and whose digest is verified here. It is small, and read from the cache most of the time.
 */
static int status_info(struct arena *a, const struct cri_image_service *s,
		       const struct image *image, Runtime__V1__ImageStatusResponse *m,
		       struct error *err)
{
	_cleanup_(image_lease_drop) struct image_lease *lease = NULL;
	_cleanup_(buf_done) struct buf config = BUF_INIT;
	Runtime__V1__ImageStatusResponse__InfoEntry *entry = arena_alloc(a, sizeof(*entry));
	struct cri_info info;
	int r;

	m->info = arena_zalloc(a, 1, sizeof(*m->info));
	if (!entry || !m->info || image_lease_new(&lease, s->images, image) < 0)
		return error_set(err, -ENOMEM, "inspect an image");
	r = image_lease_read(lease, image->id, &config, err);
	if (r < 0)
		return r;
	if (cri_info_open(&info) < 0)
		return error_set(err, -ENOMEM, "inspect an image");
	json_put_document(&info.json, "imageSpec", buf_data(&config), config.len);
	runtime__v1__image_status_response__info_entry__init(entry);
	entry->key = (char *)(uintptr_t)CRI_INFO_KEY;
	entry->value = cri_info_close(&info, a);
	m->info[0] = entry;
	m->n_info = 1;
	return entry->value ? 0 : error_set(err, -ENOMEM, "inspect an image");
}

static int image_status(struct rpc_call *call, const struct cri_image_service *s,
			const Runtime__V1__ImageStatusRequest *q, struct error *err)
{
	Runtime__V1__ImageStatusResponse m = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	struct image *image;
	int r = cri_image_find(s->images, "image.image", q->image, &image, err);

	if (r > 0) {
		m.image = cri_image_show(a, image);
		r = m.image ? 0 : error_set(err, -ENOMEM, "show an image");
		if (r == 0 && q->verbose)
			r = status_info(a, s, image, &m, err);
	}
	if (r == 0)
		rpc_call_reply(call, &m.base);
	return r;
}

void cri_image_status(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct error err = ERROR_INIT;

	if (image_status(call, userdata,
			 (const Runtime__V1__ImageStatusRequest *)(const void *)request, &err) < 0)
		rpc_call_fail(call, &err);
}
