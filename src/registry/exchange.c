/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An exchange has one transfer at a time: its own, or one to a token server in between. What ends
 * a transfer decides what comes next, from the cheapest to the last:
 *
 *   another origin (3xx)       the same question there, without credentials
 *   401                        a token or credentials, then the same question again
 *   416                        the same question for the whole
 *   cut, stalled               the same question after a pause, from where it was cut
 *   429, 5xx, no connection    the next endpoint, or from the last one the same after a pause
 *   anything else              the next endpoint, or the end
 */

#include "registry/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "registry/answer.h"
#include "registry/header.h"
#include "registry/limits.h"
#include "registry/noproxy.h"
#include "wire/message/fetchmsg.h"

#define EXCHANGE_ATTEMPTS_MAX 200
#define EXCHANGE_CHALLENGES_MAX 2
#define EXCHANGE_PROGRESS (64 << 10)
#define EXCHANGE_MILLI UINT64_C(1000000)

static const struct transfer_ops exchange_transfer_ops;

static const struct endpoint *exchange_endpoint(const struct exchange *x)
{
	return &x->registry->endpoints.list[x->endpoint];
}

static void exchange_note(struct exchange *x, const struct error *err, const char *then)
{
	const struct registry_config *config = x->registry->config;
	char origin[URL_SIZE], text[URL_SIZE + ERROR_TEXT_MAX];

	url_format_origin(&exchange_endpoint(x)->root, origin);
	(void)str_printf(text, sizeof(text), "%s: %s: %s; %s", origin, x->request.what,
			 error_text(err), then);
	config->note(config->userdata, text);
}

static void exchange_finish(struct exchange *x, const struct error *err)
{
	struct error last = ERROR_INIT;

	token_request_done(&x->token);
	buf_done(&x->body);
	list_remove(&x->link);
	x->running = false;
	(void)error_copy(&last, err);
	x->ops->on_end(x, err ? &last : NULL);
}

/* ---- what comes after a failure ---- */

static bool exchange_can(const struct exchange *x, size_t endpoint)
{
	const struct endpoint *e = &x->registry->endpoints.list[endpoint];

	/* What a mirror says of credentials is about its own. */
	if (e->mirror && !*x->registry->path)
		return false;
	return (e->can & x->request.need) == x->request.need;
}

static size_t exchange_next_endpoint(const struct exchange *x, size_t from)
{
	while (from < x->registry->endpoints.n && !exchange_can(x, from))
		from++;
	return from;
}

static bool exchange_is_last(const struct exchange *x)
{
	return x->request.at ||
	       exchange_next_endpoint(x, x->endpoint + 1) == x->registry->endpoints.n;
}

/* This endpoint has no answer: the next one is asked, or this is the end. */
static void exchange_give_up(struct exchange *x, const struct error *err)
{
	char origin[URL_SIZE];

	if (!exchange_is_last(x) && err->kind != ERROR_FAULT) {
		exchange_note(x, err, "the next one is asked");
		x->endpoint = exchange_next_endpoint(x, x->endpoint + 1);
		x->n_failures = 0;
		x->n_challenges = 0;
		x->no_range = false;
		x->due = clock_mono();
		return;
	}
	(void)error_copy(&x->err, err);
	url_format_origin(&exchange_endpoint(x)->root, origin);
	(void)error_wrap(&x->err, x->err.code, "registry %s (%s): %s", x->registry->host, origin,
			 x->request.what);
	if (x->err.kind == ERROR_UNAVAILABLE)
		(void)error_wrap(&x->err, x->err.code, "RegistryUnavailable");
	if (x->err.kind == ERROR_UNAUTHENTICATED)
		(void)error_wrap(&x->err, x->err.code, "Unauthenticated");
	exchange_finish(x, &x->err);
}

/* xorshift: only so that those who were refused together do not come back together. */
static uint64_t exchange_jitter(struct registry *r, uint64_t ms)
{
	uint64_t v = r->jitter | 1;

	v ^= v << 13;
	v ^= v >> 7;
	v ^= v << 17;
	r->jitter = v;
	return ms / 2 + v % (ms / 2 + 1);
}

