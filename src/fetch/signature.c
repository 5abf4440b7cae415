/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/signature.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/str.h"
#include "fetch/json.h"
#include "fetch/key.h"

#define SIGNATURE_FAILED "SignatureValidationFailed: "
#define SIGNATURE_TYPE "cosign container image signature"

/* ---- payloads ---- */

struct payload {
	json_t *document;
	const char *digest, *name;
};

static int payload_read(struct payload *ret, const struct signature *s, struct error *err)
{
	json_t *critical, *image, *identity;
	struct buf text = BUF_INIT;
	const char *type;
	int r;

	if (buf_add(&text, s->payload, s->len) < 0)
		return error_set(err, -ENOMEM, "a signature");
	r = json_read(&ret->document, &text, "its payload", err);
	buf_done(&text);
	if (r == 0)
		r = json_need_object(ret->document, "critical", &critical, err);
	if (r == 0)
		r = json_need_text(critical, "type", &type, err);
	if (r == 0 && !str_eq(type, SIGNATURE_TYPE))
		r = error_refuse(err, ERROR_INVALID, "its payload is of the type \"%.80s\"", type);
	if (r == 0 && json_object_size(critical) != 3)
		r = error_refuse(err, ERROR_INVALID, "its payload says more than is known here");
	if (r == 0)
		r = json_need_object(critical, "image", &image, err);
	if (r == 0)
		r = json_need_text(image, "docker-manifest-digest", &ret->digest, err);
	if (r == 0)
		r = json_need_object(critical, "identity", &identity, err);
	return r < 0 ? r : json_need_text(identity, "docker-reference", &ret->name, err);
}

/* A name alone, without a tag or digest, as cosign writes it unless told otherwise. */
static bool name_is_bare(const char *name)
{
	const char *last = strrchr(name, '/');

	return !strpbrk(last ? last : name, ":@");
}

static bool reference_is(const struct reference *a, const struct reference *b)
{
	return str_eq(a->name, b->name) && str_eq(a->tag, b->tag) && str_eq(a->digest, b->digest);
}

/* The name under which it should have been signed. */
static bool identity_remap(const struct policy_rule *rule, const struct reference *ref,
			   struct reference *ret)
{
	size_t len = strlen(rule->from);
	char name[sizeof(ret->name)];

	*ret = *ref;
	if (!str_has_prefix(ref->name, rule->from) ||
	    (ref->name[len] != '\0' && ref->name[len] != '/'))
		return true;
	if (str_printf(name, sizeof(name), "%s%s", rule->to, ref->name + len) < 0)
		return false;
	(void)str_copy(ret->name, sizeof(ret->name), name);
	return true;
}

/* Whether what was signed is what is asked for; wanted: by which name, for people. */
static bool identity_fits(const struct policy_rule *rule, const struct reference *ref,
			  const char *name, char wanted[REFERENCE_SIZE])
{
	bool bare = name_is_bare(name), by_name = false;
	struct reference is, should = *ref;

	*wanted = '\0';
	if (reference_parse(&is, name, NULL) < 0)
		return false;
	switch (rule->identity) {
	case POLICY_REPOSITORY_OR_EXACT:
		by_name = ref->digest[0];
		break;
	case POLICY_EXACT:
		break;
	case POLICY_REPOSITORY:
		by_name = true;
		break;
	case POLICY_EXACT_REFERENCE:
		if (name_is_bare(rule->named) || reference_parse(&should, rule->named, NULL) < 0)
			return false;
		break;
	case POLICY_EXACT_REPOSITORY:
		if (!name_is_bare(rule->named) || reference_parse(&should, rule->named, NULL) < 0)
			return false;
		by_name = true;
		break;
	case POLICY_REMAP:
		if (!identity_remap(rule, ref, &should))
			return false;
		by_name = ref->digest[0];
		break;
	}
	if (should.digest[0])
		should.tag[0] = '\0';
	if (by_name)
		(void)str_copy(wanted, REFERENCE_SIZE, should.name);
	else
		reference_format(&should, wanted);
	return by_name ? str_eq(is.name, should.name) : !bare && reference_is(&is, &should);
}

