/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_ODD_TEST_H
#define NACRE_IDENTITY_ODD_TEST_H

#include <stdbool.h>
#include <string.h>

#include "identity/cert.h"
#include "identity/openssl.h"

/* For tests: certificates as nobody in the house makes them. Words are those of OpenSSL's
 * configuration; NULL leaves the extension out. */

struct odd {
	const char *san, *usage, *ext_usage, *constraints;
	long from, until; /* seconds from now */
	bool not_ed25519;
	bool twice; /* the constraints */
};

static inline int odd_add(X509 *x, X509 *issuer, int nid, const char *value)
{
	_cleanup_(X509_EXTENSION_free_p) X509_EXTENSION *ext = NULL;
	X509V3_CTX ctx;

	if (!value)
		return 0;
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	return ext && X509_add_ext(x, ext, -1) == 1 ? 0 : -1;
}

/* Signed by issuer with its key, for the key `of`. 0, or -1 (without memory). */
static inline int odd_make(struct cert *ret, const struct odd *odd, const struct key *of,
			   const struct cert *issuer_der, const struct key *issuer_key)
{
	const unsigned char *p = issuer_der->der;
	_cleanup_(X509_free_p) X509 *issuer = d2i_X509(NULL, &p, (long)issuer_der->len);
	_cleanup_(X509_free_p) X509 *x = X509_new();
	_cleanup_(EVP_PKEY_free_p) EVP_PKEY *other = NULL;
	unsigned char *to = ret->der;

	if (odd->not_ed25519)
		other = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	if (!issuer || !x || (odd->not_ed25519 && !other) ||
	    X509_set_version(x, X509_VERSION_3) != 1 ||
	    X509_set_pubkey(x, other ? other : key_openssl(of)) != 1 ||
	    ASN1_INTEGER_set(X509_get_serialNumber(x), 77) != 1 ||
	    !X509_gmtime_adj(X509_getm_notBefore(x), odd->from) ||
	    !X509_gmtime_adj(X509_getm_notAfter(x), odd->until) ||
	    X509_set_issuer_name(x, X509_get_subject_name(issuer)) != 1 ||
	    odd_add(x, issuer, NID_basic_constraints, odd->constraints) < 0 ||
	    odd_add(x, issuer, NID_key_usage, odd->usage) < 0 ||
	    (odd->twice && odd_add(x, issuer, NID_basic_constraints, odd->constraints) < 0) ||
	    odd_add(x, issuer, NID_ext_key_usage, odd->ext_usage) < 0 ||
	    odd_add(x, issuer, NID_subject_alt_name, odd->san) < 0 ||
	    odd_add(x, issuer, NID_authority_key_identifier, "keyid:always") < 0 ||
	    X509_sign(x, key_openssl(issuer_key), NULL) <= 0 ||
	    i2d_X509(x, NULL) > (int)sizeof(ret->der))
		return -1;
	ret->len = (size_t)i2d_X509(x, &to);
	return 0;
}

#endif