static uint64_t exchange_pause(struct exchange *x)
{
	const struct registry_settings *s = &x->registry->settings;
	uint64_t ms = s->retry_ms, asked = 0;

	for (unsigned i = 1; i < x->n_failures && ms < s->retry_max_ms; i++)
		ms *= 2;
	ms = exchange_jitter(x->registry, MIN(ms, (uint64_t)s->retry_max_ms));
	if (header_retry_after(x->transfer.head.retry_after, clock_real(), s->retry_max_ms, &asked))
		ms = MAX(ms, asked);
	return ms;
}

/* Whether the last answer is that too much was asked, and that has not been waited out yet: tries
 * are not counted then, but the time that they take. */
static bool exchange_is_throttled(const struct exchange *x)
{
	return x->transfer.head.status == 429 &&
	       x->throttled_ms < x->registry->settings.throttled_ms;
}

static void exchange_retry(struct exchange *x, const struct error *err)
{
	bool throttled = exchange_is_throttled(x);
	char then[64];
	uint64_t ms;

	/* Who got on is not at the end of his tries. */
	if (x->n_heard >= EXCHANGE_PROGRESS)
		x->n_failures = 0;
	if (x->request.once || (x->n_failures >= x->registry->settings.n_retries && !throttled) ||
	    x->n_attempts >= EXCHANGE_ATTEMPTS_MAX) {
		exchange_give_up(x, err);
		return;
	}
	x->n_failures++;
	ms = exchange_pause(x);
	x->throttled_ms += throttled ? ms : 0;
	(void)str_printf(then, sizeof(then), "tried again in %llu ms", (unsigned long long)ms);
	exchange_note(x, err, then);
	x->due = clock_mono() + ms * EXCHANGE_MILLI;
}

static void exchange_broken(struct exchange *x, const struct error *err)
{
	bool again = x->transfer.fault == TRANSFER_FAULT_CUT ||
		     (x->transfer.fault == TRANSFER_FAULT_CONNECT && exchange_is_last(x));

	if (again)
		exchange_retry(x, err);
	else
		exchange_give_up(x, err);
}

/* ---- sending ---- */

static int exchange_add(char ***headers, const char *name, const char *value)
{
	_cleanup_str_ char *line = str_format("%s: %s", name, value);

	return line ? strv_add(headers, line) : -ENOMEM;
}

static int exchange_headers(struct exchange *x, char ***ret)
{
	const struct exchange_request *q = &x->request;
	const struct endpoint *e = exchange_endpoint(x);
	const char *token = x->stranger ? NULL : token_header(x->registry, x->endpoint);
	char range[48];
	int r = strv_add(ret, "Expect:");

	if (r == 0 && q->accept)
		r = exchange_add(ret, "Accept", q->accept);
	if (r == 0 && q->content_type)
		r = exchange_add(ret, "Content-Type", q->content_type);
	if (r == 0 && q->content_range)
		r = exchange_add(ret, "Content-Range", q->content_range);
	if (r == 0 && x->from && !x->no_range) {
		(void)str_printf(range, sizeof(range), "bytes=%llu-", (unsigned long long)x->from);
		r = exchange_add(ret, "Range", range);
	}
	for (char **h = x->stranger ? NULL : e->headers; r == 0 && h && *h; h++)
		r = strv_add(ret, *h);
	x->told = token ? x->registry->tokens[x->endpoint].made : 0;
	return r == 0 && token ? strv_add(ret, token) : r;
}

/* This machine's own registries are nothing for a proxy. NULL: the host itself is asked. */
static const char *exchange_proxy(const struct exchange *x, const struct url *u)
{
	const struct registry_config *config = x->registry->config;

	if (url_reach(u) == URL_LOOPBACK || noproxy_has(config->no_proxy, u))
		return NULL;
	return u->tls ? config->https_proxy : config->http_proxy;
}

static void exchange_limits(const struct exchange *x, struct transfer_request *to)
{
	const struct registry_settings *s = &x->registry->settings;

	to->endpoint = exchange_endpoint(x);
	to->system_ca = &x->registry->endpoints.system_ca;
	to->loopback_ok = url_reach(&to->endpoint->root) == URL_LOOPBACK;
	to->proxy = exchange_proxy(x, to->url);
	to->connect_ms = s->connect_ms;
	to->stall_ms = s->stall_ms;
	to->min_rate = s->min_rate;
}

