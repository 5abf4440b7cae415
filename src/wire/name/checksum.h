/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CHECKSUM_H
#define NACRE_WIRE_CHECKSUM_H

#include <nettle/sha2.h>
#include <stddef.h>

#include "wire/name/digest.h"

/*
 * A running SHA-256, the digest of content. A value, without resources of its own. It is nettle's,
 * and not libcrypto's, since a helper starts for each layer, and libcrypto alone takes longer to
 * load than a small layer to unpack (doc/decisions/verified-reads.md).
 */
struct checksum {
	struct sha256_ctx context;
};

/* Begins anew. */
void checksum_start(struct checksum *h);
void checksum_add(struct checksum *h, const void *data, size_t len);
/* The digest of what was added. */
void checksum_end(struct checksum *h, char ret[DIGEST_SIZE]);

#endif
