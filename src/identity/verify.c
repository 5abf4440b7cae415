/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who is at the other end. OpenSSL holds signatures, times and extensions against each other
 * (X509_V_FLAG_X509_STRICT), with the certificates of the bundle as the only roots; here follows
 * what SPIFFE asks of a leaf, and whether it is the one leaf that may be there. No other name of
 * the certificate counts: the subject is not looked at.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "identity/cert.h"
#include "identity/openssl.h"
#include "wire/name/spiffe.h"

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

/* What users have: a key of either kind. */
static int verify_algorithms_wide(X509 *leaf, struct error *err)
{
	if (X509_get_version(leaf) != X509_VERSION_3 || !key_is_known(X509_get0_pubkey(leaf)) ||
	    X509_get_signature_nid(leaf) != NID_ED25519)
		return error_refuse(err, ERROR_DENIED,
				    "its certificate is not for a key of P-256 or Ed25519");
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

/* OpenSSL reads what no rule of DER allows, and holds the signature against the bytes as they came:
 * one certificate could then be written in two ways. */
static int verify_canonical(X509 *leaf, struct error *err)
{
	_cleanup_(X509_free_p) X509 *copy = X509_dup(leaf);
	unsigned char *was = NULL, *is = NULL;
	int len_was, len_is, r = 0;

	len_was = i2d_X509(leaf, &was);
	if (copy)
		(void)i2d_re_X509_tbs(copy, NULL);
	len_is = copy ? i2d_X509(copy, &is) : -1;
	if (len_was <= 0 || len_is <= 0)
		r = openssl_error(err, -ENOMEM, "read a certificate again");
	else if (len_was != len_is || memcmp(was, is, (size_t)len_was) != 0)
		r = error_refuse(err, ERROR_DENIED, "its certificate is not in DER");
	OPENSSL_free(was);
	OPENSSL_free(is);
	return r;
}

/* The chain, and what both kinds of leaves have in common. */
static int verify_chain(X509_STORE_CTX *ctx, struct error *err)
{
	X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
	X509 *leaf = X509_STORE_CTX_get0_cert(ctx);

	if (!leaf)
		return error_refuse(err, ERROR_DENIED, "it has no certificate");
	(void)X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	X509_VERIFY_PARAM_set_depth(param, 0);
	if (X509_verify_cert(ctx) != 1)
		return error_refuse(err, ERROR_DENIED, "its certificate does not hold: %s",
				    X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
	if (sk_X509_num(X509_STORE_CTX_get0_chain(ctx)) != VERIFY_CHAIN_LEN)
		return error_refuse(err, ERROR_DENIED, "its certificate is none of a CA's");
	if (verify_canonical(leaf, err) < 0)
		return -EACCES;
	return verify_usage(leaf, err);
}

int verify_run(X509_STORE_CTX *ctx, const char *id, struct error *err)
{
	X509 *leaf = X509_STORE_CTX_get0_cert(ctx);
	int r = verify_chain(ctx, err);

	if (r == 0)
		r = verify_algorithms(leaf, err);
	return r == 0 ? verify_name(leaf, id, err) : r;
}

/* The one URI of a leaf, a SPIFFE id. */
static int verify_find_id(X509 *x, char ret[SPIFFE_SIZE], struct spiffe *s, struct error *err)
{
	_cleanup_(GENERAL_NAMES_free_p) GENERAL_NAMES *names = NULL;
	const ASN1_IA5STRING *uri = NULL;
	size_t len;

	names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

		if (name->type != GEN_URI)
			continue;
		if (uri)
			return error_refuse(err, ERROR_DENIED, "its certificate has two ids");
		uri = name->d.uniformResourceIdentifier;
	}
	if (!uri)
		return error_refuse(err, ERROR_DENIED, "its certificate has no SPIFFE id");
	len = (size_t)ASN1_STRING_length(uri);
	if (len >= SPIFFE_SIZE ||
	    spiffe_parse(s, (const char *)ASN1_STRING_get0_data(uri), len, NULL) < 0)
		return error_refuse(err, ERROR_DENIED,
				    "the name in its certificate is no SPIFFE id");
	memcpy(ret, ASN1_STRING_get0_data(uri), len);
	ret[len] = '\0';
	return spiffe_parse(s, ret, len, err);
}

int verify_user(X509_STORE_CTX *ctx, const char *domain, char ret_id[SPIFFE_SIZE],
		struct error *err)
{
	X509 *leaf = X509_STORE_CTX_get0_cert(ctx);
	struct spiffe s;
	int r = verify_chain(ctx, err);

	if (r == 0)
		r = verify_algorithms_wide(leaf, err);
	if (r == 0)
		r = verify_find_id(leaf, ret_id, &s, err);
	if (r < 0)
		return r;
	if (s.domain_len != strlen(domain) || memcmp(s.domain, domain, s.domain_len) != 0 ||
	    !spiffe_is_user(&s))
		return error_refuse(err, ERROR_DENIED, "%.200s is no user of %.200s", ret_id,
				    domain);
	return 0;
}

int verify_host(X509_STORE_CTX *ctx, const char *host, struct error *err)
{
	X509 *leaf = X509_STORE_CTX_get0_cert(ctx);
	uint8_t address[16];
	bool is_address =
		inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
	int r = verify_chain(ctx, err);

	if (r == 0)
		r = verify_algorithms_wide(leaf, err);
	if (r < 0)
		return r;
	if (is_address ? X509_check_ip_asc(leaf, host, 0) == 1
		       : X509_check_host(leaf, host, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT,
					 NULL) == 1)
		return 0;
	X509_STORE_CTX_set_error(ctx, X509_V_ERR_HOSTNAME_MISMATCH);
	return error_refuse(err, ERROR_DENIED, "its certificate is not for the name %.200s", host);
}
