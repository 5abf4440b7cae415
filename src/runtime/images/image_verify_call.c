/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_verify_call.h"

#include <errno.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "image/image.h"
#include "runtime/core/convert.h"
#include "runtime/images/image_auth.h"
#include "runtime/services.h"

#define VERIFY_KEY_MAX 16384 /* bytes */

/* In the call's arena. */
struct verify_call {
	struct rpc_call *call;
	struct image_verify *verify; /* until it is done */
};

static void verify_call_done(void *userdata, const struct image_verdict *verdict, bool stored,
			     const struct error *err)
{
	Nacre__V1__VerifyImageResponse m = NACRE__V1__VERIFY_IMAGE_RESPONSE__INIT;
	struct verify_call *c = userdata;
	struct error own = ERROR_INIT;

	c->verify = NULL;
	rpc_call_on_cancel(c->call, NULL, NULL);
	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	m.verdict = convert_verdict(rpc_call_arena(c->call), verdict);
	m.stored = stored;
	if (m.verdict) {
		rpc_call_reply(c->call, &m.base);
		return;
	}
	(void)error_set(&own, -ENOMEM, "answer");
	rpc_call_fail(c->call, &own);
}

static void verify_call_cancelled(struct rpc_call *call, void *data)
{
	struct verify_call *c = data;
	struct error err = ERROR_INIT;

	image_verify_cancel(TAKE_PTR(c->verify));
	(void)error_refuse(&err, ERROR_CANCELLED, "the question was cancelled");
	rpc_call_fail(call, &err);
}

static int verify_call_start(struct verify_call *c, const struct image_service *s,
			     const Nacre__V1__VerifyImageRequest *q, struct error *err)
{
	struct image_verify_request request = { .reference = q->image, .key = q->key };
	int r;

	if (str_empty(q->image))
		return error_field(err, ERROR_INVALID, "image", "required");
	if (strlen(q->key) > VERIFY_KEY_MAX)
		return error_field(err, ERROR_INVALID, "key", "more than %d bytes", VERIFY_KEY_MAX);
	r = image_auth_read(&request.auths, rpc_call_arena(c->call), q->auths, q->n_auths, err);
	if (r < 0)
		return r;
	r = image_verify_start(s->images, &request, verify_call_done, c, &c->verify, err);
	return r < 0 && err->kind == ERROR_INVALID ? error_wrap_field(err, r, "image") : r;
}

void image_verify_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__VerifyImageRequest *q =
		(const Nacre__V1__VerifyImageRequest *)(const void *)request;
	struct verify_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c) {
		c->call = call;
		r = verify_call_start(c, userdata, q, &err);
	} else {
		r = error_set(&err, -ENOMEM, "verify an image");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_on_cancel(call, verify_call_cancelled, c);
}
