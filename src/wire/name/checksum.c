/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name/checksum.h"

void checksum_start(struct checksum *h)
{
	sha256_init(&h->context);
}

void checksum_add(struct checksum *h, const void *data, size_t len)
{
	sha256_update(&h->context, len, data);
}

void checksum_end(struct checksum *h, char ret[DIGEST_SIZE])
{
	uint8_t sum[SHA256_DIGEST_SIZE];

	sha256_digest(&h->context, sizeof(sum), sum);
	digest_format(ret, sum);
}
