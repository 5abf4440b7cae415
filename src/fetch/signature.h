/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_SIGNATURE_H
#define NACRE_FETCH_SIGNATURE_H

#include <stddef.h>

#include "base/error.h"
#include "fetch/policy.h"
#include "wire/reference.h"

/*
 * Signatures as cosign makes them with a key: an image "sha256-HEX.sig" beside the one that is
 * signed, of which each layer is a payload (JSON: which digest, under which name) and has the
 * signature of that in an annotation, in base64. A payload is a stranger's until its signature was
 * checked, and it is checked before anything in it is read.
 */

#define SIGNATURE_PAYLOAD_MAX (64U << 10)
#define SIGNATURE_TEXT_MAX 8192 /* of the base64 */
#define SIGNATURES_MAX 64       /* of an image; more are not looked at */

#define SIGNATURE_LAYER "application/vnd.dev.cosign.simplesigning.v1+json"
#define SIGNATURE_ANNOTATION "dev.cosignproject.cosign/signature"

struct signature {
	const void *payload;
	size_t len;
	const char *text; /* base64 */
};

/*
 * Whether each rule of the scope accepts one of the signatures for the digest under the reference;
 * *ret_signer (may be NULL) is the name of the key that did so last. ERROR_PRECONDITION says of
 * the nearest signature why not, "SignatureValidationFailed: " in front.
 */
int signature_judge(const struct policy_scope *scope, const struct reference *ref,
		    const char *digest, const struct signature *all, size_t n,
		    const char **ret_signer, struct error *err);

#endif
