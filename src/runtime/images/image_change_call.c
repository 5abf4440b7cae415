/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_change_call.h"

#include <errno.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "image/image.h"
#include "pod/workload/events.h"
#include "runtime/core/convert.h"
#include "runtime/services.h"
#include "wire/name/digest.h"

/* In the call's arena. */
struct image_change {
	struct rpc_call *call;
	struct image_service *service;
	char id[DIGEST_SIZE];
	const char *name, *state; /* for the event */
	/* Sends the image. */
	void (*answer)(struct rpc_call *call, Nacre__V1__Image *image);
};

static void tag_answer(struct rpc_call *call, Nacre__V1__Image *image)
{
	Nacre__V1__TagImageResponse answer = NACRE__V1__TAG_IMAGE_RESPONSE__INIT;

	answer.image = image;
	rpc_call_reply(call, &answer.base);
}

static void pin_answer(struct rpc_call *call, Nacre__V1__Image *image)
{
	Nacre__V1__PinImageResponse answer = NACRE__V1__PIN_IMAGE_RESPONSE__INIT;

	answer.image = image;
	rpc_call_reply(call, &answer.base);
}

static void image_changed(void *userdata, const struct error *err)
{
	struct image_change *c = userdata;
	const struct image *image = NULL;
	struct event e = {
		.object = "image",
		.id = c->id,
		.name = c->name,
		.kind = "image",
		.state = c->state,
		.reason = "",
	};
	Nacre__V1__Image *m = NULL;
	struct error own = ERROR_INIT;

	if (!err) {
		err = &own;
		image = image_store_find(c->service->images, c->id, &own);
		m = image ? convert_image(rpc_call_arena(c->call), image) : NULL;
		if (image && !m)
			(void)error_set(&own, -ENOMEM, "answer");
	}
	if (!m) {
		rpc_call_fail(c->call, err);
		return;
	}
	events_publish(c->service->events, &e);
	c->answer(c->call, m);
}

/* NULL where the call has failed. */
static struct image_change *image_change_new(struct rpc_call *call, void *userdata,
					     const char *reference, struct error *err)
{
	struct image_change *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct image_service *s = userdata;
	const struct image *image;

	if (str_empty(reference)) {
		(void)error_field(err, ERROR_INVALID, "image", "required");
		return NULL;
	}
	if (!c) {
		(void)error_set(err, -ENOMEM, "change an image");
		return NULL;
	}
	image = image_store_find(s->images, reference, err);
	if (!image) {
		(void)error_wrap_field(err, err->code, "image");
		return NULL;
	}
	*c = (struct image_change){ .call = call, .service = s, .name = reference };
	(void)str_copy(c->id, sizeof(c->id), image->id);
	return c;
}

void image_tag_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__TagImageRequest *q =
		(const Nacre__V1__TagImageRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct image_change *c = image_change_new(call, userdata, q->image, &err);
	int r = -1;

	if (c) {
		c->name = q->name;
		c->state = "tagged";
		c->answer = tag_answer;
		r = str_empty(q->name) ? error_field(&err, ERROR_INVALID, "name", "required")
				       : image_store_tag(c->service->images, c->id, q->name,
							 image_changed, c, &err);
		if (r < 0 && !err.field[0] && err.kind == ERROR_INVALID)
			(void)error_wrap_field(&err, r, "name");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}

void image_pin_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__PinImageRequest *q =
		(const Nacre__V1__PinImageRequest *)(const void *)request;
	struct error err = ERROR_INIT;
	struct image_change *c = image_change_new(call, userdata, q->image, &err);
	int r = -1;

	if (c) {
		c->state = q->pinned ? "pinned" : "unpinned";
		c->answer = pin_answer;
		r = image_store_pin(c->service->images, c->id, q->pinned, image_changed, c, &err);
	}
	if (r < 0)
		rpc_call_fail(call, &err);
}
