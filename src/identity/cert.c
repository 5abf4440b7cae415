/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/cert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <string.h>

#include "base/text/str.h"
#include "identity/openssl.h"
#include "wire/name/spiffe.h"

#define CERT_CA_NAME "nacre node CA"

/* What is said in both kinds. */
struct cert_kind {
	const char *basic_constraints, *key_usage, *ext_key_usage;
	bool is_ca;
};

static const struct cert_kind cert_leaf = {
	.basic_constraints = "critical,CA:FALSE",
	.key_usage = "critical,digitalSignature",
	.ext_key_usage = "serverAuth,clientAuth",
};

static const struct cert_kind cert_root = {
	.basic_constraints = "critical,CA:TRUE,pathlen:0",
	.key_usage = "critical,keyCertSign,cRLSign",
	.is_ca = true,
};

static int cert_set_serial(X509 *x, struct error *err)
{
	_cleanup_(BN_free_p) BIGNUM *n = NULL;
	uint8_t bytes[CERT_SERIAL_SIZE];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return openssl_error(err, -EIO, "draw a serial number");
	/* Positive, and never 0. */
	bytes[0] &= 0x7f;
	bytes[CERT_SERIAL_SIZE - 1] |= 1;
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	if (!n || !BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)))
		return openssl_error(err, -ENOMEM, "set a serial number");
	return 0;
}

static int cert_set_times(X509 *x, const struct cert_request *q, struct error *err)
{
	if (q->not_before >= q->not_after || q->not_after > INT64_MAX)
		return error_refuse(err, ERROR_INVALID, "a certificate that ends before it begins");
	if (!ASN1_TIME_set(X509_getm_notBefore(x), (time_t)q->not_before) ||
	    !ASN1_TIME_set(X509_getm_notAfter(x), (time_t)q->not_after))
		return openssl_error(err, -ENOMEM, "set the times of a certificate");
	return 0;
}

static int cert_add_word(X509 *x, X509V3_CTX *ctx, int nid, const char *value, struct error *err)
{
	_cleanup_(X509_EXTENSION_free_p) X509_EXTENSION *ext = NULL;

	ext = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
	if (!ext || X509_add_ext(x, ext, -1) != 1)
		return openssl_error(err, -ENOMEM, "add an extension to a certificate");
	return 0;
}

static int cert_push_name(GENERAL_NAMES *names, int type, const void *data, size_t len)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_STRING *text =
		ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);

	if (!text || !name || ASN1_STRING_set(text, data, (int)len) != 1) {
		ASN1_STRING_free(text);
		GENERAL_NAME_free(name);
		return -ENOMEM;
	}
	GENERAL_NAME_set0_value(name, type, text);
	if (sk_GENERAL_NAME_push(names, name) <= 0) {
		GENERAL_NAME_free(name);
		return -ENOMEM;
	}
	return 0;
}

static bool cert_is_dns_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
	size_t len = strlen(name);

	return len > 0 && len <= CERT_NAME_MAX && strspn(name, letters) == len && name[0] != '.' &&
	       name[0] != '-' && name[len - 1] != '.' && !strstr(name, "..");
}

/* One name by which a listener is reached. */
static int cert_push_host(GENERAL_NAMES *names, const char *name, struct error *err)
{
	uint8_t bytes[16];
	int r;

	if (inet_pton(AF_INET, name, bytes) == 1)
		r = cert_push_name(names, GEN_IPADD, bytes, 4);
	else if (inet_pton(AF_INET6, name, bytes) == 1)
		r = cert_push_name(names, GEN_IPADD, bytes, 16);
	else if (cert_is_dns_name(name))
		r = cert_push_name(names, GEN_DNS, name, strlen(name));
	else
		return error_refuse(err, ERROR_INVALID,
				    "\"%.100s\" is no DNS name in small letters and no address",
				    name);
	return r < 0 ? openssl_error(err, r, "name a certificate") : 0;
}

