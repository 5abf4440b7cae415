/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/gce_call.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "base/time/clock.h"

#define GCE_TIMEOUT_MS 20000L

const char *gce_text(const struct json_value *object, const char *name)
{
	const struct json_value *v =
		object && object->kind == JSON_OBJECT ? json_member(object, name) : NULL;

	return v && (v->kind == JSON_STRING || v->kind == JSON_NUMBER) ? v->text : "";
}

/* ---- what an answer means ---- */

enum gce_meaning {
	GCE_AGAIN, /* it has not been done, and may be asked again */
	GCE_DOUBT, /* it may have been done */
	GCE_TOKEN, /* another token is needed */
	GCE_KEY,   /* the account may not do that */
	GCE_FULL,
	GCE_WRONG,
	GCE_MISSING,
	GCE_STATE,
};

static const struct {
	const char *code; /* a '*' at the end stands for any rest */
	enum gce_meaning meaning;
} gce_codes[] = {
	/* Of answers. */
	{ "rateLimitExceeded", GCE_AGAIN },
	{ "userRateLimitExceeded", GCE_AGAIN },
	{ "resourceNotReady", GCE_AGAIN },
	{ "quotaExceeded", GCE_FULL },
	{ "backendError", GCE_DOUBT },
	{ "internalError", GCE_DOUBT },
	{ "notFound", GCE_MISSING },
	/* Of operations. */
	{ "ZONE_RESOURCE_POOL_EXHAUSTED*", GCE_FULL },
	{ "RESOURCE_POOL_EXHAUSTED*", GCE_FULL },
	{ "QUOTA_EXCEEDED", GCE_FULL },
	{ "IP_SPACE_EXHAUSTED*", GCE_FULL },
	{ "INTERNAL_ERROR", GCE_DOUBT },
	{ "RESOURCE_NOT_FOUND", GCE_WRONG },
	{ "INVALID*", GCE_WRONG },
	{ "UNSUPPORTED*", GCE_WRONG },
	{ "PERMISSIONS_ERROR", GCE_KEY },
};

static enum gce_meaning gce_meaning_of(int status, const char *code)
{
	for (size_t i = 0; *code && i < ARRAY_SIZE(gce_codes); i++) {
		const char *pattern = gce_codes[i].code;
		size_t n = strlen(pattern);

		if (pattern[n - 1] == '*' ? strncmp(pattern, code, n - 1) == 0
					  : str_eq(pattern, code))
			return gce_codes[i].meaning;
	}
	switch (status) {
	case 400:
		return GCE_WRONG;
	case 401:
		return GCE_TOKEN;
	case 403:
		return GCE_KEY;
	case 404:
		return GCE_MISSING;
	case 429:
		return GCE_AGAIN;
	default:
		return status >= 500 || status < 400 ? GCE_DOUBT : GCE_STATE;
	}
}

static const struct {
	enum error_kind kind;
	const char *also;
} gce_meanings[] = {
	[GCE_AGAIN] = { ERROR_UNAVAILABLE, "" },
	[GCE_DOUBT] = { ERROR_UNAVAILABLE, "" },
	[GCE_TOKEN] = { ERROR_UNAVAILABLE, "" },
	[GCE_KEY] = { ERROR_PRECONDITION,
		      " (the account of the daemon: doc/cloud.md has the role that it needs)" },
	[GCE_FULL] = { ERROR_EXHAUSTED, "" },
	[GCE_WRONG] = { ERROR_INVALID, "" },
	[GCE_MISSING] = { ERROR_NOT_FOUND, "" },
	[GCE_STATE] = { ERROR_PRECONDITION, "" },
};

/* The first of its errors; what it says is for people. */
static int gce_refuse(int status, const char *code, const char *text, struct cloud_fault *f,
		      bool *ret_again, struct error *err)
{
	enum gce_meaning meaning;

	if (strlen(code) >= sizeof(f->code) || !str_is_clean(code))
		code = "";
	(void)str_copy(f->code, sizeof(f->code), code);
	meaning = gce_meaning_of(status, code);
	f->unknown = meaning == GCE_DOUBT;
	/* The first request with that id had another body. */
	f->doubt = meaning == GCE_WRONG && strstr(text, "requestId");
	f->stale = meaning == GCE_TOKEN;
	*ret_again = meaning == GCE_AGAIN || meaning == GCE_DOUBT;
	return error_refuse(err, gce_meanings[meaning].kind, "the cloud says %d %s: %.300s%s",
			    status, code, text, gce_meanings[meaning].also);
}

int gce_judge(int status, const struct json_value *body, struct cloud_fault *f, bool *ret_again,
	      struct error *err)
{
	const struct json_value *e, *all;

	*f = (struct cloud_fault){ .code = "" };
	*ret_again = false;
	if (status / 100 == 2 && body && body->kind == JSON_OBJECT)
		return 0;
	e = body && body->kind == JSON_OBJECT ? json_member(body, "error") : NULL;
	all = e && e->kind == JSON_OBJECT ? json_member(e, "errors") : NULL;
	if (e)
		return gce_refuse(status,
				  all && all->kind == JSON_ARRAY ? gce_text(all->first, "reason")
								 : "",
				  gce_text(e, "message"), f, ret_again, err);
	/* A status that says what was not done is believed without a body too. */
	return gce_refuse(status / 100 == 2 ? 500 : status, "", "nothing that can be read", f,
			  ret_again, err);
}

/* ---- one try ---- */

struct gce_request {
	const char *method, *path, *body;
};

