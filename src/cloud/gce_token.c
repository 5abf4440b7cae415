/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/gce_token.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "wire/document/jsonread.h"
#include "wire/format/base64.h"

#define TOKEN_FILE_MAX (64 << 10)
#define TOKEN_ANSWER_MAX (64 << 10)
#define TOKEN_MEMORY (1 << 20)
#define TOKEN_TIMEOUT_MS 10000L
#define TOKEN_EARLY (300 * NSEC_PER_SEC)
#define TOKEN_CLAIM_LIFE 3600
#define TOKEN_SCOPE "https://www.googleapis.com/auth/compute"
#define TOKEN_GRANT "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define TOKEN_METADATA "169.254.169.254"
#define TOKEN_METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/token"

/* ---- the file ---- */

static const char *token_member(const struct json_value *o, const char *name)
{
	const struct json_value *v = json_member(o, name);

	return v && v->kind == JSON_STRING ? v->text : "";
}

static int token_read_key(struct gce_tokens *t, const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);

	if (bio)
		t->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
	(void)BIO_free(bio);
	return t->key && EVP_PKEY_is_a(t->key, "RSA") ? 0 : -EINVAL;
}

static int token_take(struct gce_tokens *t, const struct json_value *o, const char *path,
		      struct error *err)
{
	const char *type = token_member(o, "type"), *uri = token_member(o, "token_uri");

	if (!str_eq(type, "service_account"))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is of the type \"%.32s\": the key of a service account is "
				    "needed (\"service_account\")",
				    path, type);
	if (!*token_member(o, "client_email") ||
	    str_copy(t->email, sizeof(t->email), token_member(o, "client_email")) < 0 ||
	    str_copy(t->key_id, sizeof(t->key_id), token_member(o, "private_key_id")) < 0 ||
	    token_read_key(t, token_member(o, "private_key")) < 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s has no client_email, or no private_key that is one of RSA",
				    path);
	return http_open_endpoint(&t->from, *uri ? uri : TOKEN_URI, err);
}

static int token_read_file(struct gce_tokens *t, const char *path, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(TOKEN_MEMORY);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct error own = ERROR_INIT;
	struct json_value *o;
	int r = fd_read_file(AT_FDCWD, path, TOKEN_FILE_MAX, &text);

	if (r < 0)
		return error_refuse(err, ERROR_PRECONDITION, "read the key of the cloud, %s: %s",
				    path, strerror(-r));
	r = json_parse(&o, &arena, text.len ? buf_data(&text) : (const uint8_t *)"", text.len,
		       &own);
	if (r == 0 && o->kind != JSON_OBJECT)
		r = error_refuse(&own, ERROR_INVALID, "no object");
	r = r < 0 ? error_refuse(err, ERROR_PRECONDITION, "%s: %s", path, error_text(&own))
		  : token_take(t, o, path, err);
	if (text.base)
		explicit_bzero(text.base, text.size);
	return r;
}

static int token_find_metadata(struct gce_tokens *t, struct error *err)
{
	const char *host = getenv("GCE_METADATA_HOST");
	_cleanup_str_ char *text = str_format("http://%s" TOKEN_METADATA_PATH,
					      str_empty(host) ? TOKEN_METADATA : host);

	return text ? url_parse(&t->from, text, err)
		    : error_set(err, -ENOMEM, "the metadata service");
}

int gce_tokens_open(struct gce_tokens *t, const char *path, const struct buf *authorities,
		    struct error *err)
{
	*t = (struct gce_tokens){ .authorities = authorities };
	if (pthread_mutex_init(&t->lock, NULL) != 0)
		return error_set(err, -ENOMEM, "make a lock");
	if (!*path)
		path = getenv("GOOGLE_APPLICATION_CREDENTIALS") ?: "";
	return *path ? token_read_file(t, path, err) : token_find_metadata(t, err);
}