static void exchange_fault(struct exchange *x, int r, const struct error *err)
{
	struct error e = *err;

	if (!e.code)
		(void)error_set(&e, r, "ask a registry");
	exchange_give_up(x, &e);
}

static void exchange_send(struct exchange *x)
{
	const struct exchange_request *q = &x->request;
	struct transfer_request to = { .method = q->method,
				       .url = &x->url,
				       .stranger = x->stranger,
				       .has_body = q->has_body,
				       .body_fd = q->has_body ? q->body_fd : -1,
				       .body_at = q->body_at,
				       .body = q->body,
				       .body_len = q->body_len };
	_cleanup_strv_ char **headers = NULL;
	struct error err = ERROR_INIT;
	int r;

	buf_clear(&x->body);
	exchange_limits(x, &to);
	/* A document that comes so slowly comes to nothing. */
	to.total_ms = q->is_long ? 0 : to.stall_ms + x->registry->settings.connect_ms;
	r = exchange_headers(x, &headers);
	if (r == 0) {
		to.headers = headers;
		r = transfer_start(&x->transfer, x->registry->transfers, &to,
				   &exchange_transfer_ops, &err);
	}
	if (r < 0)
		exchange_fault(x, r, &err);
}

static int exchange_make_url(struct exchange *x, struct error *err)
{
	const struct endpoint *e = exchange_endpoint(x);
	char path[URL_PATH_MAX + 1], ns[FETCH_HOST_MAX * 3 + 1] = "";
	const char *mark = strchr(x->request.path ?: "", '?') ? "&" : "?";

	if (x->request.at) {
		x->url = *x->request.at;
		x->stranger = !url_same_origin(&x->url, &e->root);
		return 0;
	}
	if (e->mirror)
		url_escape(ns, x->registry->host);
	if (str_printf(path, sizeof(path), "%s/%s%s%s%s%s", e->root.path, x->registry->path,
		       x->request.path, e->mirror ? mark : "", e->mirror ? "ns=" : "", ns) < 0)
		return error_refuse(err, ERROR_INVALID, "the URL is too long");
	x->url = e->root;
	(void)str_copy(x->url.path, sizeof(x->url.path), path);
	x->stranger = false;
	return 0;
}

static void exchange_attempt(struct exchange *x)
{
	struct error err = ERROR_INIT;
	int r;

	x->due = 0;
	x->n_attempts++;
	x->n_redirects = 0;
	/* A token server that was down for a moment is no reason to call credentials wrong. */
	x->n_challenges = 0;
	x->n_heard = 0;
	if (x->ops->on_attempt)
		x->ops->on_attempt(x);
	r = exchange_make_url(x, &err);
	/* Credentials that need no question. */
	if (r == 0 && !x->stranger && !token_header(x->registry, x->endpoint))
		r = token_direct(x->registry, x->endpoint, false, &err);
	if (r < 0)
		exchange_give_up(x, &err);
	else
		exchange_send(x);
}

/* ---- redirects ---- */

static bool exchange_is_redirect(const struct exchange *x, unsigned status)
{
	bool asks = str_eq(x->request.method, "GET") || str_eq(x->request.method, "HEAD");

	return status == 307 || status == 308 ||
	       (asks && (status == 301 || status == 302 || status == 303));
}

/*
 * Should: go where the answer says without credentials, and with no less protection. Must not: go
 * to what only this machine may reach.
 */
static int exchange_check_target(const struct exchange *x, const struct url *to, struct error *err)
{
	enum url_reach reach = url_reach(to);
	bool near = url_reach(&exchange_endpoint(x)->root) == URL_LOOPBACK;

	if (x->url.tls && !to->tls)
		return error_refuse(err, ERROR_DENIED, "it redirects from https to http (%s)",
				    to->host);
	if (url_same_origin(to, &exchange_endpoint(x)->root))
		return 0;
	if (reach == URL_LINK_LOCAL || (reach == URL_LOOPBACK && !near))
		return error_refuse(err, ERROR_DENIED,
				    "it redirects to %s, an address of this machine or link",
				    to->host);
	return 0;
}

