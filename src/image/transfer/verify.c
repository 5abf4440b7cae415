/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/model.h"
#include "image/registry.h"
#include "image/transfer/network.h"
#include "image/transfer/transfer_job.h"
#include "image/transfer/verdict.h"
#include "wire/name/reference.h"

#define VERIFIES_MAX 16 /* at once, over all clients */

struct image_verify {
	struct list link;
	struct image_store *store;
	image_verified_fn done;
	void *userdata;
	char reference[REFERENCE_SIZE];
	char digest[DIGEST_SIZE]; /* "": the registry says which */
	bool stored;              /* the digest is the node's */
	bool by_key;
	bool cancelled, said_done;
	struct verdict verdict;
	struct transfer_job transfer_job;
};

static void verify_free(struct image_verify *v)
{
	transfer_job_done(&v->transfer_job);
	if (!list_empty(&v->link))
		v->store->n_verifies--;
	list_remove(&v->link);
	verdict_done(&v->verdict);
	free(v);
}

/* ---- what the helper says ---- */

static int verify_wrong(struct error *err)
{
	return error_set(err, -EPROTO, "nacre-transfer: a message that does not belong here");
}

static int verify_on_resolved(struct image_verify *v, const struct fetchmsg *m, struct error *err)
{
	if (*v->digest)
		return verify_wrong(err);
	return str_copy(v->digest, sizeof(v->digest), m->resolved.digest);
}

static int verify_on_verdict(struct image_verify *v, const struct fetchmsg *m, struct error *err)
{
	if (!str_eq(v->digest, m->verdict.digest))
		return verify_wrong(err);
	return verdict_take(&v->verdict, m, err);
}

static int verify_on_signer(struct image_verify *v, const struct fetchmsg *m, struct error *err)
{
	return verdict_take(&v->verdict, m, err);
}

static int verify_on_done(struct image_verify *v, const struct fetchmsg *m, struct error *err)
{
	v->said_done = true;
	return v->verdict.done ? 0 : verify_wrong(err);
}

static int (*const verify_takers[FETCHMSG_TYPE_COUNT])(struct image_verify *v,
						       const struct fetchmsg *m,
						       struct error *err) = {
	[FETCHMSG_RESOLVED] = verify_on_resolved, [FETCHMSG_SIGNER] = verify_on_signer,
	[FETCHMSG_ANNOTATION] = verify_on_signer, [FETCHMSG_VERDICT] = verify_on_verdict,
	[FETCHMSG_DONE] = verify_on_done,
};

static int verify_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct image_verify *v = container_of(h, struct image_verify, transfer_job.helper);

	if (v->cancelled || m->type == FETCHMSG_NOTE)
		return 0;
	if (v->said_done || !verify_takers[m->type])
		return verify_wrong(err);
	return verify_takers[m->type](v, m, err);
}

static void verify_end(struct helper *h, const struct error *err)
{
	struct image_verify *v = container_of(h, struct image_verify, transfer_job.helper);
	struct error fault = ERROR_INIT;

	if (err)
		fault = *err;
	else if (!v->said_done)
		(void)error_set(&fault, -EPROTO, "nacre-transfer: it ended too early");
	/* What reads the key is the helper, and its words begin so. */
	if (v->by_key && fault.kind == ERROR_INVALID && str_has_prefix(fault.text, "key: "))
		(void)str_copy(fault.field, sizeof(fault.field), "key");
	v->verdict.said.reference = v->reference;
	v->verdict.said.at = clock_real();
	if (!v->cancelled)
		v->done(v->userdata, fault.code ? NULL : &v->verdict.said, v->stored,
			fault.code ? &fault : NULL);
	transfer_job_drop(&v->transfer_job);
	verify_free(v);
}

static const struct helper_ops verify_helper_ops = { .on_message = verify_message,
						     .on_end = verify_end };

/* ---- which digest ---- */

