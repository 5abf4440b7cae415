/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/text/str.h"
#include "image/image.h"
#include "pod/workload/events.h"
#include "runtime/images/image_change_call.h"
#include "runtime/images/image_disk_call.h"
#include "runtime/images/image_export_call.h"
#include "runtime/images/image_inspect_call.h"
#include "runtime/images/image_listing_call.h"
#include "runtime/images/image_pull_call.h"
#include "runtime/images/image_push_call.h"
#include "runtime/images/image_told.h"
#include "runtime/images/image_verify_call.h"
#include "runtime/images/images_call.h"
#include "runtime/services.h"
#include "wire/name/digest.h"
#include "wire/name/reference.h"

/* ---- Import ---- */

struct image_call {
	struct rpc_call *call;
	struct image_service *service;
	struct image_import *import; /* until it is done */
	struct error fault;          /* of an answer */
};

static void image_call_progress(void *userdata, const char *text)
{
	struct image_call *c = userdata;
	Nacre__V1__ImportResponse m = NACRE__V1__IMPORT_RESPONSE__INIT;

	/* Progress that a slow reader has no room for is not worth waiting for. */
	if (!rpc_call_writable(c->call))
		return;
	m.progress = (char *)(uintptr_t)text;
	if (rpc_call_send(c->call, &m.base) < 0)
		return;
}

static void image_call_image(void *userdata, struct image *image)
{
	struct image_call *c = userdata;
	Nacre__V1__ImportResponse m = NACRE__V1__IMPORT_RESPONSE__INIT;

	rpc_call_on_cancel(c->call, NULL, NULL);
	if (!c->fault.code)
		(void)image_told_one(c->call, c->service, image,
				     &(struct image_told){ "imported", &m.base, &m.image },
				     &c->fault);
}

static void image_call_done(void *userdata, struct image *image, const struct error *err)
{
	struct image_call *c = userdata;

	c->import = NULL;
	rpc_call_on_cancel(c->call, NULL, NULL);
	if (err || c->fault.code)
		rpc_call_fail(c->call, err ? err : &c->fault);
	else
		rpc_call_finish(c->call);
}

static void image_call_cancelled(struct rpc_call *call, void *data)
{
	struct image_call *c = data;
	struct error err = ERROR_INIT;

	image_import_cancel(TAKE_PTR(c->import));
	(void)error_refuse(&err, ERROR_CANCELLED, "the import was cancelled");
	rpc_call_fail(call, &err);
}

static const struct image_import_ops image_call_ops = {
	.on_progress = image_call_progress,
	.on_image = image_call_image,
	.on_done = image_call_done,
};

static int import_check_name(const char *name, struct error *err)
{
	char full[REFERENCE_SIZE];
	int r;

	if (str_empty(name))
		return 0;
	r = reference_normalise(full, name, err);
	return r < 0 ? error_wrap_field(err, r, "name") : 0;
}

static void import(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ImportRequest *q = (const Nacre__V1__ImportRequest *)(const void *)request;
	struct image_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct image_service *s = userdata;
	struct error err = ERROR_INIT;
	int r;

	if (!c)
		r = error_set(&err, -ENOMEM, "import");
	else if (str_empty(q->path))
		r = error_field(&err, ERROR_INVALID, "path", "required");
	else if (q->path[0] != '/')
		r = error_field(&err, ERROR_INVALID, "path", "\"%.80s\" is not an absolute path",
				q->path);
	else
		r = import_check_name(q->name, &err);
	if (r == 0) {
		c->call = call;
		c->service = s;
		r = image_import_start(s->images,
				       &(struct image_import_what){ .path = q->path,
								    .name = q->name,
								    .config = q->config,
								    .source = q->source,
								    .ref = q->ref },
				       &image_call_ops, c, &c->import, &err);
		if (r < 0 && !*err.field)
			(void)error_wrap_field(&err, r, "path");
	}
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	rpc_call_on_cancel(call, image_call_cancelled, c);
}

/* ---- List, Remove ---- */

/* In the call's arena. */
struct image_removal {
	struct rpc_call *call;
	struct image_service *service;
	char id[DIGEST_SIZE];
	const char *name; /* as the client said it */
};

