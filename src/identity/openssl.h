/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_OPENSSL_H
#define NACRE_IDENTITY_OPENSSL_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/log/error.h"
#include "base/macros.h"
#include "wire/name/spiffe.h"

/* Helpers for OpenSSL that the units of this area share; private to it, and to its tests. */

#define OPENSSL_CLEANUP(type, fn)                                                                  \
	static inline void fn##_p(typeof(type) **p)                                                \
	{                                                                                          \
		fn(*p);                                                                            \
	}
OPENSSL_CLEANUP(X509, X509_free)
OPENSSL_CLEANUP(X509_STORE, X509_STORE_free)
OPENSSL_CLEANUP(X509_STORE_CTX, X509_STORE_CTX_free)
OPENSSL_CLEANUP(X509_EXTENSION, X509_EXTENSION_free)
OPENSSL_CLEANUP(EVP_PKEY, EVP_PKEY_free)
OPENSSL_CLEANUP(SSL_SESSION, SSL_SESSION_free)
OPENSSL_CLEANUP(GENERAL_NAMES, GENERAL_NAMES_free)
OPENSSL_CLEANUP(BIGNUM, BN_free)
OPENSSL_CLEANUP(ASN1_TIME, ASN1_TIME_free)
OPENSSL_CLEANUP(BIO, BIO_free_all)

/* Says what was tried and why OpenSSL could not, empties its list of errors, and returns r. */
int openssl_error(struct error *err, int r, const char *what);

struct key;
EVP_PKEY *key_openssl(const struct key *k);
/* Of one of the two kinds that this house takes. */
bool key_is_known(EVP_PKEY *pkey);
int key_read_spki(EVP_PKEY **ret, const uint8_t *spki, size_t len, struct error *err);

/* Makes a store of the certificates in DER, one behind the other, and of nothing else. */
int verify_store_new(X509_STORE **ret, const uint8_t *bundle, size_t len, struct error *err);
/* Verifies the leaf of ctx, whose store is such a one; ERROR_DENIED with the reason. */
int verify_run(X509_STORE_CTX *ctx, const char *id, struct error *err);

/*
 * Verifies a leaf that a user shows: as verify_run(), of either kind of key, and with one URI among
 * its names, "spiffe://DOMAIN/user/NAME". Writes the id.
 */
int verify_user(X509_STORE_CTX *ctx, const char *domain, char ret_id[SPIFFE_SIZE],
		struct error *err);
/* Verifies the leaf of a server: as verify_run(), of either kind of key, and that one of its names
 * is `host`, a DNS name or an address. */
int verify_host(X509_STORE_CTX *ctx, const char *host, struct error *err);

/* Whether the only name that the certificate has besides its subject is this id, to the letter. */
int verify_name(X509 *x, const char *id, struct error *err);

int cert_time(uint64_t *ret, const ASN1_TIME *at, struct error *err);
/* ret has room for CERT_SERIAL_SIZE bytes. */
int cert_serial(const X509 *x, uint8_t *ret, struct error *err);

struct tls;
/* The connection as OpenSSL knows it, for tests that do with it what this house never does. */
SSL *tls_openssl(const struct tls *t);

#endif
