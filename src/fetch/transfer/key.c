/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/key.h"

#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "wire/name/checksum.h"

#define KEY_RSA_BITS_MIN 2048
#define KEY_RSA_BITS_MAX 16384

int key_prepare(void)
{
	return OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 ? 0 : -ENOMEM;
}

int key_decode(struct buf *ret, const char *text, size_t max)
{
	size_t len = strlen(text), n = 0, padding = 0;
	_cleanup_str_ char *plain = NULL;
	unsigned char last[5];
	uint8_t *room;
	int r;

	if (len > 4 * (max / 3 + 1))
		return -EFBIG;
	plain = malloc(len + 1);
	if (!plain)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		if (text[i] != '\n')
			plain[n++] = text[i];
	while (padding < 2 && n > padding && plain[n - 1 - padding] == '=')
		padding++;
	/* The decoder forgives blanks and padding in the midst. */
	plain[n] = '\0';
	if (!n || n % 4 ||
	    strspn(plain, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			  "0123456789+/") != n - padding)
		return -EINVAL;
	r = buf_reserve(ret, n / 4 * 3, &room);
	if (r < 0)
		return r;
	if (EVP_DecodeBlock(room, (const unsigned char *)plain, (int)n) != (int)(n / 4 * 3))
		return -EINVAL;
	/* Bits that stand for nothing are none of its last letter's. */
	(void)EVP_EncodeBlock(last, room + n / 4 * 3 - 3, (int)(3 - padding));
	if (memcmp(last, plain + n - 4, 4) != 0)
		return -EINVAL;
	buf_added(ret, n / 4 * 3 - padding);
	return 0;
}

static bool key_is_taken(EVP_PKEY *key)
{
	int bits = EVP_PKEY_get_bits(key);

	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA:
		return bits >= KEY_RSA_BITS_MIN && bits <= KEY_RSA_BITS_MAX;
	case EVP_PKEY_EC:
		return bits >= 256;
	case EVP_PKEY_ED25519:
		return true;
	default:
		return false;
	}
}

int key_read(void **ret, const void *pem, size_t len, struct error *err)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)MIN(len, (size_t)INT_MAX));
	EVP_PKEY *key;

	if (!bio)
		return error_set(err, -ENOMEM, "a key");
	key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
	BIO_free(bio);
	if (!key)
		return error_refuse(err, ERROR_INVALID, "no public key in PEM");
	if (!key_is_taken(key)) {
		EVP_PKEY_free(key);
		return error_refuse(err, ERROR_INVALID,
				    "a key that is not taken: ECDSA of at least 256 bits, Ed25519, "
				    "and RSA of %d to %d bits are",
				    KEY_RSA_BITS_MIN, KEY_RSA_BITS_MAX);
	}
	*ret = key;
	return 0;
}

int key_fingerprint(void *key, char ret[DIGEST_SIZE])
{
	unsigned char *der = NULL;
	int len = i2d_PUBKEY(key, &der);
	struct checksum h;

	if (len <= 0)
		return -ENOMEM;
	checksum_start(&h);
	checksum_add(&h, der, (size_t)len);
	checksum_end(&h, ret);
	OPENSSL_free(der);
	return 0;
}

void key_free(void *key)
{
	EVP_PKEY_free(key);
}

/* Ed25519 signs the data, the others their SHA-256. */
bool key_has_signed(void *key, const void *data, size_t len, const struct buf *proof)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const EVP_MD *md = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
	bool ok;

	ok = context && EVP_DigestVerifyInit(context, NULL, md, NULL, key) == 1 &&
	     EVP_DigestVerify(context, buf_data(proof), proof->len, data, len) == 1;
	EVP_MD_CTX_free(context);
	return ok;
}
