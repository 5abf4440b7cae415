/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/trust.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "fetch/job/channel.h"
#include "fetch/job/descriptor.h"
#include "fetch/job/json.h"
#include "fetch/transfer/signature.h"

#define TRUST_LAYERS_MAX 256
#define TRUST_SECONDS 10    /* for all that is asked of the registry about one image */
#define TRUST_KEY_SIZE 4096 /* of its name, with its end */

/* Each rule of a scope may name one. */
static_assert(POLICY_RULES_MAX <= FETCH_SIGNERS_MAX, "all signers can be told");

struct trust_found {
	struct buf payloads[SIGNATURES_MAX];
	struct signature all[SIGNATURES_MAX];
	size_t n;
	size_t n_left; /* layers behind those, which are not looked at */
};

static void trust_found_done(struct trust_found *f)
{
	for (size_t i = 0; i < f->n; i++)
		buf_done(&f->payloads[i]);
}

static int trust_load_payload(struct network *n, const char *digest, struct buf *ret,
			      struct error *err)
{
	_cleanup_(network_document_done) struct network_document got = { .data = BUF_INIT };
	char path[sizeof("/blobs/") + DIGEST_SIZE];
	int r;

	(void)str_printf(path, sizeof(path), "/blobs/%s", digest);
	r = network_get(n,
			&(struct network_question){ .what = "the payload of a signature",
						    .path = path,
						    .need = FETCH_CAN_PULL,
						    .digest = digest,
						    .max = SIGNATURE_PAYLOAD_MAX },
			&got, err);
	if (r == 0 && buf_add(ret, buf_data(&got.data), got.data.len) < 0)
		r = error_set(err, -ENOMEM, "a signature");
	return r;
}

/* A layer that is a signature; others are passed over. */
static int trust_take_layer(struct network *n, struct trust_found *f, json_t *node,
			    struct error *err)
{
	struct buf *payload = &f->payloads[f->n];
	json_t *annotations = NULL;
	struct descriptor d;
	const char *text;
	int r;

	r = descriptor_read(&d, node, err);
	if (r == 0)
		r = json_get_object(node, "annotations", &annotations, err);
	if (r < 0 || !annotations || !str_eq(d.media_type, SIGNATURE_LAYER) ||
	    d.size > SIGNATURE_PAYLOAD_MAX)
		return r;
	r = json_get_text(annotations, SIGNATURE_ANNOTATION, &text, err);
	if (r < 0 || !*text)
		return r;
	r = trust_load_payload(n, d.digest, payload, err);
	f->all[f->n++] = (struct signature){ buf_data(payload), payload->len, text };
	return r;
}

static int trust_find(struct network *n, json_t *manifest, struct trust_found *f, struct error *err)
{
	json_t *list = NULL;
	int r = json_need_array(manifest, "layers", TRUST_LAYERS_MAX, &list, err);

	size_t i;

	for (i = 0; r == 0 && i < json_array_size(list) && f->n < SIGNATURES_MAX; i++)
		r = trust_take_layer(n, f, json_array_get(list, i), err);
	f->n_left = json_array_size(list) - i;
	return r;
}

/* *ret_manifest: whose texts the signatures are; NULL where the image has none. */
static int trust_load(struct network *n, const char *digest, json_t **ret_manifest,
		      struct error *err)
{
	_cleanup_(network_document_done) struct network_document got = { .data = BUF_INIT };
	char tag[sizeof("sha256-.sig") + DIGEST_HEX_LEN];
	struct error why = ERROR_INIT;

	(void)str_printf(tag, sizeof(tag), "sha256-%s.sig", digest_hex(digest));
	if (network_get_manifest(n, tag, &got, &why) < 0)
		return why.kind == ERROR_NOT_FOUND ? 0 : error_copy(err, &why);
	return json_read(ret_manifest, &got.data, "the manifest of signatures", err);
}

/* ---- judging ---- */

/* What came of it. Its signers' signatures are those that were found. */
struct trust_answer {
	enum fetch_verdict verdict;
	const struct policy_scope *scope; /* or NULL */
	struct signature_signers signers;
	json_t *manifest;
	struct trust_found found;
};

static void trust_answer_free(struct trust_answer **answer)
{
	struct trust_answer *a = *answer;

	if (!a)
		return;
	trust_found_done(&a->found);
	json_decref(a->manifest);
	free(a);
}

/* That signatures are there and cannot be read is as good as that they are wrong; who could not be
 * asked is not known to have none. */
static int trust_unread(struct trust_answer *a, const struct reference *ref,
			const struct error *why, struct error *err)
{
	if (why->kind != ERROR_INVALID && why->kind != ERROR_EXHAUSTED &&
	    why->kind != ERROR_UNSUPPORTED && why->kind != ERROR_NOT_FOUND)
		return error_copy(err, why);
	a->verdict = FETCH_VERDICT_REFUSED;
	return error_refuse(err, ERROR_PRECONDITION,
			    SIGNATURE_FAILED "the signatures of %.200s cannot be read: %s",
			    ref->name, error_text(why));
}

/* All signatures that count. */
static int trust_gather(struct network *n, const char *digest, struct trust_answer *a,
			struct error *err)
{
	int r;

	n->deadline = clock_mono() + TRUST_SECONDS * NSEC_PER_SEC;
	r = trust_load(n, digest, &a->manifest, err);
	if (r == 0 && a->manifest)
		r = trust_find(n, a->manifest, &a->found, err);
	n->deadline = 0;
	return r < 0 && err->kind == ERROR_DEADLINE
		       ? error_wrap(err, r,
				    "the signatures of %.200s did not come within %d seconds",
				    n->reference.name, TRUST_SECONDS)
		       : r;
}

