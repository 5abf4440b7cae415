/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/images/image_listing_call.h"

#include <errno.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "image/image.h"
#include "runtime/images/image_auth.h"
#include "runtime/services.h"
#include "wire/message/fetchmsg.h"
#include "wire/name/digest.h"
#include "wire/name/reference.h"

/* Of one answer. */
#define LISTING_TAGS 256
#define LISTING_REFERRERS 16

struct listing_referrer {
	char digest[DIGEST_SIZE], media_type[FETCH_TYPE_MAX + 1], artifact_type[FETCH_TYPE_MAX + 1];
	uint64_t size;
	uint32_t n_left_out;
	/* Names and values by turns, each with its NUL. */
	char annotations[FETCH_REFERRER_ANNOTATIONS_SIZE];
	size_t len, n_annotations;
};

/* Of one referrer, as the answer has them. */
struct listing_annotations {
	Nacre__V1__Annotation list[FETCH_REFERRER_ANNOTATIONS_MAX];
	Nacre__V1__Annotation *pointers[FETCH_REFERRER_ANNOTATIONS_MAX];
};

/* In the call's arena. */
struct listing_call {
	struct rpc_call *call;
	struct image_listing *list; /* until it is done */
	void (*flush)(struct listing_call *c);
	char subject[DIGEST_SIZE]; /* until it was told */
	union {
		char tags[LISTING_TAGS][REFERENCE_TAG_MAX + 1];
		struct {
			struct listing_referrer referrers[LISTING_REFERRERS];
			struct listing_annotations annotations[LISTING_REFERRERS];
		};
	};
	size_t n;
	struct error err;
};

static void listing_send(struct listing_call *c, const ProtobufCMessage *m)
{
	int r = rpc_call_send(c->call, m);

	if (r < 0)
		(void)error_set(&c->err, r, "answer");
	c->n = 0;
}

static void listing_flush_tags(struct listing_call *c)
{
	Nacre__V1__TagsResponse m = NACRE__V1__TAGS_RESPONSE__INIT;
	char *texts[LISTING_TAGS];

	for (size_t i = 0; i < c->n; i++)
		texts[i] = c->tags[i];
	m.tags = texts;
	m.n_tags = c->n;
	if (c->n)
		listing_send(c, &m.base);
}

static void listing_show_annotations(struct listing_referrer *from, struct listing_annotations *to,
				     Nacre__V1__Referrer *ret)
{
	char *at = from->annotations;

	for (size_t i = 0; i < from->n_annotations; i++) {
		nacre__v1__annotation__init(&to->list[i]);
		to->list[i].name = at;
		at += strlen(at) + 1;
		to->list[i].value = at;
		at += strlen(at) + 1;
		to->pointers[i] = &to->list[i];
	}
	ret->annotations = to->pointers;
	ret->n_annotations = from->n_annotations;
	ret->annotations_left_out = from->n_left_out;
}

static void listing_flush_referrers(struct listing_call *c)
{
	Nacre__V1__ReferrersResponse m = NACRE__V1__REFERRERS_RESPONSE__INIT;
	Nacre__V1__Referrer list[LISTING_REFERRERS], *pointers[LISTING_REFERRERS];

	for (size_t i = 0; i < c->n; i++) {
		nacre__v1__referrer__init(&list[i]);
		list[i].digest = c->referrers[i].digest;
		list[i].media_type = c->referrers[i].media_type;
		list[i].artifact_type = c->referrers[i].artifact_type;
		list[i].size = c->referrers[i].size;
		listing_show_annotations(&c->referrers[i], &c->annotations[i], &list[i]);
		pointers[i] = &list[i];
	}
	m.subject = c->subject;
	m.referrers = pointers;
	m.n_referrers = c->n;
	if (c->n || *c->subject)
		listing_send(c, &m.base);
	*c->subject = '\0';
}

static void listing_on_tag(void *userdata, const char *tag)
{
	struct listing_call *c = userdata;

	if (str_copy(c->tags[c->n], sizeof(c->tags[0]), tag) == 0)
		c->n++;
	else
		(void)error_refuse(&c->err, ERROR_INVALID, "the registry lists \"%.140s\" as a tag",
				   tag);
	if (c->n == LISTING_TAGS)
		listing_flush_tags(c);
}

static void listing_on_subject(void *userdata, const char *digest)
{
	struct listing_call *c = userdata;

	(void)str_copy(c->subject, sizeof(c->subject), digest);
}

