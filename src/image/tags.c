/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "image/errand.h"
#include "image/model.h"
#include "image/network.h"
#include "image/registry.h"
#include "wire/reference.h"

#define TAGS_LISTS_MAX 16 /* at once, over all clients */

struct image_tags {
	struct list link;
	struct image_store *store;
	struct image_tags_ops ops;
	void *userdata;
	bool cancelled, said_done;
	struct errand errand;
};

static void tags_free(struct image_tags *t)
{
	errand_done(&t->errand);
	if (!list_empty(&t->link))
		t->store->n_tags--;
	list_remove(&t->link);
	free(t);
}

static int tags_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_tags *t = container_of(h, struct image_tags, errand.helper);

	if (t->cancelled || m->type == FETCHMSG_NOTE)
		return 0;
	if (t->said_done || (m->type != FETCHMSG_TAG && m->type != FETCHMSG_DONE))
		return error_set(err, -EPROTO,
				 "nacre-transfer: a message that does not belong here");
	if (m->type == FETCHMSG_DONE)
		t->said_done = true;
	else
		t->ops.on_tag(t->userdata, m->tag.name);
	return 0;
}

static void tags_end(struct helper *h, const struct error *err)
{
	struct image_tags *t = container_of(h, struct image_tags, errand.helper);
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (!t->said_done)
		(void)error_set(&fault, -EPROTO, "nacre-transfer: it ended too early");
	if (!t->cancelled)
		t->ops.on_done(t->userdata, fault.code ? &fault : NULL);
	errand_drop(&t->errand);
	tags_free(t);
}

static const struct helper_ops tags_helper_ops = { .on_message = tags_message, .on_end = tags_end };

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

int image_tags_start(struct image_store *s, const char *repository, const struct image_auths *auths,
		     const struct image_tags_ops *ops, void *userdata, struct image_tags **ret,
		     struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_LIST };
	char reference[REFERENCE_SIZE];
	struct image_tags *t;
	int r;

	r = tags_check(repository, reference, err);
	if (r < 0)
		return r;
	if (s->n_tags >= TAGS_LISTS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u lists are being asked for already",
				    s->n_tags);
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(err, -ENOMEM, "list tags");
	*t = (struct image_tags){ .store = s, .ops = *ops, .userdata = userdata };
	list_init(&t->link);
	m.list.reference = reference;
	m.list.what = FETCH_LIST_TAGS;
	m.list.max = IMAGE_TAGS_MAX;
	r = errand_start(&t->errand, s, "list", &m, auths, &tags_helper_ops, err);
	if (r == 0)
		r = network_go(&t->errand.helper, err);
	if (r < 0) {
		errand_drop(&t->errand);
		tags_free(t);
		return r;
	}
	list_add_tail(&s->tags, &t->link);
	s->n_tags++;
	*ret = t;
	return 0;
}

void image_tags_cancel(struct image_tags *t)
{
	t->cancelled = true;
	helper_kill(&t->errand.helper);
}

void tags_free_all(struct image_store *s)
{
	while (!list_empty(&s->tags))
		tags_free(list_first(&s->tags, struct image_tags, link));
}
