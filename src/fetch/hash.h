/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_HASH_H
#define NACRE_FETCH_HASH_H

#include <stddef.h>

#include "base/macros.h"
#include "wire/digest.h"

/* A running SHA-256. */
struct hash {
	void *context;
};

#define HASH_INIT                                                                                  \
	{                                                                                          \
		.context = NULL                                                                    \
	}

/* Makes libcrypto ready, without its configuration files: to be called before the sandbox closes.
 */
int hash_prepare(void);

/* Begins anew. 0 or -ENOMEM. */
int hash_start(struct hash *h) _must_check_;
void hash_add(struct hash *h, const void *data, size_t len);
void hash_end(struct hash *h, char ret[DIGEST_SIZE]);
void hash_done(struct hash *h);

#endif
