/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/ca.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "identity/ca_given.h"
#include "identity/openssl.h"
#include "wire/name/spiffe.h"

#define CA_FILE "ca"
#define CA_FILE_NEW "ca.new"
/* A version of the file, the private key, the certificate. */
#define CA_MAGIC "nacre-ca-1\n"
#define CA_MAGIC_LEN (sizeof(CA_MAGIC) - 1)
#define CA_HEAD (CA_MAGIC_LEN + KEY_SIZE)
/* Of one with two authorities: the version, and each, the oldest first, as struct ca_entry and its
 * certificate. */
#define CA_MAGIC_TWO "nacre-ca-2\n"
#define CA_FILE_MAX (CA_MAGIC_LEN + CA_AUTHORITIES_MAX * (sizeof(struct ca_entry) + CERT_SIZE_MAX))

/* What a clock may be behind at first start. */
#define CA_BACKDATE_SECONDS 3600
/* 2024-01-01: a clock before that has not been set since the machine started. */
#define CA_CLOCK_MIN UINT64_C(1704067200)
/* 9999-12-31: the last day that a certificate can name. */
#define CA_CLOCK_MAX (UINT64_C(253402214400) - CERT_CA_SECONDS)

/* As it lies in the file; numbers with the least byte first. */
struct ca_entry {
	uint64_t made_at, active_at;
	uint8_t secret[KEY_SIZE];
	uint32_t len; /* of the certificate */
	uint32_t zero;
};

struct authority {
	struct key *key;
	struct cert root;
	uint64_t not_after, made_at, active_at;
};

struct ca {
	struct authority all[CA_AUTHORITIES_MAX]; /* the oldest first */
	size_t n;
	uint8_t bundle[CA_AUTHORITIES_MAX * CERT_SIZE_MAX];
	size_t bundle_len;
	char id[SPIFFE_SIZE]; /* of the node */
};

struct ca *ca_free(struct ca *ca)
{
	if (!ca)
		return NULL;
	for (size_t i = 0; i < CA_AUTHORITIES_MAX; i++)
		ca->all[i].key = key_free(ca->all[i].key);
	free(ca);
	return NULL;
}

const uint8_t *ca_bundle(const struct ca *ca, size_t *ret_len)
{
	*ret_len = ca->bundle_len;
	return ca->bundle;
}

uint64_t ca_rotated_at(const struct ca *ca)
{
	return ca->n > 1 ? ca->all[ca->n - 1].made_at : 0;
}

uint64_t ca_active_at(const struct ca *ca)
{
	return ca->n > 1 ? ca->all[ca->n - 1].active_at : 0;
}

/* A private key leaves no copy in memory that was given back. */
static void ca_file_done(struct buf *b)
{
	if (b->base)
		key_wipe(b->base, b->size);
	buf_done(b);
}

static int ca_write_file(int dir_fd, const struct buf *content, struct error *err)
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

static int ca_put_one(struct buf *content, const struct authority *a, const uint8_t *secret)
{
	int r = buf_add_str(content, CA_MAGIC);

	if (r == 0)
		r = buf_add(content, secret, KEY_SIZE);
	return r == 0 ? buf_add(content, a->root.der, a->root.len) : r;
}

static int ca_put_entry(struct buf *content, const struct authority *a, const uint8_t *secret)
{
	struct ca_entry e = { .made_at = htole64(a->made_at),
			      .active_at = htole64(a->active_at),
			      .len = htole32((uint32_t)a->root.len) };
	int r = content->len > 0 ? 0 : buf_add_str(content, CA_MAGIC_TWO);

	memcpy(e.secret, secret, KEY_SIZE);
	if (r == 0)
		r = buf_add(content, &e, sizeof(e));
	key_wipe(&e, sizeof(e));
	return r == 0 ? buf_add(content, a->root.der, a->root.len) : r;
}