static void listing_on_referrer(void *userdata, const struct image_referrer *referrer)
{
	struct listing_call *c = userdata;
	struct listing_referrer *to;

	if (c->n == LISTING_REFERRERS)
		listing_flush_referrers(c);
	to = &c->referrers[c->n++];
	(void)str_copy(to->digest, sizeof(to->digest), referrer->digest);
	(void)str_copy(to->media_type, sizeof(to->media_type), referrer->media_type);
	(void)str_copy(to->artifact_type, sizeof(to->artifact_type), referrer->artifact_type);
	to->size = referrer->size;
	to->n_left_out = referrer->n_left_out;
	to->len = 0;
	to->n_annotations = 0;
}

/* The caller has counted (image_listing_ops). */
static void listing_on_annotation(void *userdata, const char *name, const char *value)
{
	struct listing_call *c = userdata;
	struct listing_referrer *to = &c->referrers[c->n - 1];
	const char *const texts[] = { name, value };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		size_t size = strlen(texts[i]) + 1;

		memcpy(to->annotations + to->len, texts[i], size);
		to->len += size;
	}
	to->n_annotations++;
}

static void listing_on_done(void *userdata, const struct error *err)
{
	struct listing_call *c = userdata;

	c->list = NULL;
	rpc_call_on_cancel(c->call, NULL, NULL);
	if (err)
		c->err = *err;
	else
		c->flush(c);
	if (c->err.code)
		rpc_call_fail(c->call, &c->err);
	else
		rpc_call_finish(c->call);
}

static void listing_cancelled(struct rpc_call *call, void *data)
{
	struct listing_call *c = data;
	struct error err = ERROR_INIT;

	image_listing_cancel(TAKE_PTR(c->list));
	(void)error_refuse(&err, ERROR_CANCELLED, "the list was cancelled");
	rpc_call_fail(call, &err);
}

static const struct image_listing_ops listing_ops = { .on_tag = listing_on_tag,
						      .on_subject = listing_on_subject,
						      .on_referrer = listing_on_referrer,
						      .on_annotation = listing_on_annotation,
						      .on_done = listing_on_done };

/* What one call asks for; `field` has its name. */
struct listing_wish {
	const char *field, *name;
	Nacre__V1__RegistryAuth **auths;
	size_t n_auths;
	int (*start)(struct image_store *s, const char *name, const struct image_auths *auths,
		     const struct image_listing_ops *ops, void *userdata,
		     struct image_listing **ret, struct error *err);
	void (*flush)(struct listing_call *c);
};

static int listing_begin(struct listing_call *c, const struct image_service *s,
			 const struct listing_wish *wish, struct error *err)
{
	struct image_auths auths;
	int r;

	if (str_empty(wish->name))
		return error_field(err, ERROR_INVALID, wish->field, "required");
	r = image_auth_read(&auths, rpc_call_arena(c->call), wish->auths, wish->n_auths, err);
	if (r < 0)
		return r;
	r = wish->start(s->images, wish->name, &auths, &listing_ops, c, &c->list, err);
	return r < 0 && err->kind == ERROR_INVALID ? error_wrap_field(err, r, wish->field) : r;
}

static void listing_call(struct rpc_call *call, const struct image_service *s,
			 const struct listing_wish *wish)
{
	struct listing_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r;

	if (c) {
		c->call = call;
		c->flush = wish->flush;
		r = listing_begin(c, s, wish, &err);
	} else {
		r = error_set(&err, -ENOMEM, "ask a registry for a list");
	}
	if (r < 0)
		rpc_call_fail(call, &err);
	else
		rpc_call_on_cancel(call, listing_cancelled, c);
}

void image_tags_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__TagsRequest *q = (const Nacre__V1__TagsRequest *)(const void *)request;

	listing_call(call, userdata,
		     &(struct listing_wish){ "repository", q->repository, q->auths, q->n_auths,
					     image_tags_start, listing_flush_tags });
}

void image_referrers_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__ReferrersRequest *q =
		(const Nacre__V1__ReferrersRequest *)(const void *)request;

	listing_call(call, userdata,
		     &(struct listing_wish){ "image", q->image, q->auths, q->n_auths,
					     image_referrers_start, listing_flush_referrers });
}

static void listing_flush_login(struct listing_call *c)
{
	const Nacre__V1__LoginResponse m = NACRE__V1__LOGIN_RESPONSE__INIT;

	listing_send(c, &m.base);
}

void image_login_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__LoginRequest *q = (const Nacre__V1__LoginRequest *)(const void *)request;

	listing_call(call, userdata,
		     &(struct listing_wish){ "registry", q->registry, q->auths, q->n_auths,
					     image_login_start, listing_flush_login });
}
