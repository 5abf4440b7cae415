/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/key.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdlib.h>

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
		return openssl_error(err, -ENOMEM, "make an Ed25519 key");
	k = malloc(sizeof(*k));
	if (!k) {
		EVP_PKEY_free(pkey);
		return error_set(err, -ENOMEM, "make an Ed25519 key");
	}
	*k = (struct key){ .pkey = pkey };
	*ret = k;
	return 0;
}

int key_new(struct key **ret, struct error *err)
{
	return key_of(ret, EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), err);
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

void key_wipe(void *data, size_t len)
{
	OPENSSL_cleanse(data, len);
}
