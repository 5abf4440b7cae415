/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A page is, for each value, its path with a NUL, the length in four bytes with the least first,
 * and its bytes. Directories are not in it: a request for one is answered by the paths below it.
 */

#include "wire/document/imds.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "wire/format/httphead.h"

#define IMDS_PATH_MAX 512
#define IMDS_API_TOKEN "latest/api/token"
/* The end, and the checksum. */
#define IMDS_END_SIZE 8
#define IMDS_TOKEN_SIZE (IMDS_END_SIZE + SHA256_DIGEST_SIZE)
#define IMDS_TOKEN_DIGITS (2 * (size_t)IMDS_TOKEN_SIZE)
#define IMDS_TEXT "text/plain; charset=utf-8"
#define IMDS_BYTES "application/octet-stream"
#define IMDS_JSON "application/json"

/* The dates that clients ask by; what is below each is the same. */
static const char *const imds_versions[] = { "2009-04-04", "2016-09-02", "2018-09-24", "2021-03-23",
					     "latest" };
static const char *const imds_hosts[] = { "169.254.169.254", "169.254.169.254:80",
					  "[fd00:ec2::254]", "[fd00:ec2::254]:80" };
static const char *const imds_passed_on[] = { "X-Forwarded-For", "X-Forwarded-Host", "Forwarded",
					      "Via" };

/* ---- pages ---- */

struct imds_value {
	const char *path;
	const uint8_t *data;
	size_t len;
};

/* The next one, from *at on: 1, 0 at the end, -EBADMSG. */
static int imds_next(const uint8_t *page, size_t len, size_t *at, struct imds_value *ret)
{
	const uint8_t *end;
	uint32_t n;

	if (*at == len)
		return 0;
	end = memchr(page + *at, '\0', len - *at);
	if (!end || len - (size_t)(end + 1 - page) < sizeof(n))
		return -EBADMSG;
	ret->path = (const char *)page + *at;
	memcpy(&n, end + 1, sizeof(n));
	ret->len = le32toh(n);
	ret->data = end + 1 + sizeof(n);
	if (len - (size_t)(ret->data - page) < ret->len)
		return -EBADMSG;
	*at = (size_t)(ret->data - page) + ret->len;
	return 1;
}

static bool imds_path_is_fine(const char *path)
{
	size_t n = strlen(path);

	return n > 0 && n <= IMDS_PATH_MAX && path[0] != '/' && path[n - 1] != '/' &&
	       !strstr(path, "//") && str_is_utf8(path, n) && str_is_clean(path);
}

int imds_put(struct buf *page, const char *path, const void *data, size_t len)
{
	uint32_t n = htole32((uint32_t)len);
	int r;

	if (!imds_path_is_fine(path))
		return -EINVAL;
	if (len > IMDS_PAGE_MAX || page->len + strlen(path) + 1 + sizeof(n) + len > IMDS_PAGE_MAX)
		return -EFBIG;
	r = buf_add(page, path, strlen(path) + 1);
	if (r == 0)
		r = buf_add(page, &n, sizeof(n));
	return r == 0 && len > 0 ? buf_add(page, data, len) : r;
}

int imds_check(const uint8_t *page, size_t len)
{
	struct imds_value v;
	size_t at = 0;
	int r;

	if (len > IMDS_PAGE_MAX)
		return -EBADMSG;
	do {
		r = imds_next(page, len, &at, &v);
		if (r > 0 && !imds_path_is_fine(v.path))
			r = -EBADMSG;
	} while (r > 0);
	return r;
}

/* The name that a path has in a directory ("" is the root of the page); len 0: it is not below it.
 */
static struct http_text imds_name_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	struct http_text none = { path, 0 }, rest = { path, strlen(path) };

	if (n > 0 && (rest.len <= n + 1 || memcmp(path, dir, n) != 0 || path[n] != '/'))
		return none;
	if (n > 0) {
		rest.at += n + 1;
		rest.len -= n + 1;
	}
	/* A directory is told with its '/'. */
	for (size_t i = 0; i < rest.len; i++)
		if (rest.at[i] == '/')
			rest.len = i + 1;
	return rest;
}

static bool imds_was_named(const struct imds *d, const char *dir, const char *path,
			   struct http_text name)
{
	struct imds_value v;
	size_t at = 0;

	while (imds_next(d->page, d->len, &at, &v) > 0 && v.path != path) {
		struct http_text other = imds_name_in(v.path, dir);

		if (other.len == name.len && memcmp(other.at, name.at, name.len) == 0)
			return true;
	}
	return false;
}