static void exchange_redirect(struct exchange *x)
{
	struct error err = ERROR_INIT;
	struct url to;
	int r;

	if (++x->n_redirects > REGISTRY_REDIRECTS_MAX) {
		(void)error_refuse(&err, ERROR_UNAVAILABLE, "more than %d redirects",
				   REGISTRY_REDIRECTS_MAX);
		exchange_give_up(x, &err);
		return;
	}
	r = url_join(&to, &x->url, x->transfer.head.location, &err);
	if (r < 0)
		(void)error_wrap(&err, r, "a redirect");
	else
		r = exchange_check_target(x, &to, &err);
	if (r < 0) {
		exchange_give_up(x, &err);
		return;
	}
	x->stranger = x->stranger || !url_same_origin(&to, &x->url);
	x->url = to;
	exchange_send(x);
}

/* ---- tokens ---- */

static void exchange_denied(struct exchange *x, const char *who)
{
	bool known = token_has_credentials(x->registry, x->endpoint);
	char reason[ANSWER_REASON_SIZE];
	struct error err = ERROR_INIT;

	answer_reason(reason, buf_data(&x->body), x->body.len);
	(void)error_refuse(&err, ERROR_UNAUTHENTICATED, "%s%s%s%s%s", who,
			   known ? " does not accept the credentials"
				 : " wants credentials, and none were given",
			   *reason ? " (" : "", reason, *reason ? ")" : "");
	exchange_give_up(x, &err);
}

static void exchange_ask_token(struct exchange *x)
{
	struct error err = ERROR_INIT;
	struct transfer_request to = { .has_body = false, .body_fd = -1 };
	int r;

	token_request_done(&x->token);
	r = token_request(&x->token, x->registry, x->endpoint, &x->transfer.head.challenge, &err);
	if (r == 0) {
		to.method = x->token.post ? "POST" : "GET";
		to.url = &x->token.url;
		to.headers = x->token.headers;
		to.stranger = !x->token.own;
		to.has_body = x->token.post;
		to.body = buf_data(&x->token.body);
		to.body_len = x->token.body.len;
		exchange_limits(x, &to);
		to.total_ms = to.stall_ms + to.connect_ms;
		buf_clear(&x->body);
		x->asks_token = true;
		r = transfer_start(&x->transfer, x->registry->transfers, &to,
				   &exchange_transfer_ops, &err);
	}
	if (r < 0) {
		x->asks_token = false;
		exchange_give_up(x, &err);
	}
}

static void exchange_challenged(struct exchange *x)
{
	const struct transfer_head *h = &x->transfer.head;
	struct error err = ERROR_INIT;
	int r = 0;

	/* Another exchange has been told more meanwhile. */
	if (!x->stranger && token_header(x->registry, x->endpoint) &&
	    x->registry->tokens[x->endpoint].made != x->told) {
		exchange_send(x);
		return;
	}
	if (x->stranger || !h->challenged || ++x->n_challenges > EXCHANGE_CHALLENGES_MAX) {
		exchange_denied(x, x->stranger ? x->url.host : "it");
		return;
	}
	token_forget(x->registry, x->endpoint);
	if (h->challenge.bearer) {
		exchange_ask_token(x);
		return;
	}
	if (h->challenge.basic && !x->told)
		r = token_direct(x->registry, x->endpoint, true, &err);
	if (r < 0)
		exchange_fault(x, r, &err);
	else if (r > 0)
		exchange_send(x);
	else
		exchange_denied(x, "it");
}

/* ---- answers ---- */

/*
 * What whoever asks can do about it. What is not here may pass by itself (UNAVAILABLE), and of 4xx
 * only what says so; any other is a registry, or something in front of it, that will not do this,
 * however often it is asked.
 */
