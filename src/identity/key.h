/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_KEY_H
#define NACRE_IDENTITY_KEY_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/*
 * Ed25519 keys, the one kind of this house, and the beginning of OpenSSL. No name of OpenSSL leaves
 * this area: it is linked into nacre-gate alone.
 */

#define KEY_SIZE 32 /* raw: of either half */

/* Before anything else of this area: no configuration is read, no module loaded. */
int identity_begin(struct error *err);

struct key;

/* A new one, of the kernel's random bytes: in a process that was not cloned from a template. */
int key_new(struct key **ret, struct error *err);
/* From its private half. */
int key_load(struct key **ret, const uint8_t raw[KEY_SIZE], struct error *err);
struct key *key_free(struct key *k);
static inline void key_freep(struct key **k)
{
	*k = key_free(*k);
}
#define _cleanup_key_ _cleanup_(key_freep)

int key_public(const struct key *k, uint8_t ret[KEY_SIZE], struct error *err);
/* The caller wipes it. */
int key_private(const struct key *k, uint8_t ret[KEY_SIZE], struct error *err);

/* Overwrites a secret for good. */
void key_wipe(void *data, size_t len);

#endif
