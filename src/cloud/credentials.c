/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cloud/http.h"
#include "registry/url.h"
#include "wire/document/jsonread.h"

#define CREDENTIALS_FILE_MAX (256 << 10)
#define CREDENTIALS_LINE_MAX 16384
#define CREDENTIALS_METADATA "http://169.254.169.254"
#define CREDENTIALS_METADATA_MAX (64 << 10)
#define CREDENTIALS_METADATA_MS 5000
#define CREDENTIALS_JSON_MAX (1 << 20)
/* As long before its end a key is asked for again. */
#define CREDENTIALS_EARLY (300 * NSEC_PER_SEC)
#define CREDENTIALS_ROLE "/latest/meta-data/iam/security-credentials/"

/* ---- files ---- */

/* What stands at the line, without blanks around it. */
static size_t credentials_trim(const char **at, size_t len)
{
	while (len > 0 && strchr(" \t\r", **at)) {
		(*at)++;
		len--;
	}
	while (len > 0 && strchr(" \t\r", (*at)[len - 1]))
		len--;
	return len;
}

static bool credentials_is_section(const char *line, size_t len, const char *profile)
{
	const char *name = line + 1;
	size_t n;

	if (len < 2 || line[len - 1] != ']')
		return false;
	n = credentials_trim(&name, len - 2);
	if (n > 8 && strncmp(name, "profile", 7) == 0 && strchr(" \t", name[7])) {
		name += 7;
		n -= 7;
		n = credentials_trim(&name, n);
	}
	return n == strlen(profile) && memcmp(name, profile, n) == 0;
}

static int credentials_take(char *to, size_t size, const char *value, size_t len)
{
	if (len >= size)
		return -EINVAL;
	memcpy(to, value, len);
	to[len] = '\0';
	return str_is_clean(to) && !strchr(to, ' ') ? 0 : -EINVAL;
}

static int credentials_set(struct credentials *c, const char *line, size_t len)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} keys[] = { { "aws_access_key_id", c->id, sizeof(c->id) },
		     { "aws_secret_access_key", c->secret, sizeof(c->secret) },
		     { "aws_session_token", c->token, sizeof(c->token) } };
	const char *equals = memchr(line, '=', len), *value;
	const char *name = line;
	size_t n, n_value;

	if (!equals)
		return -EINVAL;
	n = credentials_trim(&name, (size_t)(equals - line));
	value = equals + 1;
	n_value = credentials_trim(&value, len - (size_t)(value - line));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].name) == n && memcmp(keys[i].name, name, n) == 0)
			return credentials_take(keys[i].to, keys[i].size, value, n_value);
	return 0;
}

int credentials_read_profile(struct credentials *ret, const char *text, size_t len,
			     const char *profile, struct error *err)
{
	const char *at = text, *end = text + len;
	bool inside = false;

	*ret = (struct credentials){ .ends = NSEC_NEVER };
	for (unsigned long number = 1; at < end; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *line = at;
		size_t n = newline ? (size_t)(newline - at) : (size_t)(end - at);
		bool indented = n > 0 && strchr(" \t", *at) != NULL;
		bool bad;

		at += n + (newline != NULL);
		bad = n > CREDENTIALS_LINE_MAX || memchr(line, '\0', n);
		n = bad ? 0 : credentials_trim(&line, n);
		if (n > 0 && *line == '[')
			inside = credentials_is_section(line, n, profile);
		/* An indented line belongs to a setting of several lines, of which no key is one.
		 */
		else if (n > 0 && !strchr("#;", *line) && inside && !indented)
			bad = credentials_set(ret, line, n) < 0;
		if (bad)
			return error_refuse(err, ERROR_INVALID,
					    "line %lu is neither a section nor NAME = VALUE",
					    number);
	}
	return *ret->id && *ret->secret;
}

static int credentials_read_file(struct credentials *ret, const char *path, const char *profile,
				 struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r = fd_read_file(AT_FDCWD, path, CREDENTIALS_FILE_MAX, &text);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return error_set(err, r, "read %s", path);
	r = credentials_read_profile(ret, text.len ? (const char *)buf_data(&text) : "", text.len,
				     profile, err);
	if (text.base)
		explicit_bzero(text.base, text.size);
	if (r >= 0)
		return r;
	err->kind = ERROR_PRECONDITION;
	return error_wrap(err, r, "%s", path);
}