/* The file with the authorities from `first` on. */
static int ca_write(const struct ca *ca, size_t first, int dir_fd, struct error *err)
{
	_cleanup_(ca_file_done) struct buf content = BUF_INIT;
	int r = 0;

	for (size_t i = first; r == 0 && i < ca->n; i++) {
		uint8_t secret[KEY_SIZE];

		r = key_private(ca->all[i].key, secret, err);
		if (r < 0)
			return r;
		r = ca->n - first == 1 ? ca_put_one(&content, &ca->all[i], secret)
				       : ca_put_entry(&content, &ca->all[i], secret);
		key_wipe(secret, sizeof(secret));
	}
	return r < 0 ? error_set(err, r, "write " CA_FILE) : ca_write_file(dir_fd, &content, err);
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

/* A key and a root for it. */
static int ca_make(struct authority *a, const struct ca_config *config, struct error *err)
{
	char id[SPIFFE_SIZE];
	const struct cert_request q = { .id = id,
					.not_before = config->now - CA_BACKDATE_SECONDS,
					.not_after = config->now + CERT_CA_SECONDS };
	int r;

	r = ca_check_clock(config->now, err);
	if (r == 0)
		r = ca_domain_id(id, config->domain);
	if (r >= 0)
		r = key_new(&a->key, err);
	if (r == 0)
		r = cert_make_root(&a->root, a->key, &q, err);
	a->not_after = q.not_after;
	return r;
}

/* The certificate must be this key's, valid now and of this trust domain: it is held to that by
 * issuing with it. */
static int ca_check(const struct ca *ca, const struct authority *a, uint64_t now, struct error *err)
{
	_cleanup_(X509_STORE_CTX_free_p) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	_cleanup_(X509_STORE_free_p) X509_STORE *store = NULL;
	_cleanup_(X509_free_p) X509 *leaf = NULL;
	uint8_t public[KEY_SIZE];
	const struct cert_request q = {
		.key = public, .id = ca->id, .not_before = now - 1, .not_after = now + 1
	};
	const unsigned char *p;
	struct cert c;
	int r;

	r = cert_check_key(a->root.der, a->root.len, a->key, err);
	if (r == 0)
		r = verify_store_new(&store, a->root.der, a->root.len, err);
	if (r == 0)
		r = key_public(a->key, public, err);
	if (r == 0)
		r = cert_make_leaf(&c, a->key, &a->root, &q, err);
	if (r < 0)
		return r;
	p = c.der;
	leaf = d2i_X509(NULL, &p, (long)c.len);
	if (!leaf || !ctx || X509_STORE_CTX_init(ctx, store, leaf, NULL) != 1)
		return openssl_error(err, -ENOMEM, "check a certificate");
	X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), (time_t)now);
	return verify_run(ctx, ca->id, err);
}

/* One that this node has made: its name is the trust domain's, and it has signed itself. One that
 * was given need not have the name, but no other one. */
static int ca_check_root(const struct authority *a, const char *domain, bool given,
			 struct error *err)
{
	_cleanup_(X509_free_p) X509 *root = NULL;
	const unsigned char *p = a->root.der;
	char domain_id[SPIFFE_SIZE];
	int r = ca_domain_id(domain_id, domain);

	root = d2i_X509(NULL, &p, (long)a->root.len);
	if (!root)
		return openssl_error(err, -EBADMSG, "read its certificate");
	if (r >= 0 && (!given || X509_get_ext_by_NID(root, NID_subject_alt_name, -1) >= 0))
		r = verify_name(root, domain_id, err);
	if (r < 0)
		return r;
	/* A chain is not held against the signature of its own root. */
	if (X509_verify(root, key_openssl(a->key)) != 1)
		return openssl_error(err, -EBADMSG, "check its certificate");
	return 0;
}

static int ca_cut_short(struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "it is cut short, or something else");
}

static int ca_add(struct ca *ca, const uint8_t *secret, const uint8_t *der, size_t len,
		  struct error *err)
{
	struct authority *a = &ca->all[ca->n];
	uint64_t from;
	int r;

	if (len == 0 || len > sizeof(a->root.der))
		return ca_cut_short(err);
	memcpy(a->root.der, der, len);
	a->root.len = len;
	ca->n++;
	r = key_load(&a->key, secret, err);
	return r == 0 ? cert_times(der, len, &from, &a->not_after, err) : r;
}

static int ca_parse_two(struct ca *ca, const uint8_t *p, size_t len, struct error *err)
{
	int r = 0;

	while (r == 0 && len > 0) {
		struct ca_entry e;

		if (len < sizeof(e) || ca->n == CA_AUTHORITIES_MAX)
			return ca_cut_short(err);
		memcpy(&e, p, sizeof(e));
		p += sizeof(e);
		len -= sizeof(e);
		if (le32toh(e.len) > len || e.zero)
			return ca_cut_short(err);
		ca->all[ca->n].made_at = le64toh(e.made_at);
		ca->all[ca->n].active_at = le64toh(e.active_at);
		r = ca_add(ca, e.secret, p, le32toh(e.len), err);
		key_wipe(&e, sizeof(e));
		p += ca->all[ca->n - 1].root.len;
		len -= ca->all[ca->n - 1].root.len;
	}
	return r == 0 && ca->n < CA_AUTHORITIES_MAX ? ca_cut_short(err) : r;
}