static int gce_send(struct gce *g, const struct gce_request *q, const struct gce_token *token,
		    struct http_answer *a, struct buf *answer, struct error *err)
{
	const struct gce_account *account = g->account;
	_cleanup_str_ char *url = NULL, *authorization = NULL;
	char base[URL_SIZE];
	const char *headers[] = { NULL, "Content-Type: application/json" };

	url_format(&account->endpoint, base);
	base[strlen(base) - (str_has_suffix(base, "/") ? 1 : 0)] = '\0';
	url = str_format("%s/projects/%s/zones/%s%s", base, account->project, account->zone,
			 q->path);
	authorization = str_format("Authorization: Bearer %s", token->text);
	if (!url || !authorization)
		return error_set(err, -ENOMEM, "ask the cloud");
	headers[0] = authorization;
	return http_ask(&g->http,
			&(struct http_request){ .method = q->method,
						.url = url,
						.headers = headers,
						.n_headers = q->body ? 2 : 1,
						.body = q->body,
						.body_len = q->body ? strlen(q->body) : 0,
						.timeout_ms = GCE_TIMEOUT_MS,
						.answer_max = GCE_ANSWER_MAX,
						.fresh = g->once },
			a, answer, err);
}

static int gce_try(struct gce *g, const struct gce_request *q, struct gce_token *token,
		   struct arena *arena, const struct json_value **ret, struct cloud_fault *f,
		   bool *ret_again, struct error *err)
{
	_cleanup_(buf_done) struct buf answer = BUF_INIT;
	struct error own = ERROR_INIT;
	struct json_value *root = NULL;
	struct http_answer a;
	int r = gce_tokens_get(&g->account->tokens, token, err);

	*f = (struct cloud_fault){ .code = "" };
	*ret_again = r < 0 && err->kind == ERROR_UNAVAILABLE;
	/* A key that is refused may have been replaced in its file. */
	f->stale = r < 0 && g->account->tokens.key && err->kind == ERROR_PRECONDITION;
	if (r < 0)
		return r;
	r = gce_send(g, q, token, &a, &answer, err);
	if (r < 0) {
		*ret_again = err->kind == ERROR_UNAVAILABLE;
		f->unknown = true;
		return r;
	}
	if (json_parse(&root, arena, answer.len ? buf_data(&answer) : (const uint8_t *)"",
		       answer.len, &own) == -ENOMEM) {
		f->unknown = true;
		return error_copy(err, &own);
	}
	r = gce_judge(a.status, root, f, ret_again, err);
	f->date = a.date;
	if (r == 0)
		*ret = root;
	else if (a.status == 401)
		gce_tokens_drop(&g->account->tokens, token);
	return r;
}

/* ---- again and again ---- */

int gce_call(struct gce *g, const char *method, const char *path, const char *body,
	     struct arena *arena, const struct json_value **ret, struct cloud_fault *f,
	     struct error *err)
{
	const struct gce_request q = { method, path, body };
	nsec_t until = clock_mono() + GCE_PATIENCE;
	bool again, unknown = false, renewed = false;
	int pause_ms = 0;

	for (;;) {
		struct gce_token token;
		int r;

		*err = (struct error)ERROR_INIT;
		r = gce_try(g, &q, &token, arena, ret, f, &again, err);
		explicit_bzero(&token, sizeof(token));
		/* A result stays unknown, once a try left it so, until a try succeeds. */
		unknown = unknown || f->unknown;
		f->unknown = r < 0 && unknown;
		/* A token that is new and refused is so for good. */
		if (f->stale && err->kind == ERROR_UNAVAILABLE && !renewed) {
			renewed = again = true;
			f->stale = false;
		}
		if (r == 0 || !again || clock_mono() >= until)
			return r;
		http_rest(&pause_ms);
	}
}

static int gce_operation_error(const struct json_value *e, struct cloud_fault *f, struct error *err)
{
	const struct json_value *all = e->kind == JSON_OBJECT ? json_member(e, "errors") : NULL;
	const struct json_value *first = all && all->kind == JSON_ARRAY ? all->first : NULL;
	bool again;

	return gce_refuse(409, gce_text(first, "code"), gce_text(first, "message"), f, &again, err);
}

int gce_wait(struct gce *g, const struct json_value *operation, struct arena *arena,
	     struct cloud_fault *f, struct error *err)
{
	nsec_t until = clock_mono() + GCE_PATIENCE;
	const struct json_value *e;
	int pause_ms = 0, r;

	while (!str_eq(gce_text(operation, "status"), "DONE")) {
		_cleanup_str_ char *path =
			str_format("/operations/%s", gce_text(operation, "name"));

		if (clock_mono() >= until) {
			f->unknown = true;
			return error_refuse(err, ERROR_UNAVAILABLE,
					    "the cloud has not done it in %d seconds",
					    (int)(GCE_PATIENCE / NSEC_PER_SEC));
		}
		http_rest(&pause_ms);
		if (!path)
			return error_set(err, -ENOMEM, "wait for the cloud");
		r = gce_call(g, "GET", path, NULL, arena, &operation, f, err);
		/* Records of operations end: what became of it the instance tells. */
		if (r < 0 && err->kind == ERROR_NOT_FOUND)
			return r;
		if (r < 0) {
			f->unknown = true;
			err->kind = ERROR_UNAVAILABLE;
			return r;
		}
	}
	e = json_member(operation, "error");
	return e ? gce_operation_error(e, f, err) : 0;
}