/* What is in a directory, a line each. 0, or -ENOENT: nothing is. */
static int imds_list(struct buf *ret, const struct imds *d, const char *dir)
{
	struct imds_value v;
	size_t at = 0;
	int r = 0;

	while (r == 0 && imds_next(d->page, d->len, &at, &v) > 0) {
		struct http_text name = imds_name_in(v.path, dir);

		if (name.len == 0 || imds_was_named(d, dir, v.path, name))
			continue;
		r = buf_addf(ret, "%s%.*s", ret->len ? "\n" : "", (int)name.len, name.at);
	}
	return r == 0 && ret->len == 0 ? -ENOENT : r;
}

static bool imds_find(const struct imds *d, const char *path, struct imds_value *ret)
{
	size_t at = 0;

	while (imds_next(d->page, d->len, &at, ret) > 0)
		if (str_eq(ret->path, path))
			return true;
	return false;
}

/* ---- tokens ---- */

static void imds_seal(const struct imds *d, uint64_t end, uint8_t ret[IMDS_TOKEN_SIZE])
{
	struct hmac_sha256_ctx ctx;

	end = htobe64(end);
	memcpy(ret, &end, IMDS_END_SIZE);
	hmac_sha256_set_key(&ctx, IMDS_KEY_SIZE, d->key);
	hmac_sha256_update(&ctx, IMDS_END_SIZE, ret);
	hmac_sha256_digest(&ctx, SHA256_DIGEST_SIZE, ret + IMDS_END_SIZE);
}