/* The file that the variable names, else one in ~/.aws; NULL: nowhere. */
static char *credentials_path(const char *variable, const char *name)
{
	const char *path = getenv(variable), *home = getenv("HOME");

	if (!str_empty(path))
		return strdup(path);
	return str_empty(home) ? NULL : str_format("%s/.aws/%s", home, name);
}

static int credentials_from_files(struct credentials_source *s, const char *profile,
				  struct error *err)
{
	_cleanup_str_ char *keys = credentials_path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
	_cleanup_str_ char *config = credentials_path("AWS_CONFIG_FILE", "config");
	int r = keys ? credentials_read_file(&s->now, keys, profile, err) : 0;

	if (r == 0 && config)
		r = credentials_read_file(&s->now, config, profile, err);
	return r;
}

static bool credentials_from_environment(struct credentials *c)
{
	const char *id = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
	const char *token = getenv("AWS_SESSION_TOKEN");

	*c = (struct credentials){ .ends = NSEC_NEVER };
	return !str_empty(id) && !str_empty(secret) &&
	       credentials_take(c->id, sizeof(c->id), id, strlen(id)) == 0 &&
	       credentials_take(c->secret, sizeof(c->secret), secret, strlen(secret)) == 0 &&
	       (str_empty(token) ||
		credentials_take(c->token, sizeof(c->token), token, strlen(token)) == 0);
}

static void credentials_find_metadata(struct credentials_source *s)
{
	const char *off = getenv("AWS_EC2_METADATA_DISABLED");
	const char *url = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");

	if (off && str_eq(off, "true"))
		return;
	(void)str_copy(s->metadata, sizeof(s->metadata),
		       str_empty(url) ? CREDENTIALS_METADATA : url);
	for (size_t n = strlen(s->metadata); n > 0 && s->metadata[n - 1] == '/';)
		s->metadata[--n] = '\0';
}

int credentials_open(struct credentials_source *s, const char *profile, struct error *err)
{
	const char *named = *profile ? profile : getenv("AWS_PROFILE");
	int r;

	*s = (struct credentials_source){ .fixed = true };
	if (pthread_mutex_init(&s->lock, NULL) != 0)
		return error_set(err, -ENOMEM, "make a lock");
	credentials_find_metadata(s);
	if (str_empty(named) && credentials_from_environment(&s->now))
		return 0;
	r = credentials_from_files(s, str_empty(named) ? "default" : named, err);
	if (r != 0)
		return MIN(r, 0);
	s->now = (struct credentials){ .ends = 0 };
	s->fixed = false;
	if (str_empty(named))
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "the profile \"%.64s\" has no aws_access_key_id and "
			    "aws_secret_access_key in ~/.aws/credentials or ~/.aws/config of the "
			    "user that the daemon runs as",
			    named);
}

void credentials_close(struct credentials_source *s)
{
	explicit_bzero(&s->now, sizeof(s->now));
	(void)pthread_mutex_destroy(&s->lock);
}

/* ---- the metadata service ---- */

static int credentials_member(const struct json_value *o, const char *name, char *to, size_t size,
			      struct error *err)
{
	const struct json_value *v = json_member(o, name);

	if (v && v->kind == JSON_STRING &&
	    credentials_take(to, size, v->text, strlen(v->text)) == 0)
		return 0;
	return error_refuse(err, ERROR_INVALID, "its answer has no \"%s\"", name);
}

int credentials_read_metadata(struct credentials *ret, const void *data, size_t len,
			      struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(CREDENTIALS_JSON_MAX);
	struct json_value *o;
	char ends[64];
	int r = json_parse(&o, &arena, data, len, err);

	if (r < 0)
		return r;
	if (o->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "its answer is no object");
	*ret = (struct credentials){ .ends = 0 };
	r = credentials_member(o, "AccessKeyId", ret->id, sizeof(ret->id), err);
	if (r == 0)
		r = credentials_member(o, "SecretAccessKey", ret->secret, sizeof(ret->secret), err);
	if (r == 0)
		r = credentials_member(o, "Token", ret->token, sizeof(ret->token), err);
	if (r == 0)
		r = credentials_member(o, "Expiration", ends, sizeof(ends), err);
	if (r == 0 && clock_parse(ends, strlen(ends), &ret->ends) < 0)
		r = error_refuse(err, ERROR_INVALID, "its \"Expiration\" is no time");
	return r;
}

