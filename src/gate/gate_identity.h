/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_GATE_IDENTITY_H
#define NACRE_GATE_GATE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/time/clock.h"
#include "identity/cert.h"
#include "identity/tls.h"
#include "wire/message/gatemsg.h"

/*
 * The identity of one end, as it lives: a key that was made here, the certificate for it, when that
 * is to be renewed and when it ends. A value.
 */

struct gate_identity {
	struct key *key;  /* in use, with cert */
	struct key *next; /* a certificate for it is on its way; NULL: none is */
	struct cert cert;
	struct tls_config *config; /* NULL: no certificate yet */
	uint64_t not_after;        /* seconds since 1970 */
	nsec_t renew_at;           /* of the monotonic clock */
};

#define GATE_IDENTITY_INIT                                                                         \
	{                                                                                          \
		.key = NULL                                                                        \
	}

void gate_identity_done(struct gate_identity *p);
/* Makes the next key, and gives its public half. */
int gate_identity_begin(struct gate_identity *p, uint8_t ret[GATE_KEY_SIZE], struct error *err);
/* The certificate for it: both are in use from here on. ERROR_INVALID for one that is for another
 * key, or cannot be used; then all is as it was, and the next key is forgotten. */
int gate_identity_take(struct gate_identity *p, bool server, const struct gate_bytes *chain,
		       const struct gate_bytes *bundle, const char *peer_id, struct error *err);
/* Another bundle, with the key and the certificate that are in use, if there are any. */
int gate_identity_trust(struct gate_identity *p, bool server, const struct gate_bytes *bundle,
			const char *peer_id, struct error *err);
/* Whether there is a certificate that is not over. */
bool gate_identity_are_valid(const struct gate_identity *p);

/* When a certificate that came now is to be renewed: after a half of what is left of its life, some
 * more or less, so that many that came at once are not renewed at once. */
nsec_t gate_identity_renew_at(uint64_t not_after);
/* Seconds since 1970. */
uint64_t gate_identity_now(void);

#endif