/* The last one that a registry has it by in the repository, or NULL. */
static const char *verify_origin(const struct image *image, const char *repository)
{
	size_t len = strlen(repository);
	const char *found = NULL;

	for (char *const *o = image->origins; *o; o++)
		if (str_has_prefix(*o, repository) && (*o)[len] == '@')
			found = *o + len + 1;
	return found;
}

/* Of an image that has the name: the one that was judged when it was pulled by that. */
static void verify_digest_of_name(struct image_verify *v, const struct image *image,
				  const struct reference *ref)
{
	const char *line = verdicts_find(image->verdicts, v->reference);
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct image_verdict was = { .digest = NULL };

	if (line)
		(void)verdict_read(&was, &a, line);
	(void)str_copy(v->digest, sizeof(v->digest),
		       was.digest ?: verify_origin(image, ref->name) ?: image->digest);
}

static bool verify_has_digest(const struct image *image, const char *digest)
{
	return str_eq(image->digest, digest) || image_has_origin(image, digest);
}

static int verify_refuse_id(const struct image *image, const char *text, struct error *err)
{
	return error_refuse(
		err, ERROR_INVALID,
		"\"%.100s\" is the id of an image, and a verdict is about a name%s%.200s", text,
		image->names[0] ? ": " : ", and it has none", image->names[0] ?: "");
}

static int verify_find(struct image_verify *v, const char *text, struct error *err)
{
	const struct image *found = image_store_find(v->store, text, NULL), *named;
	struct reference ref;
	int r;

	r = reference_parse(&ref, text, err);
	if (r < 0)
		return found ? verify_refuse_id(found, text, err) : r;
	reference_format(&ref, v->reference);
	named = image_store_by_name(v->store, v->reference);
	if (named && !*ref.digest)
		verify_digest_of_name(v, named, &ref);
	else if (found && *ref.digest && verify_has_digest(found, ref.digest))
		(void)str_copy(v->digest, sizeof(v->digest), ref.digest);
	else if (found && !*ref.digest)
		return verify_refuse_id(found, text, err);
	v->stored = *v->digest;
	return 0;
}

/* ---- the beginning ---- */

static int verify_begin(struct image_verify *v, const struct image_verify_request *q,
			struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_VERIFY };
	int r;

	r = verify_find(v, q->reference, err);
	if (r < 0)
		return r;
	m.verify.reference = v->reference;
	m.verify.digest = v->digest;
	m.verify.key = q->key;
	v->by_key = *q->key;
	r = transfer_job_start(&v->transfer_job, v->store, "verify", &m, &q->auths,
			       &verify_helper_ops, err);
	if (r == 0)
		r = network_go(&v->transfer_job.helper, err);
	if (r < 0)
		transfer_job_drop(&v->transfer_job);
	return r;
}

int image_verify_start(struct image_store *s, const struct image_verify_request *q,
		       image_verified_fn done, void *userdata, struct image_verify **ret,
		       struct error *err)
{
	struct image_verify *v;
	int r;

	if (s->n_verifies >= VERIFIES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%u images are being verified already",
				    s->n_verifies);
	v = calloc(1, sizeof(*v));
	if (!v)
		return error_set(err, -ENOMEM, "verify %.300s", q->reference);
	v->store = s;
	v->done = done;
	v->userdata = userdata;
	list_init(&v->link);
	verdict_init(&v->verdict);
	r = verify_begin(v, q, err);
	if (r < 0) {
		verify_free(v);
		return r;
	}
	list_add_tail(&s->verifies, &v->link);
	s->n_verifies++;
	*ret = v;
	return 0;
}

void image_verify_cancel(struct image_verify *v)
{
	v->cancelled = true;
	helper_kill(&v->transfer_job.helper);
}

void verifies_free_all(struct image_store *s)
{
	while (!list_empty(&s->verifies))
		verify_free(list_first(&s->verifies, struct image_verify, link));
}
