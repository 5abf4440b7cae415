/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/ca_given.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "identity/openssl.h"

#define GIVEN_FILE_MAX 65536
#define GIVEN_KEY "the private key (identity.ca_key)"
#define GIVEN_CERT "the certificate (identity.ca_certificate)"

static void given_text_done(struct buf *b)
{
	if (b->base)
		key_wipe(b->base, b->size);
	buf_done(b);
}

int ca_given_check_file(int fd, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at it");
	if (!S_ISREG(st.st_mode))
		return error_refuse(err, ERROR_PRECONDITION, "it is not a regular file");
	if (st.st_uid != geteuid())
		return error_refuse(err, ERROR_PRECONDITION,
				    "it belongs to user %ju, who can read the key",
				    (uintmax_t)st.st_uid);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return error_refuse(err, ERROR_PRECONDITION,
				    "its mode is %04o and others may have read or changed the key "
				    "(set 0600 if nobody has)",
				    (unsigned)st.st_mode & 07777);
	return 0;
}

static int given_read_file(int fd, const char *what, struct buf *text, struct error *err)
{
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, GIVEN_FILE_MAX, text);

	return r < 0 ? error_set(err, r, "read %s", what) : 0;
}

/* Nobody is asked for a passphrase. */
static int given_passphrase(char *to, int size, int writes, void *userdata)
{
	(void)to;
	(void)size;
	(void)writes;
	(void)userdata;
	return -1;
}

static int given_read_key(int fd, struct key **ret, struct error *err)
{
	_cleanup_(given_text_done) struct buf text = BUF_INIT;
	_cleanup_(EVP_PKEY_free_p) EVP_PKEY *pkey = NULL;
	_cleanup_(BIO_free_all_p) BIO *bio = NULL;
	uint8_t raw[KEY_SIZE];
	size_t len = sizeof(raw);
	int r = ca_given_check_file(fd, err);

	if (r < 0)
		return error_wrap(err, r, GIVEN_KEY);
	r = given_read_file(fd, GIVEN_KEY, &text, err);
	if (r < 0)
		return r;
	bio = BIO_new_mem_buf(buf_data(&text), (int)text.len);
	if (bio)
		pkey = PEM_read_bio_PrivateKey(bio, NULL, given_passphrase, NULL);
	ERR_clear_error();
	if (!pkey)
		return error_refuse(err, ERROR_PRECONDITION,
				    GIVEN_KEY " is none in PEM, or is encrypted");
	if (EVP_PKEY_get_base_id(pkey) != EVP_PKEY_ED25519 ||
	    EVP_PKEY_get_raw_private_key(pkey, raw, &len) != 1 || len != sizeof(raw))
		return error_refuse(err, ERROR_PRECONDITION,
				    GIVEN_KEY " is not of Ed25519 (openssl genpkey -algorithm "
					      "ed25519 makes one)");
	r = key_load(ret, raw, err);
	key_wipe(raw, sizeof(raw));
	return r;
}

/* What a root must say of itself; its times and what it may sign are seen by signing with it. */
static int given_check_root(X509 *x, const struct key *key, struct error *err)
{
	uint32_t flags = X509_get_extension_flags(x);
	EVP_PKEY *pkey = X509_get0_pubkey(x);

	if (!pkey || EVP_PKEY_eq(pkey, key_openssl(key)) != 1)
		return error_refuse(err, ERROR_PRECONDITION,
				    GIVEN_KEY " is not that of " GIVEN_CERT);
	if (!(flags & EXFLAG_CA))
		return error_refuse(err, ERROR_PRECONDITION,
				    GIVEN_CERT " is not that of a CA: it has no basicConstraints "
					       "with CA:TRUE");
	if (!(flags & EXFLAG_KUSAGE) || !(X509_get_key_usage(x) & KU_KEY_CERT_SIGN))
		return error_refuse(err, ERROR_PRECONDITION,
				    GIVEN_CERT " may not sign: its keyUsage has no keyCertSign");
	if (!X509_get0_subject_key_id(x))
		return error_refuse(err, ERROR_PRECONDITION,
				    GIVEN_CERT " has no subjectKeyIdentifier");
	if (X509_verify(x, key_openssl(key)) != 1) {
		ERR_clear_error();
		return error_refuse(err, ERROR_PRECONDITION,
				    GIVEN_CERT " is not signed by its own key: an intermediate "
					       "cannot be the root that clients trust");
	}
	return 0;
}

static int given_read_root(int fd, const struct key *key, struct cert *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	_cleanup_(BIO_free_all_p) BIO *bio = NULL;
	_cleanup_(X509_free_p) X509 *x = NULL;
	unsigned char *p = ret->der;
	int r = given_read_file(fd, GIVEN_CERT, &text, err);
	int len;

	if (r < 0)
		return r;
	bio = BIO_new_mem_buf(buf_data(&text), (int)text.len);
	if (bio)
		x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	ERR_clear_error();
	if (!x)
		return error_refuse(err, ERROR_PRECONDITION, GIVEN_CERT " is none in PEM");
	len = i2d_X509(x, NULL);
	if (len <= 0 || len > CA_GIVEN_MAX)
		return error_refuse(err, ERROR_PRECONDITION, GIVEN_CERT " is longer than %d bytes",
				    CA_GIVEN_MAX);
	ret->len = (size_t)i2d_X509(x, &p);
	return given_check_root(x, key, err);
}

int ca_given_read(int key_fd, int cert_fd, struct key **ret_key, struct cert *ret_root,
		  struct error *err)
{
	_cleanup_key_ struct key *key = NULL;
	int r = given_read_key(key_fd, &key, err);

	if (r == 0)
		r = given_read_root(cert_fd, key, ret_root, err);
	if (r == 0)
		*ret_key = TAKE_PTR(key);
	return r;
}