static int payload_judge(const struct policy_rule *rule, const struct reference *ref,
			 const char *digest, const struct payload *p, struct error *err)
{
	char wanted[REFERENCE_SIZE];

	if (!str_eq(p->digest, digest))
		return error_refuse(err, ERROR_INVALID, "it is for another image, %.80s",
				    p->digest);
	if (identity_fits(rule, ref, p->name, wanted))
		return 0;
	return error_refuse(err, ERROR_INVALID, "it is for the name %.200s, not %.300s%s", p->name,
			    wanted,
			    name_is_bare(p->name) && !name_is_bare(wanted)
				    ? " (a signature without a tag: signedIdentity "
				      "\"matchRepository\" takes it)"
				    : "");
}

/* ---- judging ---- */

static int rule_judge_one(const struct policy_rule *rule, const struct reference *ref,
			  const char *digest, const struct signature *s, const char **ret_signer,
			  struct error *err)
{
	_cleanup_(buf_done) struct buf proof = BUF_INIT;
	struct payload p = { .document = NULL };
	const char *signer = NULL;
	int r;

	r = s->len > SIGNATURE_PAYLOAD_MAX ? -EFBIG
					   : key_decode(&proof, s->text, SIGNATURE_TEXT_MAX);
	if (r == -ENOMEM)
		return error_set(err, r, "a signature");
	if (r < 0)
		return error_refuse(err, ERROR_INVALID, "it is no signature");
	for (size_t i = 0; i < rule->n_keys && !signer; i++)
		if (key_has_signed(rule->keys[i].key, s->payload, s->len, &proof))
			signer = rule->keys[i].name;
	if (!signer)
		return error_refuse(err, ERROR_INVALID, "it was made with none of the keys");
	r = payload_read(&p, s, err);
	if (r == 0)
		r = payload_judge(rule, ref, digest, &p, err);
	json_decref(p.document);
	if (r == 0)
		*ret_signer = signer;
	return r;
}

/* What is told of several that fail is the one that a key of the rule has made. */
static int rule_judge(const struct policy_rule *rule, const struct reference *ref,
		      const char *digest, const struct signature *all, size_t n,
		      const char **ret_signer, struct error *err)
{
	struct error last = ERROR_INIT;

	for (size_t i = 0; i < MIN(n, (size_t)SIGNATURES_MAX); i++) {
		struct error one = ERROR_INIT;

		if (rule_judge_one(rule, ref, digest, &all[i], ret_signer, &one) == 0)
			return 0;
		if (!last.code || one.kind != ERROR_INVALID ||
		    !strstr(one.text, "with none of the keys"))
			last = one;
	}
	if (n)
		return error_copy(err, &last);
	return error_refuse(err, ERROR_INVALID, "it has none");
}

int signature_judge(const struct policy_scope *scope, const struct reference *ref,
		    const char *digest, const struct signature *all, size_t n,
		    const char **ret_signer, struct error *err)
{
	const struct policy_rule *rule;
	const char *signer = "";
	int r;

	list_for_each (rule, &scope->rules, struct policy_rule, link) {
		struct error why = ERROR_INIT;

		if (rule->kind != POLICY_SIGNED)
			continue;
		r = rule_judge(rule, ref, digest, all, n, &signer, &why);
		if (r < 0 && why.kind != ERROR_INVALID)
			return error_copy(err, &why);
		if (r < 0)
			return error_refuse(err, ERROR_PRECONDITION,
					    SIGNATURE_FAILED "%.200s has no signature that the "
							     "policy (scope \"%.100s\") takes: %s",
					    ref->name, scope->name, error_text(&why));
	}
	if (ret_signer)
		*ret_signer = signer;
	return 0;
}
