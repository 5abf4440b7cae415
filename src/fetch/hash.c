/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/hash.h"

void hash_start(struct hash *h)
{
	sha256_init(&h->context);
}

void hash_add(struct hash *h, const void *data, size_t len)
{
	sha256_update(&h->context, len, data);
}

void hash_end(struct hash *h, char ret[DIGEST_SIZE])
{
	uint8_t sum[SHA256_DIGEST_SIZE];

	sha256_digest(&h->context, sizeof(sum), sum);
	digest_format(ret, sum);
}
