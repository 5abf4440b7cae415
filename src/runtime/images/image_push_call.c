/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_push_call.h"

#include <errno.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "image/image.h"
#include "pod/workload/events.h"
#include "runtime/images/image_auth.h"
#include "runtime/services.h"
#include "wire/name/reference.h"

/* In the call's arena. */
struct push_call {
	struct rpc_call *call;
	struct image_service *service;
	char id[DIGEST_SIZE];
	/* One of them, until it is done. */
	struct image_push *push;
	struct image_copy *copy;
};

static char *push_call_text(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void push_call_event(void *userdata, const struct image_push_event *e)
{
	static const char *const states[IMAGE_PUSH_STEP_COUNT] = {
		[IMAGE_PUSH_LOADING] = "loading", [IMAGE_PUSH_SENDING] = "sending",
		[IMAGE_PUSH_SENT] = "sent",       [IMAGE_PUSH_THERE] = "there",
		[IMAGE_PUSH_MOUNTED] = "mounted",
	};
	struct push_call *c = userdata;
	Nacre__V1__PushResponse m = NACRE__V1__PUSH_RESPONSE__INIT;
	Nacre__V1__PushBlob blob = NACRE__V1__PUSH_BLOB__INIT;

	/* How far it is now is not worth waiting for where the reader is slow. */
	if ((e->step == IMAGE_PUSH_SENDING || e->step == IMAGE_PUSH_LOADING) &&
	    !rpc_call_writable(c->call))
		return;
	if (e->blob == 0) {
		m.note = push_call_text(e->text);
	} else {
		blob.number = e->blob;
		blob.count = e->n_blobs;
		blob.digest = push_call_text(e->digest);
		blob.state = push_call_text(states[e->step]);
		blob.sent = e->n_bytes;
		blob.size = e->size;
		m.blob = &blob;
	}
	/* Without memory it is not told; the end will be. */
	if (rpc_call_send(c->call, &m.base) < 0)
		return;
}

static void push_call_done(void *userdata, const struct image_pushed *pushed,
			   const struct error *err)
{
	struct push_call *c = userdata;
	Nacre__V1__PushResponse m = NACRE__V1__PUSH_RESPONSE__INIT;
	Nacre__V1__Pushed last = NACRE__V1__PUSHED__INIT;
	struct event e = { .object = "image",
			   .id = c->id,
			   .name = pushed->reference,
			   .kind = "image",
			   .state = "pushed",
			   .reason = "" };
	struct error own = ERROR_INIT;
	int r;

	c->push = NULL;
	c->copy = NULL;
	rpc_call_on_cancel(c->call, NULL, NULL);
	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	/* What was copied is no object of this node. */
	if (*c->id)
		events_publish(c->service->events, &e);
	last.reference = push_call_text(pushed->reference);
	last.digest = push_call_text(pushed->digest);
	last.origin = push_call_text(pushed->origin);
	m.pushed = &last;
	r = rpc_call_send(c->call, &m.base);
	if (r < 0) {
		(void)error_set(&own, r, "answer");
		rpc_call_fail(c->call, &own);
		return;
	}
	rpc_call_finish(c->call);
}

static void push_call_cancelled(struct rpc_call *call, void *data)
{
	struct push_call *c = data;
	struct error err = ERROR_INIT;

	if (c->copy)
		image_copy_cancel(TAKE_PTR(c->copy));
	else
		image_push_cancel(TAKE_PTR(c->push));
	(void)error_refuse(&err, ERROR_CANCELLED, "the %s was cancelled", *c->id ? "push" : "copy");
	rpc_call_fail(call, &err);
}

static const struct image_push_ops push_call_ops = { .on_event = push_call_event,
						     .on_done = push_call_done };

/* Whether what the image was found by says where it goes. */
static bool push_call_is_name(const struct image *image, const char *text)
{
	struct error none = ERROR_INIT;
	char full[REFERENCE_SIZE];

	if (digest_is_valid(text) || reference_normalise(full, text, &none) < 0)
		return false;
	if (strchr(full, '@'))
		return true;
	for (char **name = image->names; name && *name; name++)
		if (str_eq(*name, full))
			return true;
	return false;
}

static int push_call_start(struct push_call *c, const Nacre__V1__PushRequest *q, struct error *err)
{
	const bool named = !str_empty(q->destination);
	struct image_push_request request = { .destination = named ? q->destination : q->image };
	char full[REFERENCE_SIZE];
	int r;

	if (str_empty(q->image))
		return error_field(err, ERROR_INVALID, "image", "required");
	request.image = image_store_find(c->service->images, q->image, err);
	if (!request.image)
		return error_wrap_field(err, err->code, "image");
	(void)str_copy(c->id, sizeof(c->id), request.image->id);
	if (!named && !push_call_is_name(request.image, q->image))
		return error_field(err, ERROR_INVALID, "destination",
				   "required where the image is not asked for by name");
	r = reference_normalise(full, request.destination, err);
	if (r == 0)
		r = image_auth_read(&request.auths, rpc_call_arena(c->call), q->auths, q->n_auths,
				    err);
	else
		return error_wrap_field(err, r, "destination");
	if (r < 0)
		return r;
	r = image_push_start(c->service->images, &request, &push_call_ops, c, &c->push, err);
	return r < 0 && err->kind == ERROR_INVALID ? error_wrap_field(err, r, "destination") : r;
}

static int copy_call_check(const char *field, const char *text, struct error *err)
{
	char full[REFERENCE_SIZE];
	int r;

	if (str_empty(text))
		return error_field(err, ERROR_INVALID, field, "required");
	r = reference_normalise(full, text, err);
	return r < 0 ? error_wrap_field(err, r, field) : 0;
}

static int copy_call_start(struct push_call *c, const Nacre__V1__CopyImageRequest *q,
			   struct error *err)
{
	struct image_copy_request request = { .source = q->source,
					      .destination = q->destination,
					      .architecture = q->architecture,
					      .variant = q->variant,
					      .referrers = q->referrers };
	int r;

	r = copy_call_check("source", q->source, err);
	if (r == 0)
		r = copy_call_check("destination", q->destination, err);
	if (r < 0)
		return r;
	if (str_empty(q->architecture) && !str_empty(q->variant))
		return error_field(err, ERROR_INVALID, "architecture", "required with a variant");
	r = image_auth_check_platform(q->architecture, q->variant, err);
	if (r < 0)
		return r;
	r = image_auth_read(&request.auths, rpc_call_arena(c->call), q->auths, q->n_auths, err);
	if (r < 0)
		return r;
	return image_copy_start(c->service->images, &request, &push_call_ops, c, &c->copy, err);
}

static int push_call_push(struct push_call *c, const ProtobufCMessage *q, struct error *err)
{
	return push_call_start(c, (const Nacre__V1__PushRequest *)(const void *)q, err);
}

static int push_call_copy(struct push_call *c, const ProtobufCMessage *q, struct error *err)
{
	return copy_call_start(c, (const Nacre__V1__CopyImageRequest *)(const void *)q, err);
}

static void push_call_begin(struct rpc_call *call, const ProtobufCMessage *request, void *userdata,
			    int (*start)(struct push_call *c, const ProtobufCMessage *q,
					 struct error *err))
{
	struct push_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c) {
		c->call = call;
		c->service = userdata;
		r = start(c, request, &err);
	} else {
		r = error_set(&err, -ENOMEM, "send an image");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_on_cancel(call, push_call_cancelled, c);
}

void image_copy_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	push_call_begin(call, request, userdata, push_call_copy);
}

void image_push_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	push_call_begin(call, request, userdata, push_call_push);
}