static int cert_push_hosts(GENERAL_NAMES *names, const char *list, struct error *err)
{
	char one[CERT_NAME_MAX + 1];
	unsigned n = 0;

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		size_t len = strcspn(at, ",");
		int r;

		if (len >= sizeof(one) || ++n > CERT_NAMES_MAX)
			return error_refuse(err, ERROR_INVALID, "too many names, or too long ones");
		memcpy(one, at, len);
		one[len] = '\0';
		r = cert_push_host(names, one, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Not by the words of OpenSSL's configuration, in which an id could mean something else. */
static int cert_add_names(X509 *x, const struct cert_request *q, bool critical, struct error *err)
{
	_cleanup_(GENERAL_NAMES_free_p) GENERAL_NAMES *names = GENERAL_NAMES_new();
	int r;

	if (!names || cert_push_name(names, GEN_URI, q->id, strlen(q->id)) < 0)
		return openssl_error(err, -ENOMEM, "name a certificate");
	r = cert_push_hosts(names, q->names, err);
	if (r < 0)
		return r;
	if (X509_add1_ext_i2d(x, NID_subject_alt_name, names, critical, X509V3_ADD_DEFAULT) != 1)
		return openssl_error(err, -ENOMEM, "name a certificate");
	return 0;
}

static int cert_add_extensions(X509 *x, X509 *issuer, const struct cert_kind *kind,
			       const struct cert_request *q, struct error *err)
{
	X509V3_CTX ctx;
	int r;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	r = cert_add_word(x, &ctx, NID_basic_constraints, kind->basic_constraints, err);
	if (r == 0)
		r = cert_add_word(x, &ctx, NID_key_usage, kind->key_usage, err);
	if (r == 0 && kind->ext_key_usage)
		r = cert_add_word(x, &ctx, NID_ext_key_usage, kind->ext_key_usage, err);
	if (r == 0)
		r = cert_add_word(x, &ctx, NID_subject_key_identifier, "hash", err);
	if (r == 0)
		r = cert_add_word(x, &ctx, NID_authority_key_identifier, "keyid:always", err);
	/* RFC 5280: critical where there is no subject. */
	return r == 0 ? cert_add_names(x, q, !kind->is_ca, err) : r;
}

/* The name of a user stands in the subject too, for programs that show that. */
static int cert_set_names(X509 *x, X509 *issuer, const struct cert_kind *kind, const char *id,
			  struct error *err)
{
	const char *user = NULL;
	struct spiffe s;

	if (spiffe_parse(&s, id, strlen(id), NULL) == 0 && spiffe_is_user(&s))
		user = strrchr(id, '/') + 1;
	if (kind->is_ca &&
	    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
				       (const unsigned char *)CERT_CA_NAME, -1, -1, 0) != 1)
		return openssl_error(err, -ENOMEM, "name a CA");
	if (user && X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
					       (const unsigned char *)user, -1, -1, 0) != 1)
		return openssl_error(err, -ENOMEM, "name a user");
	if (X509_set_issuer_name(x, X509_get_subject_name(issuer)) != 1)
		return openssl_error(err, -ENOMEM, "name the issuer of a certificate");
	return 0;
}

static int cert_write(struct cert *ret, X509 *x, struct error *err)
{
	unsigned char *p = ret->der;
	int len = i2d_X509(x, NULL);

	if (len <= 0 || (size_t)len > sizeof(ret->der))
		return openssl_error(err, -EFBIG, "write a certificate");
	ret->len = (size_t)i2d_X509(x, &p);
	return 0;
}

/* issuer NULL: the certificate itself. */
static int cert_make(struct cert *ret, const struct cert_kind *kind, EVP_PKEY *subject_key,
		     X509 *issuer, const struct key *issuer_key, const struct cert_request *q,
		     struct error *err)
{
	_cleanup_(X509_free_p) X509 *x = X509_new();
	int r;

	if (!x || X509_set_version(x, X509_VERSION_3) != 1 || X509_set_pubkey(x, subject_key) != 1)
		return openssl_error(err, -ENOMEM, "make a certificate");
	r = cert_set_serial(x, err);
	if (r == 0)
		r = cert_set_times(x, q, err);
	if (r == 0)
		r = cert_set_names(x, issuer ? issuer : x, kind, q->id, err);
	if (r == 0)
		r = cert_add_extensions(x, issuer ? issuer : x, kind, q, err);
	if (r < 0)
		return r;
	if (X509_sign(x, key_openssl(issuer_key), NULL) <= 0)
		return openssl_error(err, -EIO, "sign a certificate");
	return cert_write(ret, x, err);
}

int cert_make_root(struct cert *ret, const struct key *key, const struct cert_request *request,
		   struct error *err)
{
	struct spiffe s;
	int r;

	r = spiffe_parse(&s, request->id, strlen(request->id), err);
	if (r < 0)
		return r;
	if (s.path_len > 0)
		return error_refuse(err, ERROR_INVALID, "the id of a CA is that of its domain");
	return cert_make(ret, &cert_root, key_openssl(key), NULL, key, request, err);
}

static int cert_parse(X509 **ret, const uint8_t *der, size_t len, struct error *err)
{
	const unsigned char *p = der;

	if (len <= CERT_SIZE_MAX)
		*ret = d2i_X509(NULL, &p, (long)len);
	if (!*ret || p != der + len)
		return error_refuse(err, ERROR_INVALID, "this is no certificate in DER");
	return 0;
}

size_t cert_length(const uint8_t *der, size_t len)
{
	_cleanup_(X509_free_p) X509 *x = NULL;
	const unsigned char *p = der;

	x = d2i_X509(NULL, &p, (long)len);
	ERR_clear_error();
	return x ? (size_t)(p - der) : 0;
}

