/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_KEY_H
#define NACRE_FETCH_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "wire/name/digest.h"

/* Public keys (EVP_PKEY behind a void *, so that nobody else sees OpenSSL), and what they prove. */

/* One in PEM: ECDSA of at least 256 bits, Ed25519, or RSA of at least 2048 bits; ERROR_INVALID. */
int key_read(void **ret, const void *pem, size_t len, struct error *err);
void key_free(void *key);

/* The SHA-256 of the key as a SubjectPublicKeyInfo in DER, by which others show keys too. -ENOMEM.
 */
int key_fingerprint(void *key, char ret[DIGEST_SIZE]);

/* Makes libcrypto ready, without its configuration files: to be called before the sandbox closes. 0
 * or -ENOMEM. */
int key_prepare(void);

/* Whether the key's owner has signed the data: ECDSA and RSA (PKCS #1) by SHA-256. */
bool key_has_signed(void *key, const void *data, size_t len, const struct buf *proof);

/* Base64 with its padding and no blanks but newlines, at most about max bytes of it: 0, -EINVAL,
 * -EFBIG, -ENOMEM. */
int key_decode(struct buf *ret, const char *text, size_t max);

#endif
