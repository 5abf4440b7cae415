/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_HASH_H
#define NACRE_FETCH_HASH_H

#include <nettle/sha2.h>
#include <stddef.h>

#include "wire/digest.h"

/*
 * A running SHA-256. A value, without resources of its own. It is nettle's, and not libcrypto's,
 * since a helper starts for each layer, and libcrypto alone takes longer to load than a small layer
 * to unpack.
 */
struct hash {
	struct sha256_ctx context;
};

/* Begins anew. */
void hash_start(struct hash *h);
void hash_add(struct hash *h, const void *data, size_t len);
/* The digest of what was added. */
void hash_end(struct hash *h, char ret[DIGEST_SIZE]);

#endif
