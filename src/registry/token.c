/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "registry/answer.h"
#include "registry/limits.h"
#include "wire/message/fetchmsg.h"

#define TOKEN_MEMORY_MAX (256 << 10)
#define TOKEN_CLIENT "nacre"

static int token_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "ask for a token");
}

/* Secrets do not stay in memory that is given back. */
static void token_wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

const char *token_header(struct registry *r, size_t endpoint)
{
	struct registry_token *t = &r->tokens[endpoint];

	if (t->header && t->expires && clock_mono() >= t->expires)
		token_forget(r, endpoint);
	return t->header;
}

void token_forget(struct registry *r, size_t endpoint)
{
	token_wipe(r->tokens[endpoint].header);
	r->tokens[endpoint].header = NULL;
	r->tokens[endpoint].expires = 0;
}

static const struct registry_credentials *token_credentials(const struct registry *r,
							    const char *host)
{
	for (size_t i = 0; i < r->config->n_credentials; i++)
		if (str_eq(r->config->credentials[i].host, host))
			return &r->config->credentials[i];
	return NULL;
}

bool token_has_credentials(const struct registry *r, size_t endpoint)
{
	return token_credentials(r, r->endpoints.list[endpoint].credentials) != NULL;
}

/* "Authorization: Basic ...", to be wiped. NULL: out of memory. */
static char *token_basic(const struct registry_credentials *c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static const char begin[] = "Authorization: Basic ";
	size_t len = strlen(c->user) + 1 + strlen(c->secret);
	char *plain = str_format("%s:%s", c->user, c->secret);
	char *header = malloc(sizeof(begin) + (len + 2) / 3 * 4);
	char *to;

	if (!plain || !header) {
		token_wipe(plain);
		free(header);
		return NULL;
	}
	memcpy(header, begin, sizeof(begin) - 1);
	to = header + sizeof(begin) - 1;
	for (size_t i = 0; i < len; i += 3) {
		unsigned n = 0;

		for (size_t k = 0; k < 3; k++)
			n = n << 8 | (i + k < len ? (unsigned char)plain[i + k] : 0U);
		*to++ = digits[n >> 18 & 63];
		*to++ = digits[n >> 12 & 63];
		*to++ = i + 1 < len ? digits[n >> 6 & 63] : '=';
		*to++ = i + 2 < len ? digits[n & 63] : '=';
	}
	*to = '\0';
	token_wipe(plain);
	return header;
}

int token_direct(struct registry *r, size_t endpoint, bool basic, struct error *err)
{
	const struct registry_credentials *c =
		token_credentials(r, r->endpoints.list[endpoint].credentials);
	char *header;

	if (!c || c->kind == FETCH_AUTH_IDENTITY || basic != (c->kind == FETCH_AUTH_PASSWORD))
		return 0;
	header = basic ? token_basic(c) : str_format("Authorization: Bearer %s", c->secret);
	if (!header)
		return token_memory(err);
	token_forget(r, endpoint);
	r->tokens[endpoint].header = header;
	r->tokens[endpoint].made++;
	return 1;
}

/* ---- the request ---- */

static int token_check_realm(const struct registry *r, const struct endpoint *e,
			     const struct url *u, struct error *err)
{
	enum url_reach reach = url_reach(u);

	if (!u->tls && e->root.tls)
		return error_refuse(err, ERROR_DENIED,
				    "the token server %s is to be spoken to without TLS", u->host);
	if (str_eq(u->host, e->root.host))
		return 0;
	if (reach == URL_LINK_LOCAL ||
	    (reach == URL_LOOPBACK && url_reach(&e->root) != URL_LOOPBACK))
		return error_refuse(err, ERROR_DENIED,
				    "the token server %s is an address of this machine or link",
				    u->host);
	if (!u->tls && reach != URL_LOOPBACK)
		return error_refuse(err, ERROR_DENIED,
				    "the token server %s is to be spoken to without TLS", u->host);
	return 0;
}

/* Whose credentials the realm may see; NULL: nobody's. */
static const struct registry_credentials *token_for_realm(struct registry *r,
							  const struct endpoint *e,
							  const struct url *realm)
{
	const struct registry_credentials *own = token_credentials(r, e->credentials);
	char origin[URL_SIZE], text[URL_SIZE + 128];
	const struct registry_credentials *c;

	url_format_origin(realm, origin);
	c = token_credentials(r, strstr(origin, "://") + 3);
	if (c)
		return c;
	if (!own || url_same_owner(realm, &e->root))
		return own;
	(void)str_printf(
		text, sizeof(text),
		"%s names %s for tokens, which belongs to somebody else: asked without credentials",
		e->root.host, realm->host);
	r->config->note(r->config->userdata, text);
	return NULL;
}

