/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_SIGNATURE_H
#define NACRE_FETCH_SIGNATURE_H

#include <stddef.h>

#include "base/log/error.h"
#include "fetch/transfer/policy.h"
#include "wire/name/reference.h"

/*
 * Signatures as cosign makes them with a key: an image "sha256-HEX.sig" beside the one that is
 * signed, of which each layer is a payload (JSON: which digest, under which name) and has the
 * signature of that in an annotation, in base64. A payload is a stranger's until its signature was
 * checked, and it is checked before anything in it is read.
 */

#define SIGNATURE_PAYLOAD_MAX (64U << 10)
#define SIGNATURE_TEXT_MAX 8192 /* of the base64 */
#define SIGNATURES_MAX 50       /* of an image; more are not looked at */

#define SIGNATURE_LAYER "application/vnd.dev.cosign.simplesigning.v1+json"
#define SIGNATURE_ANNOTATION "dev.cosignproject.cosign/signature"

struct signature {
	const void *payload;
	size_t len;
	const char *text; /* base64 */
};

/* The signer of a signature that a rule accepted. */
struct signature_signer {
	const struct policy_key *key;
	const struct signature *signature;
	char identity[REFERENCE_SIZE]; /* the name that was signed, as it stands there */
};

/* One for each rule that wants any. */
struct signature_signers {
	struct signature_signer list[POLICY_RULES_MAX];
	size_t n;
};

/* In front of each reason why an image may not be had. */
#define SIGNATURE_FAILED "SignatureValidationFailed: "

/*
 * Whether each rule of the scope accepts one of the signatures for the digest under the reference;
 * ret_signers may be NULL. ERROR_PRECONDITION says of the nearest signature why not,
 * SIGNATURE_FAILED in front.
 */
int signature_judge(const struct policy_scope *scope, const struct reference *ref,
		    const char *digest, const struct signature *all, size_t n,
		    struct signature_signers *ret_signers, struct error *err);

/*
 * The annotations that were signed with it: the members of the payload's `optional`, a text as it
 * is and any other value as JSON. Those that fit no limit of wire/message/fetchmsg.h are left out.
 * Only of a signature that was taken. fn returns 0 to go on.
 */
typedef int (*signature_annotation_fn)(void *userdata, const char *name, const char *value,
				       struct error *err);
int signature_each_annotation(const struct signature *s, signature_annotation_fn fn, void *userdata,
			      struct error *err);

#endif