static int ca_parse(struct ca *ca, const struct buf *content, struct error *err)
{
	const uint8_t *p = buf_data(content);

	if (content->len > CA_MAGIC_LEN && memcmp(p, CA_MAGIC_TWO, CA_MAGIC_LEN) == 0)
		return ca_parse_two(ca, p + CA_MAGIC_LEN, content->len - CA_MAGIC_LEN, err);
	if (content->len <= CA_HEAD || memcmp(p, CA_MAGIC, CA_MAGIC_LEN) != 0)
		return ca_cut_short(err);
	return ca_add(ca, p + CA_MAGIC_LEN, p + CA_HEAD, content->len - CA_HEAD, err);
}

/* Where an older one is over, all that it has signed is: it is no reason to sign nothing. */
static int ca_check_all(const struct ca *ca, const struct ca_config *config, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ca->n; i++) {
		const struct authority *a = &ca->all[i];

		if (i + 1 < ca->n && a->not_after <= config->now)
			continue;
		r = ca_check(ca, a, config->now, err);
		if (r == 0)
			r = ca_check_root(a, config->domain, true, err);
	}
	return r;
}

static int ca_read(struct ca *ca, const struct ca_config *config, struct error *err)
{
	_cleanup_(ca_file_done) struct buf content = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	int r;

	fd = sysio_openat(config->dir_fd, CA_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			  0);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : error_set(err, -errno, "open " CA_FILE);
	r = ca_given_check_file(fd, err);
	if (r == 0) {
		r = fd_read_all(fd, CA_FILE_MAX, &content);
		if (r < 0 && r != -EFBIG)
			return error_set(err, r, "read " CA_FILE);
		r = r < 0 ? error_refuse(err, ERROR_PRECONDITION, "it is too long")
			  : ca_parse(ca, &content, err);
	}
	if (r == 0)
		r = ca_check_all(ca, config, err);
	if (r == 0 || r == -ENOMEM)
		return r;
	if (err)
		err->kind = ERROR_PRECONDITION;
	return error_wrap(err, r,
			  "the file \"" CA_FILE "\" of this node's certificate authority cannot be "
			  "used (moved away, a new one is made, and instances in virtual machines "
			  "that run are lost)");
}

/* ---- changes ---- */

/* Two are in use: neither can go, and there is no room for a third. */
static int ca_check_room(const struct ca *ca, struct error *err)
{
	if (ca->n < CA_AUTHORITIES_MAX)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "a rotation is in progress: certificates of the older authority are "
			    "still in use (nacre identity ca retire ends them at once)");
}

/* The newest from here on, in memory and in the file. */
static int ca_join(struct ca *ca, struct authority *a, const struct ca_config *config,
		   struct error *err)
{
	int r;

	a->made_at = config->now;
	a->active_at = config->now + config->prepare;
	ca->all[ca->n++] = *a;
	r = ca_write(ca, 0, config->dir_fd, err);
	if (r == 0) {
		a->key = NULL;
		return 0;
	}
	ca->all[--ca->n] = (struct authority){ .key = NULL };
	return r;
}

static int ca_add_new(struct ca *ca, const struct ca_config *config, struct error *err)
{
	struct authority a = { .key = NULL };
	int r = ca_check_room(ca, err);

	if (r == 0)
		r = ca_make(&a, config, err);
	if (r == 0)
		r = ca_join(ca, &a, config, err);
	a.key = key_free(a.key);
	return r;
}

/* Whether it may sign for this node, for all that it will sign. */
static int ca_check_given(const struct ca *ca, struct authority *a, const struct ca_config *config,
			  struct error *err)
{
	uint64_t from;
	int r = cert_times(a->root.der, a->root.len, &from, &a->not_after, err);

	if (r == 0 && config->now >= a->not_after)
		r = error_refuse(err, ERROR_PRECONDITION, "it has expired");
	else if (r == 0 && config->now < from)
		r = error_refuse(err, ERROR_PRECONDITION,
				 "it is not valid yet (is the clock of this node right?)");
	if (r == 0)
		r = ca_check(ca, a, config->now, err);
	if (r == 0)
		r = ca_check_root(a, config->domain, true, err);
	if (r == 0 || r == -ENOMEM)
		return r;
	if (err)
		err->kind = ERROR_PRECONDITION;
	return error_wrap(err, r, "the certificate (identity.ca_certificate)");
}