void gce_tokens_close(struct gce_tokens *t)
{
	EVP_PKEY_free(t->key);
	explicit_bzero(&t->now, sizeof(t->now));
	(void)pthread_mutex_destroy(&t->lock);
}

/* ---- the claim ---- */

/* base64 for URLs (RFC 4648, section 5), without an end. */
static int token_add(struct buf *to, const void *data, size_t len)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(TOKEN_MEMORY);
	char *text = base64_encode(&arena, data, len);

	if (!text)
		return -ENOMEM;
	text[strcspn(text, "=")] = '\0';
	for (char *p = text; *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	return buf_add_str(to, text);
}

static int token_add_object(struct buf *to, const struct gce_tokens *t, uint64_t now, bool head)
{
	struct json j = { .compact = true };
	char uri[URL_SIZE], *text = NULL;
	size_t len = 0;
	bool failed;
	int r;

	j.to = open_memstream(&text, &len);
	if (!j.to)
		return -ENOMEM;
	json_put_object(&j, NULL);
	if (head) {
		json_put_string(&j, "alg", "RS256");
		json_put_string(&j, "typ", "JWT");
		if (*t->key_id)
			json_put_string(&j, "kid", t->key_id);
	} else {
		url_format(&t->from, uri);
		json_put_string(&j, "iss", t->email);
		json_put_string(&j, "scope", TOKEN_SCOPE);
		json_put_string(&j, "aud", uri);
		json_put_unsigned(&j, "iat", now);
		json_put_unsigned(&j, "exp", now + TOKEN_CLAIM_LIFE);
	}
	json_put_end(&j);
	failed = ferror(j.to) != 0;
	failed = fclose(j.to) != 0 || failed;
	/* Without the line feed at its end. */
	r = failed ? -ENOMEM : token_add(to, text, len - (len > 0 && text[len - 1] == '\n'));
	free(text);
	return r;
}

static int token_add_signature(struct buf *to, EVP_PKEY *key)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	uint8_t signature[1024];
	size_t len = sizeof(signature);
	bool ok = c && EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, key) == 1 &&
		  EVP_DigestSign(c, signature, &len, buf_data(to), to->len) == 1;
	int r;

	EVP_MD_CTX_free(c);
	r = ok ? buf_add_str(to, ".") : -EINVAL;
	return r < 0 ? r : token_add(to, signature, len);
}

int gce_tokens_sign(struct gce_tokens *t, uint64_t now, struct buf *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf claim = BUF_INIT;
	int r = token_add_object(&claim, t, now, true);

	if (r == 0)
		r = buf_add_str(&claim, ".");
	if (r == 0)
		r = token_add_object(&claim, t, now, false);
	if (r == 0)
		r = token_add_signature(&claim, t->key);
	if (r == 0)
		r = buf_add(ret, buf_data(&claim), claim.len);
	return r < 0 ? error_set(err, r, "sign a claim for the cloud") : 0;
}

/* ---- a new token ---- */

static int token_take_answer(struct gce_tokens *t, struct buf *body, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(TOKEN_MEMORY);
	struct error own = ERROR_INIT;
	const struct json_value *life;
	const char *text;
	struct json_value *o;
	uint64_t seconds;
	int r = json_parse(&o, &arena, body->len ? buf_data(body) : (const uint8_t *)"", body->len,
			   &own);

	if (r < 0 || o->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_UNAVAILABLE, "its answer is no object of JSON");
	life = json_member(o, "expires_in");
	text = token_member(o, "access_token");
	if (!*text || strlen(text) > GCE_TOKEN_MAX || strpbrk(text, " \r\n\t\"") || !life ||
	    life->kind != JSON_NUMBER || parse_u64(life->text, 1, 1 << 20, &seconds) < 0)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "its answer has no access_token with an expires_in");
	(void)str_copy(t->now.text, sizeof(t->now.text), text);
	t->ends = clock_mono() + (nsec_t)seconds * NSEC_PER_SEC;
	return 0;
}

