/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What says which images may be pulled, and what is signed. The first byte says what the rest is:
 * 'S' the payload of a signature, which is made with the key that the policy of this target wants;
 * else a policy.
 */

#include <openssl/evp.h>

#include "base/text/str.h"
#include "fetch/transfer/policy.h"
#include "fetch/transfer/signature.h"
#include "fuzz.h"

#define PROOF_BYTES 64

static const char digest[] =
	"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/* The key whose private part is 32 bytes of 1. */
static const char signed_by_one[] =
	"{\"default\":[{\"type\":\"sigstoreSigned\",\"keyData\":\""
	"LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUNvd0JRWURLMlZ3QXlFQWlvamozWFFKOFpYOVV0c3RQ"
	"THBkY3NwbkNiOGRsQkliODNTSUFiUVBiMXc9Ci0tLS0tRU5EIFBVQkxJQyBLRVktLS0tLQo="
	"\"}]}";

static struct policy *read_policy(const void *data, size_t len)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct error err = ERROR_INIT;
	struct policy *p = NULL;

	fuzz_need(buf_add(&b, data, len) == 0);
	if (policy_read(&p, &b, "policy", &err) < 0)
		fuzz_need(err.code != 0 && !p);
	return p;
}

static void judge(const struct policy *p, const struct fuzz_input *payload)
{
	static const uint8_t seed[32] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
					  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned char proof[PROOF_BYTES], text[2 * PROOF_BYTES];
	struct signature s = { payload->at, payload->len, (const char *)text };
	struct error err = ERROR_INIT;
	size_t len = sizeof(proof);
	struct reference ref;

	fuzz_need(key && context);
	fuzz_need(EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1);
	fuzz_need(EVP_DigestSign(context, proof, &len, payload->at, payload->len) == 1);
	(void)EVP_EncodeBlock(text, proof, (int)len);
	fuzz_need(reference_parse(&ref, "q.io/a:1", NULL) == 0);
	if (signature_judge(policy_find(p, &ref), &ref, digest, &s, 1, NULL, &err) < 0)
		fuzz_need(!strstr(err.text, "none of the keys"));
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct reference ref;
	struct policy *p;

	if (fuzz_byte(&in) == 'S') {
		p = read_policy(signed_by_one, strlen(signed_by_one));
		fuzz_need(p != NULL);
		if (in.len > 0 && in.len <= SIGNATURE_PAYLOAD_MAX)
			judge(p, &in);
	} else {
		p = read_policy(in.at, in.len);
		fuzz_need(reference_parse(&ref, "x.q.io:5/a/b:1", NULL) == 0);
		if (p)
			fuzz_need(policy_find(p, &ref) != NULL);
	}
	(void)policy_free(p);
	return 0;
}
