/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_pull_call.h"

#include <errno.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "image/image.h"
#include "runtime/images/image_auth.h"
#include "runtime/images/image_told.h"
#include "runtime/services.h"
#include "wire/name/reference.h"

/* In the call's arena. */
struct pull_call {
	struct rpc_call *call;
	struct image_service *service;
	struct image_pull *pull; /* until it is done */
};

static char *pull_call_text(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void pull_call_event(void *userdata, const struct image_pull_event *e)
{
	static const char *const states[IMAGE_PULL_STEP_COUNT] = {
		[IMAGE_PULL_WAITING] = "waiting",
		[IMAGE_PULL_LOADING] = "loading",
		[IMAGE_PULL_LOADED] = "loaded",
		[IMAGE_PULL_UNPACKED] = "unpacked",
	};
	struct pull_call *c = userdata;
	Nacre__V1__PullResponse m = NACRE__V1__PULL_RESPONSE__INIT;
	Nacre__V1__PullLayer layer = NACRE__V1__PULL_LAYER__INIT;
	char note[ERROR_TEXT_MAX];

	/* How far it is now is not worth waiting for where the reader is slow. What a layer has
	 * become is told in any case. */
	if (e->step == IMAGE_PULL_LOADING && !rpc_call_writable(c->call))
		return;
	if (e->layer == 0) {
		(void)str_printf(note, sizeof(note), "%s%.100s%s%s",
				 e->step == IMAGE_PULL_RESOLVED ? "found " : "", e->digest,
				 *e->digest ? (e->step == IMAGE_PULL_RESOLVED ? " at " : ": ") : "",
				 e->text);
		m.note = note;
	} else {
		layer.number = e->layer;
		layer.count = e->n_layers;
		layer.digest = pull_call_text(e->digest);
		layer.state = pull_call_text(states[e->step]);
		layer.loaded = e->step == IMAGE_PULL_UNPACKED ? e->size : e->n_bytes;
		layer.size = e->size;
		layer.there = e->there;
		m.layer = &layer;
	}
	/* Without memory it is not told; the end will be. */
	if (rpc_call_send(c->call, &m.base) < 0)
		return;
}

static void pull_call_done(void *userdata, struct image *image, const struct error *err)
{
	struct pull_call *c = userdata;
	Nacre__V1__PullResponse m = NACRE__V1__PULL_RESPONSE__INIT;

	c->pull = NULL;
	rpc_call_on_cancel(c->call, NULL, NULL);
	image_told(c->call, c->service, image, err,
		   &(struct image_told){ "pulled", &m.base, &m.image });
}

static void pull_call_cancelled(struct rpc_call *call, void *data)
{
	struct pull_call *c = data;
	struct error err = ERROR_INIT;

	image_pull_cancel(TAKE_PTR(c->pull));
	(void)error_refuse(&err, ERROR_CANCELLED, "the pull was cancelled");
	rpc_call_fail(call, &err);
}

static const struct image_pull_ops pull_call_ops = { .on_event = pull_call_event,
						     .on_done = pull_call_done };

static int pull_call_start(struct pull_call *c, const Nacre__V1__PullRequest *q, struct error *err)
{
	struct image_pull_request request = { .reference = q->image,
					      .architecture = q->architecture,
					      .variant = q->variant };
	char full[REFERENCE_SIZE];
	int r;

	if (str_empty(q->image))
		return error_field(err, ERROR_INVALID, "image", "required");
	r = reference_normalise(full, q->image, err);
	if (r < 0)
		return error_wrap_field(err, r, "image");
	r = image_auth_check_platform(q->architecture, q->variant, err);
	if (r < 0)
		return r;
	r = image_auth_read(&request.auths, rpc_call_arena(c->call), q->auths, q->n_auths, err);
	if (r < 0)
		return r;
	return image_pull_start(c->service->images, &request, &pull_call_ops, c, &c->pull, err);
}

void image_pull_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__PullRequest *q = (const Nacre__V1__PullRequest *)(const void *)request;
	struct pull_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c) {
		c->call = call;
		c->service = userdata;
		r = pull_call_start(c, q, &err);
	} else {
		r = error_set(&err, -ENOMEM, "pull");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_on_cancel(call, pull_call_cancelled, c);
}
