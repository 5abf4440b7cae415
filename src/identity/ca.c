/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/ca.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "identity/openssl.h"
#include "wire/name/spiffe.h"

#define CA_FILE "ca"
#define CA_FILE_NEW "ca.new"
/* A version of the file, the private key, the certificate. */
#define CA_MAGIC "nacre-ca-1\n"
#define CA_MAGIC_LEN (sizeof(CA_MAGIC) - 1)
#define CA_HEAD (CA_MAGIC_LEN + KEY_SIZE)

/* What a clock may be behind at first start. */
#define CA_BACKDATE_SECONDS 3600
/* 2024-01-01: a clock before that has not been set since the machine started. */
#define CA_CLOCK_MIN UINT64_C(1704067200)
/* 9999-12-31: the last day that a certificate can name. */
#define CA_CLOCK_MAX (UINT64_C(253402214400) - CERT_CA_SECONDS)

struct ca {
	struct key *key;
	struct cert root;
	uint64_t not_after;
	char id[SPIFFE_SIZE]; /* of the node */
};

struct ca *ca_free(struct ca *ca)
{
	if (!ca)
		return NULL;
	ca->key = key_free(ca->key);
	free(ca);
	return NULL;
}

const struct cert *ca_root(const struct ca *ca)
{
	return &ca->root;
}

/* A private key leaves no copy in memory that was given back. */
static void ca_file_done(struct buf *b)
{
	if (b->base)
		key_wipe(b->base, b->size);
	buf_done(b);
}

static int ca_write(int dir_fd, const struct buf *content, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	fd = sysio_openat(dir_fd, CA_FILE_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			  0600);
	if (fd < 0)
		return error_set(err, -errno, "make " CA_FILE_NEW);
	r = fd_write_full(fd, buf_data(content), content->len);
	if (r < 0)
		return error_set(err, r, "write " CA_FILE_NEW);
	if (sysio_fsync(fd) < 0)
		return error_set(err, -errno, "write " CA_FILE_NEW " to disk");
	if (sysio_renameat(dir_fd, CA_FILE_NEW, dir_fd, CA_FILE) < 0)
		return error_set(err, -errno, "name " CA_FILE);
	if (sysio_fsync(dir_fd) < 0)
		return error_set(err, -errno, "write the directory of " CA_FILE " to disk");
	return 0;
}

static int ca_domain_id(char ret[SPIFFE_SIZE], const char *domain)
{
	return str_printf(ret, SPIFFE_SIZE, "spiffe://%s", domain);
}

/* A root that is made with a wrong clock ends, or begins, when the right time is known. */
static int ca_check_clock(uint64_t now, struct error *err)
{
	if (now >= CA_CLOCK_MIN && now <= CA_CLOCK_MAX)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "no certificate authority is made while the clock of this node is "
			    "before 2024 or after 9989 (set the clock)");
}

/* From nothing: makes key, certificate and file. */
static int ca_make(struct ca *ca, int dir_fd, const char *domain, uint64_t now, struct error *err)
{
	_cleanup_(ca_file_done) struct buf content = BUF_INIT;
	char id[SPIFFE_SIZE];
	const struct cert_request q = { .id = id,
					.not_before = now - CA_BACKDATE_SECONDS,
					.not_after = now + CERT_CA_SECONDS };
	uint8_t secret[KEY_SIZE];
	int r;

	r = ca_check_clock(now, err);
	if (r == 0)
		r = ca_domain_id(id, domain);
	if (r >= 0)
		r = key_new(&ca->key, err);
	if (r == 0)
		r = cert_make_root(&ca->root, ca->key, &q, err);
	if (r == 0)
		r = key_private(ca->key, secret, err);
	if (r < 0)
		return r;
	ca->not_after = q.not_after;
	r = buf_add_str(&content, CA_MAGIC);
	if (r == 0)
		r = buf_add(&content, secret, sizeof(secret));
	if (r == 0)
		r = buf_add(&content, ca->root.der, ca->root.len);
	key_wipe(secret, sizeof(secret));
	return r < 0 ? error_set(err, r, "write " CA_FILE) : ca_write(dir_fd, &content, err);
}

/* The certificate must be this key's, valid now and of this trust domain: it is held to that by
 * issuing with it. */