static int credentials_ask(const struct credentials_source *s, struct http *h, const char *method,
			   const char *path, const char *header, struct buf *ret, struct error *err)
{
	const char *const headers[] = { header };
	_cleanup_str_ char *url = str_format("%s%s", s->metadata, path);
	const struct http_request q = { .method = method,
					.url = url,
					.headers = headers,
					.n_headers = 1,
					.timeout_ms = CREDENTIALS_METADATA_MS,
					.answer_max = CREDENTIALS_METADATA_MAX };
	struct http_answer a;
	int r;

	if (!url)
		return error_set(err, -ENOMEM, "ask the metadata service");
	r = http_ask(h, &q, &a, ret, err);
	if (r < 0)
		return r;
	if (a.status == 200)
		return 0;
	return error_refuse(err, a.status == 404 ? ERROR_PRECONDITION : ERROR_UNAVAILABLE,
			    "%s answers with the status %d", path, a.status);
}

/* The text of an answer, of one line. */
static int credentials_line(struct buf *b, char *ret, size_t size, struct error *err)
{
	const char *text = b->len ? (const char *)buf_data(b) : "";
	const char *newline = memchr(text, '\n', b->len);
	size_t n = newline ? (size_t)(newline - text) : b->len;

	n = credentials_trim(&text, n);
	if (n > 0 && credentials_take(ret, size, text, n) == 0)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION, "it has said nothing that can be used");
}

static int credentials_from_metadata(const struct credentials_source *s, struct http *h,
				     struct credentials *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf token = BUF_INIT, role = BUF_INIT, keys = BUF_INIT;
	char text[1024], header[1100], path[2048], name[512], escaped[1537];
	int r;

	r = credentials_ask(s, h, "PUT", "/latest/api/token",
			    "X-aws-ec2-metadata-token-ttl-seconds: 300", &token, err);
	if (r == 0)
		r = credentials_line(&token, text, sizeof(text), err);
	if (r < 0)
		return r;
	(void)str_printf(header, sizeof(header), "X-aws-ec2-metadata-token: %s", text);
	r = credentials_ask(s, h, "GET", CREDENTIALS_ROLE, header, &role, err);
	if (r == 0)
		r = credentials_line(&role, name, sizeof(name), err);
	if (r < 0)
		return r;
	url_escape(escaped, name);
	(void)str_printf(path, sizeof(path), CREDENTIALS_ROLE "%s", escaped);
	r = credentials_ask(s, h, "GET", path, header, &keys, err);
	if (r == 0)
		r = credentials_read_metadata(ret, buf_data(&keys), keys.len, err);
	if (keys.base)
		explicit_bzero(keys.base, keys.size);
	return r;
}

/* With the lock held: who comes meanwhile waits for the same answer. */
static int credentials_refresh(struct credentials_source *s, struct error *err)
{
	struct credentials fresh = { .ends = 0 };
	struct http h;
	int r;

	if (!*s->metadata)
		return error_refuse(err, ERROR_PRECONDITION,
				    "there is no key for the cloud: neither in the environment of "
				    "the daemon nor in ~/.aws, and the metadata service is "
				    "switched off");
	r = http_init(&h, NULL, err);
	if (r < 0)
		return r;
	r = credentials_from_metadata(s, &h, &fresh, err);
	http_done(&h);
	if (r < 0) {
		if (err->kind == ERROR_INVALID)
			err->kind = ERROR_UNAVAILABLE;
		return error_wrap(err, r,
				  "there is no key for the cloud in the environment of the daemon "
				  "or in ~/.aws, and the metadata service at %s has none",
				  s->metadata);
	}
	s->now = fresh;
	explicit_bzero(&fresh, sizeof(fresh));
	return 0;
}

int credentials_get(struct credentials_source *s, struct credentials *ret, struct error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&s->lock);
	if (!s->fixed && (!*s->now.id || s->now.ends < clock_real() + CREDENTIALS_EARLY)) {
		r = credentials_refresh(s, err);
		/* Good for some minutes still. */
		if (r < 0 && *s->now.id && s->now.ends > clock_real())
			r = 0;
	}
	if (r == 0)
		*ret = s->now;
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

bool credentials_renew(struct credentials_source *s, const struct credentials *old)
{
	bool more;

	(void)pthread_mutex_lock(&s->lock);
	more = !s->fixed;
	if (more && str_eq(s->now.id, old->id))
		s->now.ends = 0;
	(void)pthread_mutex_unlock(&s->lock);
	return more;
}