static void image_removed(void *userdata, const struct error *err)
{
	struct image_removal *m = userdata;
	Nacre__V1__RemoveImageResponse answer = NACRE__V1__REMOVE_IMAGE_RESPONSE__INIT;
	struct event e = {
		.object = "image",
		.id = m->id,
		.name = m->name,
		.kind = "image",
		.state = "removed",
		.reason = "",
	};

	if (err && err->code) {
		rpc_call_fail(m->call, err);
		return;
	}
	events_publish(m->service->events, &e);
	rpc_call_reply(m->call, &answer.base);
}

static void remove_image(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__RemoveImageRequest *q =
		(const Nacre__V1__RemoveImageRequest *)(const void *)request;
	struct image_service *s = userdata;
	struct image_removal *m = arena_zalloc(rpc_call_arena(call), 1, sizeof(*m));
	const struct image *image = NULL;
	struct error err = ERROR_INIT;
	int r;

	if (str_empty(q->image))
		r = error_field(&err, ERROR_INVALID, "image", "required");
	else if (!m)
		r = error_set(&err, -ENOMEM, "remove an image");
	else
		image = image_store_find(s->images, q->image, &err);
	if (image) {
		m->call = call;
		m->service = s;
		m->name = q->image;
		(void)str_copy(m->id, sizeof(m->id), image->id);
		r = image_store_remove(s->images, q->image, image_removed, m, &err);
	} else {
		r = err.code;
	}
	if (r < 0) {
		if (!err.field[0])
			(void)error_wrap_field(&err, r, "image");
		rpc_call_fail(call, &err);
	}
}

static const struct rpc_method image_methods[] = {
	{ "Import", &nacre__v1__import_request__descriptor, &nacre__v1__import_response__descriptor,
	  true, import },
	{ "Export", &nacre__v1__export_request__descriptor, &nacre__v1__export_response__descriptor,
	  true, image_export_call },
	{ "Pull", &nacre__v1__pull_request__descriptor, &nacre__v1__pull_response__descriptor, true,
	  image_pull_call },
	{ "Push", &nacre__v1__push_request__descriptor, &nacre__v1__push_response__descriptor, true,
	  image_push_call },
	{ "Copy", &nacre__v1__copy_image_request__descriptor, &nacre__v1__push_response__descriptor,
	  true, image_copy_call },
	{ "Tags", &nacre__v1__tags_request__descriptor, &nacre__v1__tags_response__descriptor, true,
	  image_tags_call },
	{ "Referrers", &nacre__v1__referrers_request__descriptor,
	  &nacre__v1__referrers_response__descriptor, true, image_referrers_call },
	{ "Login", &nacre__v1__login_request__descriptor, &nacre__v1__login_response__descriptor,
	  false, image_login_call },
	{ "Verify", &nacre__v1__verify_image_request__descriptor,
	  &nacre__v1__verify_image_response__descriptor, false, image_verify_call },
	{ "List", &nacre__v1__list_images_request__descriptor,
	  &nacre__v1__list_images_response__descriptor, false, images_call },
	{ "Remove", &nacre__v1__remove_image_request__descriptor,
	  &nacre__v1__remove_image_response__descriptor, false, remove_image },
	{ "Tag", &nacre__v1__tag_image_request__descriptor,
	  &nacre__v1__tag_image_response__descriptor, false, image_tag_call },
	{ "Pin", &nacre__v1__pin_image_request__descriptor,
	  &nacre__v1__pin_image_response__descriptor, false, image_pin_call },
	{ "Inspect", &nacre__v1__inspect_image_request__descriptor,
	  &nacre__v1__inspect_image_response__descriptor, false, image_inspect_call },
	{ "DiskUsage", &nacre__v1__disk_usage_request__descriptor,
	  &nacre__v1__disk_usage_response__descriptor, false, image_usage_call },
	{ "Prune", &nacre__v1__prune_images_request__descriptor,
	  &nacre__v1__prune_images_response__descriptor, false, image_prune_call },
};

const struct rpc_service image_service = {
	.name = "nacre.v1.ImageService",
	.methods = image_methods,
	.n_methods = ARRAY_SIZE(image_methods),
};