/* The good one may be among those that were not looked at. */
static int trust_refuse(const struct trust_answer *a, const struct error *why, struct error *err)
{
	if (why->kind != ERROR_PRECONDITION || !a->found.n_left)
		return error_copy(err, why);
	return error_refuse(err, ERROR_PRECONDITION,
			    "%.400s; it has %zu more, and the first %d of an image count",
			    error_text(why), a->found.n_left, SIGNATURES_MAX);
}

static int trust_ask(struct network *n, const char *digest, struct trust_answer *a,
		     struct error *err)
{
	struct error why = ERROR_INIT;
	int r;

	r = trust_gather(n, digest, a, &why);
	if (r < 0)
		return trust_unread(a, &n->reference, &why, err);
	r = signature_judge(a->scope, &n->reference, digest, a->found.all, a->found.n, &a->signers,
			    &why);
	if (r == 0)
		a->verdict = FETCH_VERDICT_SIGNED;
	else if (why.kind == ERROR_PRECONDITION)
		a->verdict = FETCH_VERDICT_REFUSED;
	return r < 0 ? trust_refuse(a, &why, err) : 0;
}

/* FETCH_VERDICT_REFUSED beside an error: it is the policy's. */
static int trust_judge(struct network *n, const char *digest, struct trust_answer *a,
		       struct error *err)
{
	int r;

	a->verdict = FETCH_VERDICT_NO_POLICY;
	if (!n->policy)
		return 0;
	a->verdict = FETCH_VERDICT_ACCEPTED;
	a->scope = policy_find(n->policy, &n->reference);
	r = policy_refuses(a->scope, &n->reference, err);
	if (r < 0)
		a->verdict = FETCH_VERDICT_REFUSED;
	if (r < 0 || !policy_wants_signatures(a->scope))
		return r;
	return trust_ask(n, digest, a, err);
}

/* ---- telling ---- */

static int trust_tell_annotation(void *userdata, const char *name, const char *value,
				 struct error *err)
{
	const struct network *n = userdata;
	struct fetchmsg m = { .type = FETCHMSG_ANNOTATION, .annotation = { name, value } };

	return channel_send(n->sock_fd, &m, err);
}

static int trust_tell_signer(struct network *n, const struct signature_signer *s, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_SIGNER, .signer = { .identity = s->identity } };
	char key[TRUST_KEY_SIZE];
	int r;

	(void)str_printf(key, sizeof(key), "%.*s", TRUST_KEY_SIZE - 1, s->key->name);
	channel_clean(key);
	m.signer.key = key;
	(void)str_copy(m.signer.fingerprint, sizeof(m.signer.fingerprint), s->key->fingerprint);
	r = channel_send(n->sock_fd, &m, err);
	if (r == 0 && n->request.type == FETCHMSG_VERIFY)
		r = signature_each_annotation(s->signature, trust_tell_annotation, n, err);
	return r;
}

/* refusal: why, or NULL. */
static int trust_tell(struct network *n, const char *digest, const struct trust_answer *a,
		      const struct error *refusal, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_VERDICT };
	char text[ERROR_TEXT_MAX] = "";
	int r = 0;

	for (size_t i = 0; i < a->signers.n && r == 0; i++)
		r = trust_tell_signer(n, &a->signers.list[i], err);
	if (r < 0)
		return r;
	if (refusal)
		(void)str_copy(text, sizeof(text), error_text(refusal));
	channel_clean(text);
	(void)str_copy(m.verdict.digest, sizeof(m.verdict.digest), digest);
	m.verdict.verdict = a->verdict;
	m.verdict.scope = a->scope ? a->scope->name : "";
	m.verdict.text = text;
	m.verdict.n_signers = (uint32_t)a->signers.n;
	return channel_send(n->sock_fd, &m, err);
}

static void trust_note(struct network *n, const struct trust_answer *a)
{
	char text[ERROR_TEXT_MAX];

	for (size_t i = 0; i < a->signers.n; i++) {
		(void)str_printf(text, sizeof(text), "its signature holds: the key is %.300s",
				 a->signers.list[i].key->name);
		n->config.note(n->config.userdata, text);
	}
}

static struct trust_answer *trust_answer_new(struct error *err)
{
	struct trust_answer *a = calloc(1, sizeof(*a));

	if (!a)
		(void)error_set(err, -ENOMEM, "signatures");
	return a;
}

int trust_check(struct network *n, const struct network_document *root, struct error *err)
{
	_cleanup_(trust_answer_free) struct trust_answer *a = trust_answer_new(err);
	int r;

	if (!a)
		return -ENOMEM;
	r = trust_judge(n, root->digest, a, err);
	if (r < 0)
		return r;
	trust_note(n, a);
	return n->request.type == FETCHMSG_PULL ? trust_tell(n, root->digest, a, NULL, err) : 0;
}

int trust_verify(struct network *n, const char *digest, struct error *err)
{
	_cleanup_(trust_answer_free) struct trust_answer *a = trust_answer_new(err);
	struct error why = ERROR_INIT;
	int r;

	if (!a)
		return -ENOMEM;
	r = trust_judge(n, digest, a, &why);
	if (r < 0 && a->verdict != FETCH_VERDICT_REFUSED)
		return error_copy(err, &why);
	return trust_tell(n, digest, a, r < 0 ? &why : NULL, err);
}
