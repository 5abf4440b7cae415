/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/sigv4.h"

#include <errno.h>
#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/sha2.h>
#include <string.h>
#include <time.h>

#include "base/memory/buf.h"
#include "base/text/str.h"

#define SIGV4_ALGORITHM "AWS4-HMAC-SHA256"

void sigv4_time(char ret[SIGV4_TIME_SIZE], nsec_t real)
{
	time_t t = (time_t)(real / NSEC_PER_SEC);
	struct tm tm;

	ret[0] = '\0';
	if (gmtime_r(&t, &tm))
		(void)strftime(ret, SIGV4_TIME_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}

static void sigv4_hex(char ret[SIGV4_HEX_SIZE], const uint8_t digest[SHA256_DIGEST_SIZE])
{
	base16_encode_update(ret, SHA256_DIGEST_SIZE, digest);
	ret[SIGV4_HEX_SIZE - 1] = '\0';
}

static void sigv4_hash(char ret[SIGV4_HEX_SIZE], const void *data, size_t len)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx c;

	sha256_init(&c);
	if (len > 0)
		sha256_update(&c, len, data);
	sha256_digest(&c, sizeof(digest), digest);
	sigv4_hex(ret, digest);
}

static void sigv4_hmac(uint8_t ret[SHA256_DIGEST_SIZE], const void *key, size_t key_len,
		       const char *text)
{
	struct hmac_sha256_ctx c;

	hmac_sha256_set_key(&c, key_len, key);
	hmac_sha256_update(&c, strlen(text), (const uint8_t *)text);
	hmac_sha256_digest(&c, SHA256_DIGEST_SIZE, ret);
	explicit_bzero(&c, sizeof(c));
}

static int sigv4_add_names(struct buf *b, const struct sigv4_request *q)
{
	int r = 0;

	for (size_t i = 0; i < q->n_headers && r == 0; i++)
		r = buf_addf(b, "%s%s", i ? ";" : "", q->headers[i].name);
	return r;
}

static int sigv4_canonical(const struct sigv4_request *q, struct buf *b)
{
	char body[SIGV4_HEX_SIZE];
	int r;

	sigv4_hash(body, q->body, q->body_len);
	r = buf_addf(b, "%s\n%s\n%s\n", q->method, q->path, q->query);
	for (size_t i = 0; i < q->n_headers && r == 0; i++)
		r = buf_addf(b, "%s:%s\n", q->headers[i].name, q->headers[i].value);
	if (r == 0)
		r = buf_add_str(b, "\n");
	if (r == 0)
		r = sigv4_add_names(b, q);
	return r < 0 ? r : buf_addf(b, "\n%s", body);
}

static int sigv4_key(const struct sigv4_request *q, uint8_t key[SHA256_DIGEST_SIZE])
{
	_cleanup_str_ char *first = str_format("AWS4%s", q->secret);
	_cleanup_str_ char *day = str_format("%.8s", q->time);
	uint8_t next[SHA256_DIGEST_SIZE];

	if (!first || !day)
		return -ENOMEM;
	sigv4_hmac(key, first, strlen(first), day);
	explicit_bzero(first, strlen(first));
	sigv4_hmac(next, key, SHA256_DIGEST_SIZE, q->region);
	sigv4_hmac(key, next, sizeof(next), q->service);
	sigv4_hmac(next, key, SHA256_DIGEST_SIZE, "aws4_request");
	memcpy(key, next, sizeof(next));
	explicit_bzero(next, sizeof(next));
	return 0;
}

int sigv4_sign(const struct sigv4_request *q, char ret_signature[SIGV4_HEX_SIZE],
	       char **ret_authorization)
{
	_cleanup_(buf_done) struct buf canonical = BUF_INIT;
	_cleanup_(buf_done) struct buf authorization = BUF_INIT;
	_cleanup_str_ char *scope =
		str_format("%.8s/%s/%s/aws4_request", q->time, q->region, q->service);
	_cleanup_str_ char *to_sign = NULL;
	uint8_t key[SHA256_DIGEST_SIZE], signature[SHA256_DIGEST_SIZE];
	char hash[SIGV4_HEX_SIZE];
	int r = scope ? sigv4_canonical(q, &canonical) : -ENOMEM;

	if (r < 0)
		return r;
	sigv4_hash(hash, buf_data(&canonical), canonical.len);
	to_sign = str_format(SIGV4_ALGORITHM "\n%s\n%s\n%s", q->time, scope, hash);
	r = to_sign ? sigv4_key(q, key) : -ENOMEM;
	if (r < 0)
		return r;
	sigv4_hmac(signature, key, sizeof(key), to_sign);
	explicit_bzero(key, sizeof(key));
	sigv4_hex(ret_signature, signature);
	r = buf_addf(&authorization, SIGV4_ALGORITHM " Credential=%s/%s, SignedHeaders=", q->key_id,
		     scope);
	if (r == 0)
		r = sigv4_add_names(&authorization, q);
	if (r == 0)
		r = buf_addf(&authorization, ", Signature=%s", ret_signature);
	if (r < 0)
		return r;
	*ret_authorization = buf_take_str(&authorization);
	return *ret_authorization ? 0 : -ENOMEM;
}