static int imds_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool imds_token_holds(const struct imds *d, struct http_text token)
{
	uint8_t told[IMDS_TOKEN_SIZE], right[IMDS_TOKEN_SIZE];
	uint64_t end;

	if (token.len != IMDS_TOKEN_DIGITS)
		return false;
	for (size_t i = 0; i < sizeof(told); i++) {
		int high = imds_digit(token.at[2 * i]), low = imds_digit(token.at[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		told[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(&end, told, IMDS_END_SIZE);
	end = be64toh(end);
	imds_seal(d, end, right);
	return memeql_sec(told, right, sizeof(right)) && d->now < end;
}

/* ---- answers ---- */

/* fields: of the head, each with its end. */
static int imds_say(struct buf *ret, const char *status, const char *fields, const void *body,
		    size_t len, bool with_body)
{
	int r = buf_addf(ret,
			 "HTTP/1.1 %s\r\nServer: nacre\r\n%sContent-Length: %zu\r\n"
			 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
			 status, fields, len);

	return r == 0 && with_body && len > 0 ? buf_add(ret, body, len) : r;
}

int imds_reply(struct buf *ret, const char *status, const char *type, const void *body, size_t len)
{
	char fields[96];

	(void)str_printf(fields, sizeof(fields), "Content-Type: %s\r\n", type);
	return imds_say(ret, status, fields, body, len, true);
}

/* The fields of a request that count. */
struct imds_fields {
	struct http_text host, ttl, token;
	unsigned n_host, n_ttl, n_token;
	bool passed_on;
};

static void imds_read_fields(struct imds_fields *f, struct http_text fields)
{
	struct http_text name, value;

	*f = (struct imds_fields){ .n_host = 0 };
	while (httphead_next(&fields, &name, &value)) {
		if (http_text_is(name, "Host") && f->n_host++ == 0)
			f->host = value;
		if (http_text_is(name, IMDS_TTL_FIELD) && f->n_ttl++ == 0)
			f->ttl = value;
		if (http_text_is(name, IMDS_TOKEN_FIELD) && f->n_token++ == 0)
			f->token = value;
		for (size_t i = 0; i < ARRAY_SIZE(imds_passed_on); i++)
			f->passed_on = f->passed_on || http_text_is(name, imds_passed_on[i]);
	}
}

static bool imds_host_is_here(const struct imds_fields *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(imds_hosts); i++)
		if (http_text_is(f->host, imds_hosts[i]))
			return true;
	return false;
}

static int imds_refuse(struct buf *ret, const char *status, const char *words, bool with_body)
{
	return imds_say(ret, status, "Content-Type: " IMDS_TEXT "\r\n", words, strlen(words),
			with_body);
}

/* 0: no number within the bounds. */
static uint64_t imds_read_ttl(struct http_text t)
{
	uint64_t n = 0;

	if (t.len == 0 || t.len > 5)
		return 0;
	for (size_t i = 0; i < t.len; i++) {
		if (t.at[i] < '0' || t.at[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(t.at[i] - '0');
	}
	return n >= IMDS_TTL_MIN && n <= IMDS_TTL_MAX ? n : 0;
}

static int imds_give_token(struct buf *ret, const struct imds *d, const struct imds_fields *f)
{
	uint64_t ttl = f->n_ttl == 1 ? imds_read_ttl(f->ttl) : 0;
	char fields[128], text[IMDS_TOKEN_DIGITS + 1];
	uint8_t token[IMDS_TOKEN_SIZE];

	if (!ttl)
		return imds_refuse(ret, "400 Bad Request",
				   IMDS_TTL_FIELD ": a token lives 1 to 21600 seconds\n", true);
	imds_seal(d, d->now + ttl, token);
	for (size_t i = 0; i < sizeof(token); i++)
		(void)str_printf(text + 2 * i, 3, "%02x", token[i]);
	(void)str_printf(fields, sizeof(fields),
			 "Content-Type: text/plain\r\n" IMDS_TTL_FIELD ": %" PRIu64 "\r\n", ttl);
	return imds_say(ret, "200 OK", fields, text, strlen(text), true);
}

/* The path of a target without its query, and without '/' at its ends and twice. */
static int imds_read_path(struct http_text target, char ret[IMDS_PATH_MAX + 16])
{
	struct http_text path = http_text_cut(&target, '?');
	size_t n = 0;

	for (size_t i = 0; i < path.len; i++) {
		if (path.at[i] == '/' && (n == 0 || ret[n - 1] == '/'))
			continue;
		if (path.at[i] == '\0' || n == IMDS_PATH_MAX + 15)
			return -ENOENT;
		ret[n++] = path.at[i];
	}
	if (n > 0 && ret[n - 1] == '/')
		n--;
	ret[n] = '\0';
	return 0;
}

/* What is behind the version; NULL: there is no such version. */
static const char *imds_below_version(const char *path)
{
	const char *rest = strchrnul(path, '/');

	for (size_t i = 0; i < ARRAY_SIZE(imds_versions); i++)
		if (strlen(imds_versions[i]) == (size_t)(rest - path) &&
		    str_has_prefix(path, imds_versions[i]))
			return *rest ? rest + 1 : rest;
	return NULL;
}

static int imds_list_versions(struct buf *ret)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(imds_versions) && r == 0; i++)
		r = buf_addf(ret, "%s%s", i ? "\n" : "", imds_versions[i]);
	return r;
}

static int imds_give(struct buf *ret, const struct imds *d, const char *path, bool with_body)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT;
	const char *rest = imds_below_version(path), *type = "Content-Type: " IMDS_TEXT "\r\n";
	struct imds_value v;
	int r = rest || !*path ? 0 : -ENOENT;

	if (r == 0 && *path && *rest && imds_find(d, rest, &v)) {
		if (str_eq(rest, IMDS_SVID))
			return IMDS_WANTS_SVID;
		if (str_eq(rest, IMDS_USER_DATA))
			type = "Content-Type: " IMDS_BYTES "\r\n";
		else if (v.len > 0 && v.data[0] == '{')
			type = "Content-Type: " IMDS_JSON "\r\n";
		return imds_say(ret, "200 OK", type, v.data, v.len, with_body);
	}
	if (r == 0)
		r = *path ? imds_list(&list, d, rest) : imds_list_versions(&list);
	if (r == -ENOENT)
		return imds_refuse(ret, "404 Not Found", "there is no such path\n", with_body);
	return r < 0 ? r : imds_say(ret, "200 OK", type, buf_data(&list), list.len, with_body);
}

static int imds_decide(struct buf *ret, const struct imds *d, const struct httphead *h)
{
	bool is_head = str_eq(h->method, "HEAD"), is_put = str_eq(h->method, "PUT");
	char path[IMDS_PATH_MAX + 16];
	struct imds_fields f;

	imds_read_fields(&f, h->fields);
	if (f.passed_on)
		return imds_refuse(ret, "403 Forbidden", "a request that was passed on\n",
				   !is_head);
	if (f.n_host != 1)
		return imds_refuse(ret, "400 Bad Request", "exactly one field Host is needed\n",
				   !is_head);
	if (!imds_host_is_here(&f))
		return imds_refuse(ret, "403 Forbidden", "the Host is not this service's address\n",
				   !is_head);
	if (imds_read_path(h->target, path) < 0)
		return imds_refuse(ret, "404 Not Found", "there is no such path\n", !is_head);
	if (is_put && str_eq(path, IMDS_API_TOKEN))
		return imds_give_token(ret, d, &f);
	if (!is_head && !str_eq(h->method, "GET"))
		return imds_say(ret, "405 Method Not Allowed",
				"Allow: GET, HEAD\r\nContent-Type: " IMDS_TEXT "\r\n", "", 0,
				false);
	if (f.n_token != 1 || !imds_token_holds(d, f.token))
		return imds_refuse(ret, "401 Unauthorized",
				   "a token of PUT /" IMDS_API_TOKEN " is needed\n", !is_head);
	return imds_give(ret, d, path, !is_head);
}

int imds_answer(struct buf *ret, const struct imds *d, const uint8_t *data, size_t len)
{
	struct httphead h;
	size_t used;
	int r = httphead_take(data, len, &used, &h);

	if (r == 0)
		return IMDS_MORE;
	r = r < 0 ? imds_refuse(ret, "400 Bad Request", "this is no request of HTTP/1.1\n", true)
		  : imds_decide(ret, d, &h);
	return r == 0 ? IMDS_ANSWERED : r;
}
