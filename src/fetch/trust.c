/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/trust.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "fetch/descriptor.h"
#include "fetch/json.h"
#include "fetch/signature.h"

#define TRUST_LAYERS_MAX 256

struct trust_found {
	struct buf payloads[SIGNATURES_MAX];
	struct signature all[SIGNATURES_MAX];
	size_t n;
};

static void trust_found_free(struct trust_found **found)
{
	struct trust_found *f = *found;

	for (size_t i = 0; f && i < f->n; i++)
		buf_done(&f->payloads[i]);
	free(f);
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

	for (size_t i = 0; r == 0 && i < json_array_size(list) && f->n < SIGNATURES_MAX; i++)
		r = trust_take_layer(n, f, json_array_get(list, i), err);
	return r;
}

static void trust_tell(struct network *n, const char *signer)
{
	char text[ERROR_TEXT_MAX];

	(void)str_printf(text, sizeof(text), "its signature holds: the key is %.300s", signer);
	n->config.note(n->config.userdata, text);
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

static int trust_ask(struct network *n, const struct policy_scope *scope,
		     const struct network_document *root, struct error *err)
{
	_cleanup_(trust_found_free) struct trust_found *f = calloc(1, sizeof(*f));
	_cleanup_json_ json_t *manifest = NULL;
	const char *signer;
	int r;

	if (!f)
		return error_set(err, -ENOMEM, "signatures");
	r = trust_load(n, root->digest, &manifest, err);
	if (r == 0 && manifest)
		r = trust_find(n, manifest, f, err);
	if (r == 0)
		r = signature_judge(scope, &n->reference, root->digest, f->all, f->n, &signer, err);
	if (r == 0)
		trust_tell(n, signer);
	return r;
}

int trust_check(struct network *n, const struct network_document *root, struct error *err)
{
	const struct policy_scope *scope;
	int r;

	if (!n->policy)
		return 0;
	scope = policy_find(n->policy, &n->reference);
	r = policy_refuses(scope, &n->reference, err);
	if (r < 0 || !policy_wants_signatures(scope))
		return r;
	return trust_ask(n, scope, root, err);
}