static const struct {
	unsigned status;
	enum error_kind kind;
	const char *means; /* for those that say nothing themselves */
} exchange_statuses[] = {
	{ 400, ERROR_INVALID, "it does not take the request" },
	{ 401, ERROR_UNAUTHENTICATED, "" },
	{ 403, ERROR_DENIED, "" },
	{ 404, ERROR_NOT_FOUND, "" },
	{ 405, ERROR_PRECONDITION, "it does not do this here" },
	{ 406, ERROR_PRECONDITION, "it has it in no form that is understood here" },
	{ 407, ERROR_PRECONDITION, "a proxy wants credentials" },
	{ 408, ERROR_UNAVAILABLE, "" },
	{ 410, ERROR_NOT_FOUND, "it was there, and is gone" },
	{ 413, ERROR_PRECONDITION, "it is too large for it" },
	{ 425, ERROR_UNAVAILABLE, "" },
	{ 429, ERROR_UNAVAILABLE, "" },
	{ 451, ERROR_DENIED, "the law forbids it" },
};

static enum error_kind exchange_kind(unsigned status, const char **ret_means)
{
	*ret_means = "";
	for (size_t i = 0; i < ARRAY_SIZE(exchange_statuses); i++) {
		if (exchange_statuses[i].status != status)
			continue;
		*ret_means = exchange_statuses[i].means;
		return exchange_statuses[i].kind;
	}
	return status / 100 == 4 ? ERROR_PRECONDITION : ERROR_UNAVAILABLE;
}

static void exchange_status_error(struct exchange *x, unsigned status, const char *who,
				  struct error *err)
{
	char reason[ANSWER_REASON_SIZE];
	const char *means;
	enum error_kind kind = exchange_kind(status, &means);

	/* What a token server has not is no image, and what it does not take nobody wrote here. */
	if (x->asks_token && (kind == ERROR_NOT_FOUND || kind == ERROR_INVALID))
		kind = ERROR_PRECONDITION;
	answer_reason(reason, buf_data(&x->body), x->body.len);
	/* That is how a server with TLS answers, and a registry of this machine is asked without.
	 */
	if (status == 400 && !x->url.tls && !x->asks_token)
		means = "it does not take the request, which came without TLS: hosts.toml or a "
			"certificate below certs.d asks for that";
	if (*reason)
		means = reason;
	(void)error_refuse(err, kind, "%s answers with status %u%s%s%s", who, status,
			   *means ? " (" : "", means, *means ? ")" : "");
}

static void exchange_refused(struct exchange *x, unsigned status, const char *who)
{
	struct error err = ERROR_INIT;
	bool passing;

	exchange_status_error(x, status, who, &err);
	x->asks_token = false;
	passing = err.kind == ERROR_UNAVAILABLE && status >= 400 && status <= 599;
	if (passing && exchange_is_last(x))
		exchange_retry(x, &err);
	else
		exchange_give_up(x, &err);
}

/* OAuth 2 has 400 for a token or password that is wrong. */
static bool exchange_token_is_denied(const struct exchange *x, unsigned status)
{
	return status == 401 || status == 403 ||
	       (status == 400 && token_has_credentials(x->registry, x->endpoint));
}

static void exchange_token_end(struct exchange *x, const struct error *failed)
{
	unsigned status = x->transfer.head.status;
	char who[URL_HOST_MAX + 32];
	struct error err = ERROR_INIT;
	int r;

	(void)str_printf(who, sizeof(who), "the token server %s", x->token.url.host);
	if (!failed && status != 200 && !exchange_token_is_denied(x, status)) {
		exchange_refused(x, status, who);
		return;
	}
	x->asks_token = false;
	if (failed) {
		err = *failed;
		(void)error_wrap(&err, err.code, "%s", who);
		exchange_broken(x, &err);
	} else if (exchange_token_is_denied(x, status)) {
		exchange_denied(x, who);
	} else {
		r = token_take(x->registry, x->endpoint, &x->body, &err);
		if (r < 0)
			exchange_give_up(x, &err);
		else
			exchange_send(x);
	}
}

/* An answer without a length has ended early where the connection has. */
static void exchange_good(struct exchange *x)
{
	struct error err = ERROR_INIT;

	if (!x->request.whole || x->begins + x->n_heard >= x->request.whole) {
		exchange_finish(x, NULL);
		return;
	}
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the answer ended at byte %llu of %llu",
			   (unsigned long long)(x->begins + x->n_heard),
			   (unsigned long long)x->request.whole);
	exchange_retry(x, &err);
}

