/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/key.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "identity/openssl.h"

struct key {
	EVP_PKEY *pkey;
};

int identity_begin(struct error *err)
{
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
				     OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
			     NULL) != 1)
		return openssl_error(err, -ENOMEM, "start OpenSSL");
	return 0;
}

int openssl_error(struct error *err, int r, const char *what)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	if (!reason)
		return error_set(err, r, "%s", what);
	(void)error_refuse(err, ERROR_FAULT, "%s: %s", what, reason);
	if (err)
		err->code = r;
	return r;
}

EVP_PKEY *key_openssl(const struct key *k)
{
	return k->pkey;
}

static int key_of(struct key **ret, EVP_PKEY *pkey, struct error *err)
{
	struct key *k;

	if (!pkey)
		return openssl_error(err, -ENOMEM, "make a key");
	k = malloc(sizeof(*k));
	if (!k) {
		EVP_PKEY_free(pkey);
		return error_set(err, -ENOMEM, "make a key");
	}
	*k = (struct key){ .pkey = pkey };
	*ret = k;
	return 0;
}

int key_new(struct key **ret, struct error *err)
{
	return key_of(ret, EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), err);
}

int key_new_user(struct key **ret, struct error *err)
{
	return key_of(ret, EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"), err);
}

int key_load(struct key **ret, const uint8_t raw[KEY_SIZE], struct error *err)
{
	return key_of(ret, EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw, KEY_SIZE),
		      err);
}

struct key *key_free(struct key *k)
{
	if (!k)
		return NULL;
	EVP_PKEY_free(k->pkey);
	free(k);
	return NULL;
}

int key_public(const struct key *k, uint8_t ret[KEY_SIZE], struct error *err)
{
	size_t len = KEY_SIZE;

	if (EVP_PKEY_get_raw_public_key(k->pkey, ret, &len) != 1 || len != KEY_SIZE)
		return openssl_error(err, -ENOMEM, "read an Ed25519 key");
	return 0;
}

int key_private(const struct key *k, uint8_t ret[KEY_SIZE], struct error *err)
{
	size_t len = KEY_SIZE;

	if (EVP_PKEY_get_raw_private_key(k->pkey, ret, &len) != 1 || len != KEY_SIZE)
		return openssl_error(err, -ENOMEM, "read an Ed25519 key");
	return 0;
}

int key_spki(const struct key *k, uint8_t ret[KEY_SPKI_MAX], struct error *err)
{
	unsigned char *p = ret;
	int len = i2d_PUBKEY(k->pkey, NULL);

	if (len <= 0 || len > KEY_SPKI_MAX)
		return openssl_error(err, -ENOMEM, "write a public key");
	return i2d_PUBKEY(k->pkey, &p);
}

bool key_is_known(EVP_PKEY *pkey)
{
	char group[32] = "";

	if (!pkey)
		return false;
	if (EVP_PKEY_get_base_id(pkey) == EVP_PKEY_ED25519)
		return true;
	return EVP_PKEY_get_base_id(pkey) == EVP_PKEY_EC &&
	       EVP_PKEY_get_group_name(pkey, group, sizeof(group), NULL) == 1 &&
	       strcmp(group, "prime256v1") == 0;
}

int key_read_spki(EVP_PKEY **ret, const uint8_t *spki, size_t len, struct error *err)
{
	_cleanup_(EVP_PKEY_free_p) EVP_PKEY *pkey = NULL;
	const unsigned char *p = spki;

	if (len <= KEY_SPKI_MAX)
		pkey = d2i_PUBKEY(NULL, &p, (long)len);
	ERR_clear_error();
	if (!pkey || p != spki + len || !key_is_known(pkey))
		return error_refuse(err, ERROR_INVALID,
				    "this is no public key of P-256 or Ed25519");
	*ret = TAKE_PTR(pkey);
	return 0;
}

int key_check_spki(const uint8_t *spki, size_t len, struct error *err)
{
	_cleanup_(EVP_PKEY_free_p) EVP_PKEY *pkey = NULL;

	return key_read_spki(&pkey, spki, len, err);
}

int key_pkcs8(const struct key *k, uint8_t ret[KEY_PKCS8_MAX], struct error *err)
{
	_cleanup_(BIO_free_all_p) BIO *bio = BIO_new(BIO_s_secmem());
	char *data = NULL;
	long len;

	if (!bio || i2d_PKCS8PrivateKey_bio(bio, k->pkey, NULL, NULL, 0, NULL, NULL) != 1)
		return openssl_error(err, -ENOMEM, "write a private key");
	len = BIO_get_mem_data(bio, &data);
	if (len <= 0 || len > KEY_PKCS8_MAX)
		return error_set(err, -EFBIG, "write a private key");
	memcpy(ret, data, (size_t)len);
	return (int)len;
}

int key_pem(const struct key *k, char ret[KEY_PEM_MAX], struct error *err)
{
	_cleanup_(BIO_free_all_p) BIO *bio = BIO_new(BIO_s_secmem());
	char *text = NULL;
	long len;

	if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, k->pkey, NULL, NULL, 0, NULL, NULL) != 1)
		return openssl_error(err, -ENOMEM, "write a private key");
	len = BIO_get_mem_data(bio, &text);
	if (len <= 0 || len >= KEY_PEM_MAX)
		return error_set(err, -EFBIG, "write a private key");
	memcpy(ret, text, (size_t)len);
	ret[len] = '\0';
	return 0;
}

void key_wipe(void *data, size_t len)
{
	OPENSSL_cleanse(data, len);
}
