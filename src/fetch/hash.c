/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/hash.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdbool.h>

int hash_prepare(void)
{
	struct hash h = HASH_INIT;
	int r;

	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
		return -ENOMEM;
	r = hash_start(&h);
	hash_done(&h);
	return r;
}

int hash_start(struct hash *h)
{
	if (!h->context)
		h->context = EVP_MD_CTX_new();
	if (!h->context || EVP_DigestInit_ex(h->context, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	return 0;
}

void hash_add(struct hash *h, const void *data, size_t len)
{
	/* SHA-256 in memory cannot fail. */
	if (EVP_DigestUpdate(h->context, data, len) != 1)
		assert(false);
}

void hash_end(struct hash *h, char ret[DIGEST_SIZE])
{
	unsigned char sum[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(h->context, sum, NULL) != 1)
		assert(false);
	digest_format(ret, sum);
}

void hash_done(struct hash *h)
{
	EVP_MD_CTX_free(h->context);
	h->context = NULL;
}