static int ca_check(const struct ca *ca, const char *domain, uint64_t now, struct error *err)
{
	_cleanup_(X509_STORE_CTX_free_p) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	_cleanup_(X509_STORE_free_p) X509_STORE *store = NULL;
	_cleanup_(X509_free_p) X509 *leaf = NULL, *root = NULL;
	char domain_id[SPIFFE_SIZE];
	uint8_t public[KEY_SIZE];
	const struct cert_request q = {
		.key = public, .id = ca->id, .not_before = now - 1, .not_after = now + 1
	};
	const unsigned char *p;
	struct cert c;
	int r;

	r = cert_check_key(ca->root.der, ca->root.len, ca->key, err);
	if (r == 0)
		r = verify_store_new(&store, ca->root.der, ca->root.len, err);
	if (r == 0)
		r = key_public(ca->key, public, err);
	if (r == 0)
		r = cert_make_leaf(&c, ca->key, &ca->root, &q, err);
	if (r < 0)
		return r;
	p = c.der;
	leaf = d2i_X509(NULL, &p, (long)c.len);
	p = ca->root.der;
	root = d2i_X509(NULL, &p, (long)ca->root.len);
	if (!leaf || !root || !ctx || X509_STORE_CTX_init(ctx, store, leaf, NULL) != 1)
		return openssl_error(err, -ENOMEM, "check a certificate");
	X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), (time_t)now);
	r = ca_domain_id(domain_id, domain);
	if (r >= 0)
		r = verify_name(root, domain_id, err);
	if (r < 0)
		return r;
	/* A chain is not held against the signature of its own root. */
	if (X509_verify(root, key_openssl(ca->key)) != 1)
		return openssl_error(err, -EBADMSG, "check its certificate");
	return verify_run(ctx, ca->id, err);
}

static int ca_parse(struct ca *ca, const struct buf *content, const char *domain, uint64_t now,
		    struct error *err)
{
	const uint8_t *p = buf_data(content);
	uint64_t from;
	int r;

	if (content->len <= CA_HEAD || memcmp(p, CA_MAGIC, CA_MAGIC_LEN) != 0 ||
	    content->len - CA_HEAD > sizeof(ca->root.der))
		return error_refuse(err, ERROR_PRECONDITION, "it is cut short, or something else");
	ca->root.len = content->len - CA_HEAD;
	memcpy(ca->root.der, p + CA_HEAD, ca->root.len);
	r = key_load(&ca->key, p + CA_MAGIC_LEN, err);
	if (r == 0)
		r = cert_times(ca->root.der, ca->root.len, &from, &ca->not_after, err);
	return r == 0 ? ca_check(ca, domain, now, err) : r;
}

/* Whoever else could read the key may have kept it. */
static int ca_check_file(int fd, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at " CA_FILE);
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

static int ca_read(struct ca *ca, int dir_fd, const char *domain, uint64_t now, struct error *err)
{
	_cleanup_(ca_file_done) struct buf content = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	int r;

	fd = sysio_openat(dir_fd, CA_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : error_set(err, -errno, "open " CA_FILE);
	r = ca_check_file(fd, err);
	if (r == 0) {
		r = fd_read_all(fd, CA_HEAD + CERT_SIZE_MAX, &content);
		if (r < 0 && r != -EFBIG)
			return error_set(err, r, "read " CA_FILE);
		r = r < 0 ? error_refuse(err, ERROR_PRECONDITION, "it is too long")
			  : ca_parse(ca, &content, domain, now, err);
	}
	if (r == 0 || r == -ENOMEM)
		return r;
	if (err)
		err->kind = ERROR_PRECONDITION;
	return error_wrap(err, r,
			  "the file \"" CA_FILE "\" of this node's certificate authority cannot be "
			  "used (moved away, a new one is made, and instances in virtual machines "
			  "that run are lost)");
}

int ca_open(struct ca **ret, int dir_fd, const char *domain, const char *node, uint64_t now,
	    struct error *err)
{
	_cleanup_(ca_freep) struct ca *ca = calloc(1, sizeof(*ca));
	int r;

	if (!ca)
		return error_set(err, -ENOMEM, "open the certificate authority");
	r = spiffe_format(ca->id, domain, node, NULL, err);
	if (r < 0)
		return r;
	if (sysio_unlinkat(dir_fd, CA_FILE_NEW, 0) < 0 && errno != ENOENT)
		return error_set(err, -errno, "remove " CA_FILE_NEW);
	r = ca_read(ca, dir_fd, domain, now, err);
	if (r == -ENOENT && !ca->key)
		r = ca_make(ca, dir_fd, domain, now, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ca);
	return 0;
}

/* For this node and what is below it, and for users of its trust domain. */
static bool ca_may_sign(const struct ca *ca, const char *id)
{
	size_t len = strlen(ca->id);
	struct spiffe s;

	if (strncmp(id, ca->id, len) == 0 && (id[len] == '\0' || id[len] == '/'))
		return true;
	return spiffe_same_domain(id, ca->id) && spiffe_parse(&s, id, strlen(id), NULL) == 0 &&
	       spiffe_is_user(&s);
}

int ca_issue(const struct ca *ca, const struct cert_request *request, struct cert *ret,
	     struct error *err)
{
	if (!ca_may_sign(ca, request->id))
		return error_refuse(err, ERROR_DENIED, "\"%.200s\" is no id of this node",
				    request->id);
	if (request->not_after > ca->not_after)
		return error_refuse(err, ERROR_DENIED,
				    "the certificate authority ends before that certificate");
	return cert_make_leaf(ret, ca->key, &ca->root, request, err);
}
