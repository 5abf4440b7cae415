/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "image/content/model.h"
#include "image/registry.h"
#include "image/transfer/network.h"
#include "image/transfer/transfer_job.h"
#include "wire/name/reference.h"

#define LISTINGS_MAX 16 /* at once, over all clients */

struct image_listing {
	struct list link;
	struct image_store *store;
	struct image_listing_ops ops;
	void *userdata;
	uint32_t what; /* enum fetch_listing; of a login FETCH_LISTING_COUNT */
	bool cancelled, said_done;
	unsigned n_annotations; /* of the last referrer that are still to come */
	size_t annotations_room;
	struct transfer_job transfer_job;
};

static void listing_free(struct image_listing *t)
{
	transfer_job_done(&t->transfer_job);
	if (!list_empty(&t->link))
		t->store->n_listings--;
	list_remove(&t->link);
	free(t);
}

static bool listing_takes(const struct image_listing *t, enum fetchmsg_type type)
{
	bool tags = t->what == FETCH_LIST_TAGS, login = t->what == FETCH_LISTING_COUNT;

	if (t->said_done || (t->n_annotations > 0) != (type == FETCHMSG_ANNOTATION))
		return false;
	if (type == FETCHMSG_ANNOTATION)
		return true;
	return type == FETCHMSG_DONE || (tags && type == FETCHMSG_TAG) ||
	       (!tags && !login && (type == FETCHMSG_RESOLVED || type == FETCHMSG_REFERRER));
}

static void listing_take_referrer(struct image_listing *t, const struct fetchmsg *m)
{
	t->n_annotations = m->referrer.n_annotations;
	t->annotations_room = FETCH_REFERRER_ANNOTATIONS_SIZE;
	t->ops.on_referrer(t->userdata, &(struct image_referrer){
						.digest = m->referrer.digest,
						.media_type = m->referrer.media_type,
						.artifact_type = m->referrer.artifact_type,
						.size = m->referrer.size,
						.n_left_out = m->referrer.n_left_out,
					});
}

static int listing_take_annotation(struct image_listing *t, const struct fetchmsg *m,
				   struct error *err)
{
	size_t size = strlen(m->annotation.name) + strlen(m->annotation.value) + 2;

	if (size > t->annotations_room)
		return error_set(err, -EPROTO, "nacre-transfer: more of annotations than it may");
	t->annotations_room -= size;
	t->n_annotations--;
	t->ops.on_annotation(t->userdata, m->annotation.name, m->annotation.value);
	return 0;
}

static int listing_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_listing *t = container_of(h, struct image_listing, transfer_job.helper);

	if (t->cancelled || m->type == FETCHMSG_NOTE)
		return 0;
	if (!listing_takes(t, m->type))
		return error_set(err, -EPROTO,
				 "nacre-transfer: a message that does not belong here");
	if (m->type == FETCHMSG_DONE)
		t->said_done = true;
	else if (m->type == FETCHMSG_TAG)
		t->ops.on_tag(t->userdata, m->tag.name);
	else if (m->type == FETCHMSG_RESOLVED)
		t->ops.on_subject(t->userdata, m->resolved.digest);
	else if (m->type == FETCHMSG_REFERRER)
		listing_take_referrer(t, m);
	else
		return listing_take_annotation(t, m, err);
	return 0;
}

static void listing_end(struct helper *h, const struct error *err)
{
	struct image_listing *t = container_of(h, struct image_listing, transfer_job.helper);
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (!t->said_done)
		(void)error_set(&fault, -EPROTO, "nacre-transfer: it ended too early");
	if (!t->cancelled)
		t->ops.on_done(t->userdata, fault.code ? &fault : NULL);
	transfer_job_drop(&t->transfer_job);
	listing_free(t);
}

static const struct helper_ops listing_helper_ops = { .on_message = listing_message,
						      .on_end = listing_end };

/* What is asked for is all of the repository: a tag or digest behind it would be left out. */
static int tags_check(const char *repository, char ret[REFERENCE_SIZE], struct error *err)
{
	const char *slash = strrchr(repository, '/');
	const char *last = slash ? slash + 1 : repository;

	if (strchr(repository, '@') || strchr(last, ':'))
		return error_refuse(err, ERROR_INVALID,
				    "\"%.200s\" is an image of a repository, and not its name",
				    repository);
	return reference_normalise(ret, repository, err);
}

static int listing_start(struct image_store *s, const char *command, const struct fetchmsg *m,
			 const struct image_auths *auths, const struct image_listing_ops *ops,
			 void *userdata, struct image_listing **ret, struct error *err)
{
	struct image_listing *t;
	int r;

	if (s->n_listings >= LISTINGS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u lists are being asked for already",
				    s->n_listings);
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(err, -ENOMEM, "ask a registry for a list");
	*t = (struct image_listing){
		.store = s,
		.ops = *ops,
		.userdata = userdata,
		.what = m->type == FETCHMSG_LIST ? m->list.what : FETCH_LISTING_COUNT,
	};
	list_init(&t->link);
	r = transfer_job_start(&t->transfer_job, s, command, m, auths, &listing_helper_ops, err);
	if (r == 0)
		r = network_go(&t->transfer_job.helper, err);
	if (r < 0) {
		transfer_job_drop(&t->transfer_job);
		listing_free(t);
		return r;
	}
	list_add_tail(&s->listings, &t->link);
	s->n_listings++;
	*ret = t;
	return 0;
}

int image_tags_start(struct image_store *s, const char *repository, const struct image_auths *auths,
		     const struct image_listing_ops *ops, void *userdata,
		     struct image_listing **ret, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_LIST };
	char reference[REFERENCE_SIZE];
	int r = tags_check(repository, reference, err);

	m.list.reference = reference;
	m.list.what = FETCH_LIST_TAGS;
	m.list.max = IMAGE_TAGS_MAX;
	return r < 0 ? r : listing_start(s, "list", &m, auths, ops, userdata, ret, err);
}

int image_referrers_start(struct image_store *s, const char *image, const struct image_auths *auths,
			  const struct image_listing_ops *ops, void *userdata,
			  struct image_listing **ret, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_LIST };
	char reference[REFERENCE_SIZE];
	int r = reference_normalise(reference, image, err);

	m.list.reference = reference;
	m.list.what = FETCH_LIST_REFERRERS;
	m.list.max = IMAGE_REFERRERS_MAX;
	return r < 0 ? r : listing_start(s, "list", &m, auths, ops, userdata, ret, err);
}

int image_login_start(struct image_store *s, const char *host, const struct image_auths *auths,
		      const struct image_listing_ops *ops, void *userdata,
		      struct image_listing **ret, struct error *err)
{
	const struct fetchmsg m = { .type = FETCHMSG_LOGIN, .login = { .host = host } };

	if (!reference_is_registry(host))
		return error_refuse(err, ERROR_INVALID,
				    "\"%.200s\" names no registry: a host with a dot or a port, or "
				    "localhost",
				    host);
	return listing_start(s, "login", &m, auths, ops, userdata, ret, err);
}

void image_listing_cancel(struct image_listing *t)
{
	t->cancelled = true;
	helper_kill(&t->transfer_job.helper);
}

void listings_free_all(struct image_store *s)
{
	while (!list_empty(&s->listings))
		listing_free(list_first(&s->listings, struct image_listing, link));
}
