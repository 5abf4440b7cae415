/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/image_tags_call.h"

#include <errno.h>

#include "api/nacre.pb-c.h"
#include "base/str.h"
#include "image/image.h"
#include "runtime/image_auth.h"
#include "runtime/services.h"
#include "wire/reference.h"

#define TAGS_PIECE 256 /* of one answer */

/* In the call's arena. */
struct tags_call {
	struct rpc_call *call;
	struct image_tags *list; /* until it is done */
	char tags[TAGS_PIECE][REFERENCE_TAG_MAX + 1];
	size_t n;
	struct error err;
};

static void tags_call_flush(struct tags_call *c)
{
	Nacre__V1__TagsResponse m = NACRE__V1__TAGS_RESPONSE__INIT;
	char *texts[TAGS_PIECE];
	int r;

	for (size_t i = 0; i < c->n; i++)
		texts[i] = c->tags[i];
	m.tags = texts;
	m.n_tags = c->n;
	r = c->n ? rpc_call_send(c->call, &m.base) : 0;
	if (r < 0)
		(void)error_set(&c->err, r, "answer");
	c->n = 0;
}

static void tags_call_tag(void *userdata, const char *tag)
{
	struct tags_call *c = userdata;

	if (str_copy(c->tags[c->n], sizeof(c->tags[0]), tag) == 0)
		c->n++;
	else
		(void)error_refuse(&c->err, ERROR_INVALID, "the registry lists \"%.140s\" as a tag",
				   tag);
	if (c->n == TAGS_PIECE)
		tags_call_flush(c);
}

static void tags_call_done(void *userdata, const struct error *err)
{
	struct tags_call *c = userdata;

	c->list = NULL;
	rpc_call_on_cancel(c->call, NULL, NULL);
	if (err)
		c->err = *err;
	else
		tags_call_flush(c);
	if (c->err.code)
		rpc_call_fail(c->call, &c->err);
	else
		rpc_call_finish(c->call);
}

static void tags_call_cancelled(struct rpc_call *call, void *data)
{
	struct tags_call *c = data;
	struct error err = ERROR_INIT;

	image_tags_cancel(TAKE_PTR(c->list));
	(void)error_refuse(&err, ERROR_CANCELLED, "the list was cancelled");
	rpc_call_fail(call, &err);
}

static const struct image_tags_ops tags_call_ops = { .on_tag = tags_call_tag,
						     .on_done = tags_call_done };

static int tags_call_start(struct tags_call *c, const struct image_service *s,
			   const Nacre__V1__TagsRequest *q, struct error *err)
{
	struct image_auths auths;
	int r;

	if (str_empty(q->repository))
		return error_field(err, ERROR_INVALID, "repository", "required");
	r = image_auth_read(&auths, rpc_call_arena(c->call), q->auths, q->n_auths, err);
	if (r < 0)
		return r;
	r = image_tags_start(s->images, q->repository, &auths, &tags_call_ops, c, &c->list, err);
	return r < 0 && err->kind == ERROR_INVALID ? error_wrap_field(err, r, "repository") : r;
}

void image_tags_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__TagsRequest *q = (const Nacre__V1__TagsRequest *)(const void *)request;
	struct tags_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c) {
		c->call = call;
		r = tags_call_start(c, userdata, q, &err);
	} else {
		r = error_set(&err, -ENOMEM, "list tags");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_on_cancel(call, tags_call_cancelled, c);
}
