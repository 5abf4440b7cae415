/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who is at the other end. OpenSSL holds signatures, times and extensions against each other
 * (X509_V_FLAG_X509_STRICT), with the certificates of the bundle as the only roots; here follows
 * what SPIFFE asks of a leaf, and whether it is the one leaf that may be there. No other name of
 * the certificate counts: the subject is not looked at.
 */

#include <errno.h>
#include <string.h>

#include "identity/cert.h"
#include "identity/openssl.h"
#include "wire/spiffe.h"

/* The leaf and its root: nobody in this house signs by way of another. */
#define VERIFY_CHAIN_LEN 2

int verify_store_new(X509_STORE **ret, const uint8_t *bundle, size_t len, struct error *err)
{
	_cleanup_(X509_STORE_free_p) X509_STORE *store = X509_STORE_new();
	const unsigned char *p = bundle;

	if (!store)
		return openssl_error(err, -ENOMEM, "make a trust bundle");
	if (len == 0)
		return error_refuse(err, ERROR_INVALID, "an empty trust bundle");
	while (p < bundle + len) {
		_cleanup_(X509_free_p) X509 *x = d2i_X509(NULL, &p, (long)(bundle + len - p));

		if (!x)
			return error_refuse(err, ERROR_INVALID,
					    "a trust bundle is certificates in DER");
		if (X509_STORE_add_cert(store, x) != 1)
			return openssl_error(err, -ENOMEM, "make a trust bundle");
	}
	*ret = TAKE_PTR(store);
	return 0;
}

static int verify_usage(X509 *leaf, struct error *err)
{
	int at = X509_get_ext_by_NID(leaf, NID_key_usage, -1);
	uint32_t usage = X509_get_key_usage(leaf), ext = X509_get_extended_key_usage(leaf);
	uint32_t flags = X509_get_extension_flags(leaf);

	if (flags & (EXFLAG_INVALID | EXFLAG_CA))
		return error_refuse(err, ERROR_DENIED,
				    "its certificate is that of a CA, or broken");
	if (!(flags & EXFLAG_KUSAGE) || at < 0 ||
	    !X509_EXTENSION_get_critical(X509_get_ext(leaf, at)) || usage != KU_DIGITAL_SIGNATURE)
		return error_refuse(err, ERROR_DENIED,
				    "its certificate is not for signatures alone");
	if (!(flags & EXFLAG_XKUSAGE) || (ext & XKU_SSL_SERVER) == 0 || (ext & XKU_SSL_CLIENT) == 0)
		return error_refuse(err, ERROR_DENIED,
				    "its certificate is not for servers and clients");
	return 0;
}

static int verify_algorithms(X509 *leaf, struct error *err)
{
	EVP_PKEY *pkey = X509_get0_pubkey(leaf);

	if (X509_get_version(leaf) != X509_VERSION_3 || !pkey ||
	    EVP_PKEY_get_base_id(pkey) != EVP_PKEY_ED25519 ||
	    X509_get_signature_nid(leaf) != NID_ED25519)
		return error_refuse(err, ERROR_DENIED, "its certificate is not made with Ed25519");
	return 0;
}

int verify_name(X509 *x, const char *id, struct error *err)
{
	_cleanup_(GENERAL_NAMES_free_p) GENERAL_NAMES *names = NULL;
	const ASN1_IA5STRING *text;
	struct spiffe s;
	const char *uri;
	size_t len;
	int kind;

	names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	if (!names || sk_GENERAL_NAME_num(names) != 1)
		return error_refuse(err, ERROR_DENIED, "its certificate has not exactly one name");
	text = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &kind);
	if (kind != GEN_URI)
		return error_refuse(err, ERROR_DENIED, "the name in its certificate is no URI");
	uri = (const char *)ASN1_STRING_get0_data(text);
	len = (size_t)ASN1_STRING_length(text);
	if (spiffe_parse(&s, uri, len, NULL) < 0)
		return error_refuse(err, ERROR_DENIED,
				    "the name in its certificate is no SPIFFE id");
	if (len != strlen(id) || memcmp(uri, id, len) != 0)
		return error_refuse(err, ERROR_DENIED, "it is %.*s and not %.200s",
				    (int)MIN(len, (size_t)200), uri, id);
	return 0;
}

int verify_run(X509_STORE_CTX *ctx, const char *id, struct error *err)
{
	X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
	X509 *leaf = X509_STORE_CTX_get0_cert(ctx);
	int r;

	if (!leaf)
		return error_refuse(err, ERROR_DENIED, "it has no certificate");
	(void)X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	X509_VERIFY_PARAM_set_depth(param, 0);
	if (X509_verify_cert(ctx) != 1)
		return error_refuse(err, ERROR_DENIED, "its certificate does not hold: %s",
				    X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
	if (sk_X509_num(X509_STORE_CTX_get0_chain(ctx)) != VERIFY_CHAIN_LEN)
		return error_refuse(err, ERROR_DENIED, "its certificate is none of a CA's");
	r = verify_algorithms(leaf, err);
	if (r == 0)
		r = verify_usage(leaf, err);
	return r == 0 ? verify_name(leaf, id, err) : r;
}
