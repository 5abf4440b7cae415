/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_CERT_H
#define NACRE_IDENTITY_CERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "identity/key.h"

/*
 * X.509 certificates of SPIFFE (X509-SVID): made from a raw public key, an id and a time, never
 * from a request that somebody else wrote. A leaf has an empty subject, a critical subjectAltName
 * with the id as its only name (that of a listener has the names by which it is reached besides),
 * is no CA, may sign (and nothing else), and is for servers and clients. A CA signs leaves only
 * (pathlen 0), and its name is the id of its trust domain. Serial numbers are 128 random bits, the
 * highest of them 0.
 */

#define CERT_SIZE_MAX 4096 /* bytes of DER */
#define CERT_SERIAL_SIZE 16
/* Names of a listener. */
#define CERT_NAMES_MAX 64
#define CERT_NAME_MAX 253 /* bytes of a DNS name, in letters */
/* The longest life of a leaf and of a user's certificate, and the life of a CA. */
#define CERT_LEAF_SECONDS_MAX (24 * 3600)
#define CERT_USER_SECONDS_MAX (366 * 86400LL)
#define CERT_CA_SECONDS (10 * 365 * 86400LL)

struct cert {
	uint8_t der[CERT_SIZE_MAX];
	size_t len;
};

struct cert_request {
	const uint8_t *key; /* KEY_SIZE bytes, public */
	const char *id;
	uint64_t not_before, not_after; /* seconds since 1970 */
	/* In place of key where it is not NULL: a public key of either kind. */
	const uint8_t *spki;
	size_t spki_len;
	/* DNS names and addresses beside the id, parted by commas; NULL: none. */
	const char *names;
};

/* The root itself, signed by its own key. request->key does not count. */
int cert_make_root(struct cert *ret, const struct key *key, const struct cert_request *request,
		   struct error *err);
/* The id of a user ("/user/NAME") lives up to CERT_USER_SECONDS_MAX. */
int cert_make_leaf(struct cert *ret, const struct key *ca_key, const struct cert *ca,
		   const struct cert_request *request, struct error *err);

/* The length of the certificate at the front of several; 0: there is none. */
size_t cert_length(const uint8_t *der, size_t len);
#define CERT_DIGEST_SIZE 32
/* Whether one of the certificates in a bundle has that digest (SHA-256). */
bool cert_bundle_has(const uint8_t *bundle, size_t len, const uint8_t digest[CERT_DIGEST_SIZE]);
/* Whether one of the certificates in a bundle has signed this one. */
bool cert_bundle_signs(const uint8_t *bundle, size_t bundle_len, const uint8_t *der, size_t len);
/* When it begins and ends to be valid. ERROR_INVALID for what is no certificate. */
int cert_times(const uint8_t *der, size_t len, uint64_t *ret_not_before, uint64_t *ret_not_after,
	       struct error *err);
/* The number as one of CERT_SERIAL_SIZE bytes, with zeros in front. */
int cert_serial_of(const struct cert *c, uint8_t ret[CERT_SERIAL_SIZE], struct error *err);
/* Whether the certificate is for this key: 0, or ERROR_INVALID. */
int cert_check_key(const uint8_t *der, size_t len, const struct key *key, struct error *err);

#endif