bool cert_bundle_has(const uint8_t *bundle, size_t len, const uint8_t digest[CERT_DIGEST_SIZE])
{
	for (size_t at = 0, n; at < len; at += n) {
		uint8_t one[EVP_MAX_MD_SIZE];

		n = cert_length(bundle + at, len - at);
		if (n == 0)
			return false;
		if (EVP_Digest(bundle + at, n, one, NULL, EVP_sha256(), NULL) == 1 &&
		    memcmp(one, digest, CERT_DIGEST_SIZE) == 0)
			return true;
	}
	return false;
}

bool cert_bundle_signs(const uint8_t *bundle, size_t bundle_len, const uint8_t *der, size_t len)
{
	_cleanup_(X509_free_p) X509 *x = NULL;
	bool signs = false;

	if (cert_parse(&x, der, len, NULL) < 0)
		return false;
	for (size_t at = 0, n; !signs && at < bundle_len; at += n) {
		_cleanup_(X509_free_p) X509 *root = NULL;

		n = cert_length(bundle + at, bundle_len - at);
		if (n == 0 || cert_parse(&root, bundle + at, n, NULL) < 0)
			return false;
		signs = X509_verify(x, X509_get0_pubkey(root)) == 1;
		ERR_clear_error();
	}
	return signs;
}

static uint64_t cert_life_max(const char *id)
{
	struct spiffe s;

	if (spiffe_parse(&s, id, strlen(id), NULL) == 0 && spiffe_is_user(&s))
		return CERT_USER_SECONDS_MAX;
	return CERT_LEAF_SECONDS_MAX;
}

static int cert_read_key(EVP_PKEY **ret, const struct cert_request *q, struct error *err)
{
	if (q->spki)
		return key_read_spki(ret, q->spki, q->spki_len, err);
	*ret = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, q->key, KEY_SIZE);
	return *ret ? 0 : openssl_error(err, -EINVAL, "read an Ed25519 key");
}

int cert_make_leaf(struct cert *ret, const struct key *ca_key, const struct cert *ca,
		   const struct cert_request *request, struct error *err)
{
	_cleanup_(EVP_PKEY_free_p) EVP_PKEY *pkey = NULL;
	_cleanup_(X509_free_p) X509 *issuer = NULL;
	int r;

	if (!spiffe_is_id(request->id))
		return error_refuse(err, ERROR_INVALID, "\"%.300s\" is no SPIFFE id", request->id);
	if (request->not_after > request->not_before + cert_life_max(request->id))
		return error_refuse(err, ERROR_INVALID, "a certificate lives at most %ju seconds",
				    (uintmax_t)cert_life_max(request->id));
	r = cert_parse(&issuer, ca->der, ca->len, err);
	if (r < 0)
		return r;
	r = cert_read_key(&pkey, request, err);
	if (r < 0)
		return r;
	return cert_make(ret, &cert_leaf, pkey, issuer, ca_key, request, err);
}

int cert_time(uint64_t *ret, const ASN1_TIME *at, struct error *err)
{
	_cleanup_(ASN1_TIME_free_p) ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
	int days = 0, seconds = 0;

	if (!epoch || ASN1_TIME_diff(&days, &seconds, epoch, at) != 1 || days < 0 || seconds < 0)
		return error_refuse(err, ERROR_INVALID, "a certificate with an impossible time");
	*ret = (uint64_t)days * 86400 + (uint64_t)seconds;
	return 0;
}

int cert_times(const uint8_t *der, size_t len, uint64_t *ret_not_before, uint64_t *ret_not_after,
	       struct error *err)
{
	_cleanup_(X509_free_p) X509 *x = NULL;
	uint64_t from, until;
	int r;

	r = cert_parse(&x, der, len, err);
	if (r == 0)
		r = cert_time(&from, X509_get0_notBefore(x), err);
	if (r == 0)
		r = cert_time(&until, X509_get0_notAfter(x), err);
	if (r < 0)
		return r;
	*ret_not_before = from;
	*ret_not_after = until;
	return 0;
}

int cert_check_key(const uint8_t *der, size_t len, const struct key *key, struct error *err)
{
	_cleanup_(X509_free_p) X509 *x = NULL;
	EVP_PKEY *pkey;
	int r;

	r = cert_parse(&x, der, len, err);
	if (r < 0)
		return r;
	pkey = X509_get0_pubkey(x);
	if (!pkey || EVP_PKEY_eq(pkey, key_openssl(key)) != 1)
		return error_refuse(err, ERROR_INVALID, "a certificate for another key");
	return 0;
}

int cert_serial(const X509 *x, uint8_t *ret, struct error *err)
{
	_cleanup_(BN_free_p) BIGNUM *n = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);

	if (!n || BN_is_negative(n) || BN_bn2binpad(n, ret, CERT_SERIAL_SIZE) < 0)
		return openssl_error(err, -EINVAL, "read a serial number");
	return 0;
}

int cert_serial_of(const struct cert *c, uint8_t ret[CERT_SERIAL_SIZE], struct error *err)
{
	_cleanup_(X509_free_p) X509 *x = NULL;
	int r = cert_parse(&x, c->der, c->len, err);

	return r == 0 ? cert_serial(x, ret, err) : r;
}