static bool ca_is_newest(const struct ca *ca, const struct cert *root)
{
	const struct cert *newest = ca->n > 0 ? &ca->all[ca->n - 1].root : NULL;

	return newest && newest->len == root->len && memcmp(newest->der, root->der, root->len) == 0;
}

static int ca_add_given(struct ca *ca, const struct ca_config *config, struct error *err)
{
	struct authority a = { .key = NULL };
	int r = ca_given_read(config->key_fd, config->cert_fd, &a.key, &a.root, err);

	if (r == 0 && ca_is_newest(ca, &a.root)) {
		if (config->change == CA_ROTATE)
			r = error_refuse(err, ERROR_PRECONDITION,
					 "the files of identity.ca_key and identity.ca_certificate "
					 "are those of the authority in use (put the new pair "
					 "there first)");
	} else if (r == 0) {
		r = ca_check_given(ca, &a, config, err);
		if (r == 0)
			r = ca_check_room(ca, err);
		if (r == 0)
			r = ca_join(ca, &a, config, err);
	}
	a.key = key_free(a.key);
	return r;
}

static int ca_retire(struct ca *ca, const struct ca_config *config, struct error *err)
{
	int r;

	if (ca->n < CA_AUTHORITIES_MAX)
		return error_refuse(err, ERROR_PRECONDITION,
				    "there is one authority (nacre identity ca rotate makes the "
				    "next one)");
	r = ca_write(ca, 1, config->dir_fd, err);
	if (r < 0)
		return r;
	ca->all[0].key = key_free(ca->all[0].key);
	ca->all[0] = ca->all[1];
	ca->all[1] = (struct authority){ .key = NULL };
	ca->n = 1;
	return 0;
}

static int ca_change(struct ca *ca, const struct ca_config *config, struct error *err)
{
	if (config->change == CA_RETIRE)
		return ca_retire(ca, config, err);
	if (config->given)
		return ca_add_given(ca, config, err);
	if (config->change == CA_ROTATE || ca->n == 0)
		return ca_add_new(ca, config, err);
	return 0;
}

int ca_open(struct ca **ret, const struct ca_config *config, struct error *err)
{
	_cleanup_(ca_freep) struct ca *ca = calloc(1, sizeof(*ca));
	int r;

	if (!ca)
		return error_set(err, -ENOMEM, "open the certificate authority");
	r = spiffe_format(ca->id, config->domain, config->node, NULL, err);
	if (r < 0)
		return r;
	if (sysio_unlinkat(config->dir_fd, CA_FILE_NEW, 0) < 0 && errno != ENOENT)
		return error_set(err, -errno, "remove " CA_FILE_NEW);
	r = ca_read(ca, config, err);
	if (r < 0 && (r != -ENOENT || ca->n > 0))
		return r;
	r = ca_change(ca, config, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ca->n; i++) {
		memcpy(ca->bundle + ca->bundle_len, ca->all[i].root.der, ca->all[i].root.len);
		ca->bundle_len += ca->all[i].root.len;
	}
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

/* Whose signature all who have to believe it know. */
static const struct authority *ca_signer(const struct ca *ca, const struct cert_request *q,
					 uint64_t now)
{
	const struct authority *oldest = &ca->all[0], *newest = &ca->all[ca->n - 1];
	struct spiffe s;

	/* Of the node itself: as long as it can. */
	if (str_eq(q->id, ca->id))
		return q->not_after <= oldest->not_after ? oldest : newest;
	if (spiffe_parse(&s, q->id, strlen(q->id), NULL) == 0 && spiffe_is_user(&s))
		return newest;
	return now >= newest->active_at || q->not_after > oldest->not_after ? newest : oldest;
}

int ca_issue(const struct ca *ca, const struct cert_request *request, uint64_t now,
	     struct cert *ret, struct error *err)
{
	const struct authority *a = ca_signer(ca, request, now);

	if (!ca_may_sign(ca, request->id))
		return error_refuse(err, ERROR_DENIED, "\"%.200s\" is no id of this node",
				    request->id);
	if (request->not_after > a->not_after)
		return error_refuse(err, ERROR_DENIED,
				    "the certificate authority ends before that certificate");
	return cert_make_leaf(ret, a->key, &a->root, request, err);
}