/* What it has against the claim, in its words. */
static int token_refused(int status, struct buf *body, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(TOKEN_MEMORY);
	struct json_value *o = NULL;
	struct error own = ERROR_INIT;
	bool read = json_parse(&o, &arena, body->len ? buf_data(body) : (const uint8_t *)"",
			       body->len, &own) == 0 &&
		    o->kind == JSON_OBJECT;

	return error_refuse(err,
			    status >= 500 || status == 429 ? ERROR_UNAVAILABLE : ERROR_PRECONDITION,
			    "it answers with the status %d %.64s %.200s%s", status,
			    read ? token_member(o, "error") : "",
			    read ? token_member(o, "error_description") : "",
			    status == 400 || status == 401
				    ? " (the key of the service account, or the clock of this host)"
				    : "");
}

static int token_ask(struct gce_tokens *t, const struct buf *form, struct buf *body,
		     struct http_answer *a, struct error *err)
{
	static const char *const claim[] = { "Content-Type: application/x-www-form-urlencoded" };
	static const char *const metadata[] = { "Metadata-Flavor: Google" };
	char url[URL_SIZE];
	struct http h;
	int r = http_init(&h, t->key ? t->authorities : NULL, err);

	if (r < 0)
		return r;
	url_format(&t->from, url);
	r = http_ask(&h,
		     &(struct http_request){ .method = t->key ? "POST" : "GET",
					     .url = url,
					     .headers = t->key ? claim : metadata,
					     .n_headers = 1,
					     .body = form->len ? buf_data(form) : NULL,
					     .body_len = form->len,
					     .timeout_ms = TOKEN_TIMEOUT_MS,
					     .answer_max = TOKEN_ANSWER_MAX },
		     a, body, err);
	http_done(&h);
	return r;
}

/* With the lock held: who comes meanwhile waits for the same answer. */
static int token_renew(struct gce_tokens *t, struct error *err)
{
	_cleanup_(buf_done) struct buf form = BUF_INIT, body = BUF_INIT;
	struct http_answer a;
	int r = 0;

	if (t->key) {
		r = buf_add_str(&form, "grant_type=");
		for (const char *p = TOKEN_GRANT; *p && r == 0; p++)
			r = *p == ':' ? buf_add_str(&form, "%3A") : buf_add(&form, p, 1);
		if (r == 0)
			r = buf_add_str(&form, "&assertion=");
		if (r < 0)
			return error_set(err, r, "ask for a token");
		r = gce_tokens_sign(t, clock_real() / NSEC_PER_SEC, &form, err);
	}
	if (r == 0)
		r = token_ask(t, &form, &body, &a, err);
	if (r == 0)
		r = a.status == 200 ? token_take_answer(t, &body, err)
				    : token_refused(a.status, &body, err);
	if (body.base)
		explicit_bzero(body.base, body.size);
	if (r == 0)
		return 0;
	return error_wrap(err, r,
			  t->key ? "there is no token for the cloud from %s"
				 : "there is no key for the cloud "
				   "(cloud.gce.credentials, "
				   "GOOGLE_APPLICATION_CREDENTIALS), and no token from the "
				   "metadata service at %s",
			  t->from.host);
}

int gce_tokens_get(struct gce_tokens *t, struct gce_token *ret, struct error *err)
{
	nsec_t now = clock_mono();
	int r = 0;

	(void)pthread_mutex_lock(&t->lock);
	if (t->ends < now + TOKEN_EARLY) {
		r = token_renew(t, err);
		/* Good for some minutes still. */
		if (r < 0 && t->ends > now)
			r = 0;
	}
	if (r == 0)
		*ret = t->now;
	(void)pthread_mutex_unlock(&t->lock);
	return r;
}

void gce_tokens_drop(struct gce_tokens *t, const struct gce_token *old)
{
	(void)pthread_mutex_lock(&t->lock);
	if (str_eq(t->now.text, old->text))
		t->ends = 0;
	(void)pthread_mutex_unlock(&t->lock);
}