static int token_pair(struct buf *b, const char *begin, const char *name, const char *value)
{
	_cleanup_str_ char *escaped = malloc(strlen(value) * 3 + 1);
	int r;

	if (!escaped)
		return -ENOMEM;
	url_escape(escaped, value);
	r = buf_addf(b, "%s%s=%s", begin, name, escaped);
	explicit_bzero(escaped, strlen(escaped));
	return r;
}

static int token_add_scopes(struct registry *r, const struct challenge *c, struct buf *b)
{
	char scope[REFERENCE_NAME_MAX + 64];
	int code;

	if (!r->pushes && *c->scope)
		return token_pair(b, "&", "scope", c->scope);
	if (!*r->path)
		return 0;
	(void)str_printf(scope, sizeof(scope), "repository:%s:%s", r->path,
			 r->pushes ? "pull,push" : "pull");
	code = token_pair(b, "&", "scope", scope);
	for (char *const *m = r->config->mounts; code == 0 && r->pushes && m && *m; m++) {
		(void)str_printf(scope, sizeof(scope), "repository:%s:pull", *m);
		code = token_pair(b, "&", "scope", scope);
	}
	return code;
}

static int token_by_get(struct token_request *q, struct registry *r, const struct challenge *c,
			const struct registry_credentials *who)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *path = NULL;
	int code;

	code = buf_addf(&b, "%s%s", q->url.path, strchr(q->url.path, '?') ? "&" : "?");
	if (code == 0)
		code = token_pair(&b, "", "service", c->service);
	if (code == 0)
		code = token_add_scopes(r, c, &b);
	if (code == 0 && who)
		code = token_pair(&b, "&", "account", who->user);
	path = code == 0 ? buf_take_str(&b) : NULL;
	if (!path)
		return -ENOMEM;
	if (str_copy(q->url.path, sizeof(q->url.path), path) < 0)
		return -ENAMETOOLONG;
	if (who)
		q->headers[0] = token_basic(who);
	return !who || q->headers[0] ? 0 : -ENOMEM;
}

static int token_by_post(struct token_request *q, struct registry *r, const struct challenge *c,
			 const struct registry_credentials *who)
{
	int code;

	q->post = true;
	q->headers[0] = strdup("Content-Type: application/x-www-form-urlencoded");
	code = q->headers[0] ? token_pair(&q->body, "", "grant_type", "refresh_token") : -ENOMEM;
	if (code == 0)
		code = token_pair(&q->body, "&", "client_id", TOKEN_CLIENT);
	if (code == 0)
		code = token_pair(&q->body, "&", "service", c->service);
	if (code == 0)
		code = token_add_scopes(r, c, &q->body);
	if (code == 0)
		code = token_pair(&q->body, "&", "refresh_token", who->secret);
	return code;
}

int token_request(struct token_request *ret, struct registry *r, size_t endpoint,
		  const struct challenge *c, struct error *err)
{
	const struct endpoint *e = &r->endpoints.list[endpoint];
	struct token_request *q = ret;
	const struct registry_credentials *who;
	int code;

	*q = (struct token_request){ .body = BUF_INIT };
	code = url_parse(&q->url, c->realm, err);
	if (code == 0)
		code = token_check_realm(r, e, &q->url, err);
	if (code < 0)
		return error_wrap(err, code, "token server");
	q->own = str_eq(q->url.host, e->root.host);
	who = token_for_realm(r, e, &q->url);
	if (who && who->kind == FETCH_AUTH_IDENTITY)
		code = token_by_post(q, r, c, who);
	else
		code = token_by_get(q, r, c, who && who->kind == FETCH_AUTH_PASSWORD ? who : NULL);
	if (code == -ENAMETOOLONG)
		return error_refuse(err, ERROR_INVALID, "the URL of the token server is too long");
	return code < 0 ? token_memory(err) : 0;
}

void token_request_done(struct token_request *q)
{
	for (size_t i = 0; i < ARRAY_SIZE(q->headers); i++)
		token_wipe(q->headers[i]);
	if (q->body.base)
		explicit_bzero(q->body.base, q->body.size);
	buf_done(&q->body);
	*q = (struct token_request){ .body = BUF_INIT };
}

int token_take(struct registry *r, size_t endpoint, const struct buf *answer, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(TOKEN_MEMORY_MAX);
	struct answer_token token;
	char *header;
	int code;

	code = answer_token(&token, &arena, answer->len ? (const char *)buf_data(answer) : "",
			    answer->len, err);
	if (code < 0)
		return error_wrap(err, code, "the answer of the token server");
	header = str_format("Authorization: Bearer %s", token.token);
	if (!header)
		return token_memory(err);
	token_forget(r, endpoint);
	r->tokens[endpoint].header = header;
	r->tokens[endpoint].made++;
	r->tokens[endpoint].expires = clock_mono() + token.seconds * UINT64_C(1000000000);
	return 0;
}
