/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/signature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "fetch/job/json.h"
#include "fetch/transfer/key.h"
#include "wire/message/fetchmsg.h"

#define SIGNATURE_TYPE "cosign container image signature"

/* ---- payloads ---- */

struct payload {
	json_t *document;
	json_t *optional; /* whatever it is, or NULL */
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
	if (r == 0)
		r = json_need_text(identity, "docker-reference", &ret->name, err);
	ret->optional = json_object_get(ret->document, "optional");
	return r;
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
			  const char *digest, const struct signature *s,
			  struct signature_signer *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf proof = BUF_INIT;
	struct payload p = { .document = NULL };
	const struct policy_key *signer = NULL;
	int r;

	r = s->len > SIGNATURE_PAYLOAD_MAX ? -EFBIG
					   : key_decode(&proof, s->text, SIGNATURE_TEXT_MAX);
	if (r == -ENOMEM)
		return error_set(err, r, "a signature");
	if (r < 0)
		return error_refuse(err, ERROR_INVALID, "it is no signature");
	for (size_t i = 0; i < rule->n_keys && !signer; i++)
		if (key_has_signed(rule->keys[i].key, s->payload, s->len, &proof))
			signer = &rule->keys[i];
	if (!signer)
		return error_refuse(err, ERROR_INVALID, "it was made with none of the keys");
	r = payload_read(&p, s, err);
	if (r == 0)
		r = payload_judge(rule, ref, digest, &p, err);
	if (r == 0) {
		*ret = (struct signature_signer){ .key = signer, .signature = s };
		/* It is a reference, and so short enough. */
		(void)str_copy(ret->identity, sizeof(ret->identity), p.name);
	}
	json_decref(p.document);
	return r;
}

/* What is told of several that fail is the one that a key of the rule has made. */
static int rule_judge(const struct policy_rule *rule, const struct reference *ref,
		      const char *digest, const struct signature *all, size_t n,
		      struct signature_signer *ret, struct error *err)
{
	struct error last = ERROR_INIT;

	for (size_t i = 0; i < MIN(n, (size_t)SIGNATURES_MAX); i++) {
		struct error one = ERROR_INIT;

		if (rule_judge_one(rule, ref, digest, &all[i], ret, &one) == 0)
			return 0;
		if (!last.code || one.kind != ERROR_INVALID ||
		    !strstr(one.text, "with none of the keys"))
			last = one;
	}
	if (n)
		return error_copy(err, &last);
	return error_refuse(err, ERROR_INVALID, "it has none");
}

static int signature_refuse(const struct policy_scope *scope, const struct reference *ref,
			    const struct error *why, struct error *err)
{
	if (scope->of_key)
		return error_refuse(err, ERROR_PRECONDITION,
				    SIGNATURE_FAILED "%.200s has no signature by the given key: %s",
				    ref->name, error_text(why));
	return error_refuse(err, ERROR_PRECONDITION,
			    SIGNATURE_FAILED "%.200s has no signature that the policy (scope "
					     "\"%.100s\") takes: %s",
			    ref->name, scope->name, error_text(why));
}

int signature_judge(const struct policy_scope *scope, const struct reference *ref,
		    const char *digest, const struct signature *all, size_t n,
		    struct signature_signers *ret_signers, struct error *err)
{
	const struct policy_rule *rule;
	struct signature_signer signer;
	size_t n_signers = 0;
	int r;

	list_for_each (rule, &scope->rules, struct policy_rule, link) {
		struct error why = ERROR_INIT;

		if (rule->kind != POLICY_SIGNED)
			continue;
		r = rule_judge(rule, ref, digest, all, n, &signer, &why);
		if (r < 0 && why.kind != ERROR_INVALID)
			return error_copy(err, &why);
		if (r < 0)
			return signature_refuse(scope, ref, &why, err);
		if (ret_signers)
			ret_signers->list[n_signers++] = signer;
	}
	if (ret_signers)
		ret_signers->n = n_signers;
	return 0;
}

/* ---- what was signed beside it ---- */

/* A text of the member's value; *ret_made is to be freed. NULL without memory. */
static const char *annotation_text(const json_t *value, char **ret_made)
{
	if (json_is_string(value))
		return json_string_value(value);
	*ret_made = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
	return *ret_made;
}

static bool annotation_fits(const char *name, const char *text)
{
	return *name && strlen(name) <= FETCH_ANNOTATION_NAME_MAX && str_is_clean(name) &&
	       strlen(text) <= FETCH_ANNOTATION_MAX;
}

static int payload_each_annotation(const struct payload *p, signature_annotation_fn fn,
				   void *userdata, struct error *err)
{
	size_t n = 0;
	const char *name;
	json_t *value;

	json_object_foreach(p->optional, name, value)
	{
		char *made = NULL;
		const char *text = annotation_text(value, &made);
		int r = 0;

		if (!text)
			return error_set(err, -ENOMEM, "an annotation");
		if (annotation_fits(name, text) && n++ < FETCH_ANNOTATIONS_MAX)
			r = fn(userdata, name, text, err);
		free(made);
		if (r != 0)
			return r;
	}
	return 0;
}

int signature_each_annotation(const struct signature *s, signature_annotation_fn fn, void *userdata,
			      struct error *err)
{
	struct payload p = { .document = NULL };
	int r = payload_read(&p, s, err);

	if (r == 0 && json_is_object(p.optional))
		r = payload_each_annotation(&p, fn, userdata, err);
	json_decref(p.document);
	return r;
}
