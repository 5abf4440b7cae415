/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_KEY_H
#define NACRE_IDENTITY_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/macros.h"

/*
 * Ed25519 keys, the kind of this house, and P-256 keys (ECDSA), the kind that everybody's TLS
 * knows: of users, and of the end of a listener that users meet. And the beginning of OpenSSL: no
 * name of it leaves this area, which is linked into nacre-gate, nacre-remote and nacre-svid alone.
 */

#define KEY_SIZE 32 /* raw: of either half, of an Ed25519 key */
/* A public key as certificates have it (SubjectPublicKeyInfo), of either kind. */
#define KEY_SPKI_MAX 128
#define KEY_PEM_MAX 512

/* Before anything else of this area: no configuration is read, no module loaded. */
int identity_begin(struct error *err);

struct key;

/* A new one, of the kernel's random bytes: in a process that was not cloned from a template. */
int key_new(struct key **ret, struct error *err);
/* A P-256 key. */
int key_new_user(struct key **ret, struct error *err);
/* From its private half, of Ed25519. */
int key_load(struct key **ret, const uint8_t raw[KEY_SIZE], struct error *err);
struct key *key_free(struct key *k);
static inline void key_freep(struct key **k)
{
	*k = key_free(*k);
}
#define _cleanup_key_ _cleanup_(key_freep)

int key_public(const struct key *k, uint8_t ret[KEY_SIZE], struct error *err);
/* Its length. */
int key_spki(const struct key *k, uint8_t ret[KEY_SPKI_MAX], struct error *err);
/* Whether the bytes are such a public key, of one of the two kinds: 0 or ERROR_INVALID. */
int key_check_spki(const uint8_t *spki, size_t len, struct error *err);
/* PKCS #8 in PEM, not encrypted; a text. The caller wipes it. */
int key_pem(const struct key *k, char ret[KEY_PEM_MAX], struct error *err);
#define KEY_PKCS8_MAX 512
/* The same in DER; its length. The caller wipes it. */
int key_pkcs8(const struct key *k, uint8_t ret[KEY_PKCS8_MAX], struct error *err);
/* Of Ed25519. The caller wipes it. */
int key_private(const struct key *k, uint8_t ret[KEY_SIZE], struct error *err);

/* Overwrites a secret for good. */
void key_wipe(void *data, size_t len);

#endif