static void exchange_end(struct exchange *x)
{
	unsigned status = x->transfer.head.status;

	if (status / 100 == 2)
		exchange_good(x);
	else if (status == 401)
		exchange_challenged(x);
	else if (exchange_is_redirect(x, status))
		exchange_redirect(x);
	else if (status == 416 && x->from && !x->no_range) {
		x->no_range = true;
		x->due = clock_mono();
	} else
		exchange_refused(x, status, x->stranger ? x->url.host : "it");
}

static int exchange_check_range(struct exchange *x, struct error *err)
{
	const struct transfer_head *h = &x->transfer.head;
	struct header_range range;

	x->begins = 0;
	if (h->status != 206)
		return 0;
	if (!x->from || x->no_range || !header_content_range(h->content_range, &range) ||
	    range.first != x->from)
		return error_refuse(err, ERROR_INVALID,
				    "it answers with another part than was asked for (\"%.60s\")",
				    h->content_range);
	x->begins = range.first;
	return 0;
}

static int exchange_on_head(struct transfer *t, struct error *err)
{
	struct exchange *x = container_of(t, struct exchange, transfer);
	int r;

	if (x->asks_token || t->head.status / 100 != 2)
		return 0;
	x->n_challenges = 0;
	r = exchange_check_range(x, err);
	return r == 0 ? x->ops->on_head(x, err) : r;
}

static int exchange_on_data(struct transfer *t, const void *data, size_t len, struct error *err)
{
	struct exchange *x = container_of(t, struct exchange, transfer);

	if (!x->asks_token && t->head.status / 100 == 2) {
		x->n_heard += len;
		return x->ops->on_data(x, data, len, err);
	}
	if (x->asks_token && x->body.len + len > 2 * REGISTRY_TOKEN_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "the answer has more than %d bytes",
				    2 * REGISTRY_TOKEN_MAX);
	/* The beginning of an explanation is enough. */
	len = MIN(len, MAX((size_t)2 * REGISTRY_TOKEN_MAX, x->body.len) - x->body.len);
	return buf_add(&x->body, data, len) < 0 ? error_set(err, -ENOMEM, "read an answer") : 0;
}

static void exchange_on_end(struct transfer *t, const struct error *err)
{
	struct exchange *x = container_of(t, struct exchange, transfer);

	if (x->asks_token)
		exchange_token_end(x, err);
	else if (err)
		exchange_broken(x, err);
	else
		exchange_end(x);
}

static const struct transfer_ops exchange_transfer_ops = { exchange_on_head, exchange_on_data,
							   exchange_on_end };

/* ---- life ---- */

int exchange_start(struct exchange *x, struct registry *r, const struct exchange_request *request,
		   const struct exchange_ops *ops, struct error *err)
{
	*x = (struct exchange){
		.registry = r, .ops = ops, .request = *request, .body = BUF_INIT, .err = ERROR_INIT
	};
	list_init(&x->link);
	x->endpoint = exchange_next_endpoint(x, request->first % r->endpoints.n);
	if (x->endpoint == r->endpoints.n)
		x->endpoint = exchange_next_endpoint(x, 0);
	if (request->at)
		x->endpoint = request->endpoint;
	if (x->endpoint >= r->endpoints.n)
		return error_refuse(err, ERROR_PRECONDITION,
				    "registry %s: no host is configured for this", r->host);
	x->running = true;
	x->due = clock_mono();
	list_add_tail(&r->exchanges, &x->link);
	return 0;
}

void exchange_stop(struct exchange *x)
{
	if (!x->running)
		return;
	transfer_stop(&x->transfer);
	token_request_done(&x->token);
	buf_done(&x->body);
	list_remove(&x->link);
	x->running = false;
}

void exchange_turn(struct registry *r)
{
	nsec_t now = clock_mono();
	struct exchange *x;

	list_for_each (x, &r->exchanges, struct exchange, link) {
		if (x->due && x->due <= now)
			exchange_attempt(x);
	}
}

int exchange_wait(const struct registry *r, int max)
{
	nsec_t now = clock_mono();
	uint64_t wait = (uint64_t)max;
	struct exchange *x;

	list_for_each (x, &r->exchanges, struct exchange, link) {
		if (x->due)
			wait = MIN(wait, x->due <= now ? 0 : (x->due - now) / EXCHANGE_MILLI + 1);
	}
	return (int)wait;
}
