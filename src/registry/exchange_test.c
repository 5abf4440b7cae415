/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Exchanges over transfers of this file, which answer as a test has written down: one answer after
 * the other, whoever is asked. (These functions stand in the place of transfer.c.)
 */

#include "registry/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "registry/token.h"
#include "registry/transfer.h"
#include "unit.h"
#include "wire/message/fetchmsg.h"

#define BED_ANSWERS 64
#define BED_TURNS 1000

struct answer {
	unsigned status; /* 0: `fault` in place of an answer */
	enum transfer_fault fault;
	const char *body, *location, *retry_after, *content_range;
	bool bearer;
};

/* What was asked, and what is answered. */
static struct {
	struct answer answers[BED_ANSWERS];
	unsigned n_answers, n_asked;
	char urls[BED_ANSWERS][URL_SIZE];
	char headers[BED_ANSWERS][256];
	bool strangers[BED_ANSWERS];
	struct transfer *running;
	struct endpoint endpoints[3];
	struct registry_token tokens[3];
	struct registry_config config;
	struct registry registry;
	struct exchange exchange;
	unsigned n_notes, n_ends, n_heads;
	char note[1024];
	struct buf heard;
	struct error err;
	int bad_head; /* a negative errno: the head of the first good answer is no good */
} bed;

/* ---- transfers ---- */

int transfers_prepare(struct error *err _unused_)
{
	return 0;
}

int transfers_init(struct transfers *all _unused_, struct error *err _unused_)
{
	return 0;
}

void transfers_done(struct transfers *all _unused_)
{
}

int transfer_start(struct transfer *t, struct transfers *all _unused_,
		   const struct transfer_request *q, const struct transfer_ops *ops,
		   struct error *err _unused_)
{
	unsigned n = bed.n_asked++;

	CHECK(!bed.running && n < BED_ANSWERS);
	*t = (struct transfer){ .ops = ops, .err = ERROR_INIT };
	url_format(q->url, bed.urls[n]);
	bed.strangers[n] = q->stranger;
	bed.headers[n][0] = '\0';
	for (char *const *h = q->headers; h && *h; h++) {
		size_t len = strlen(bed.headers[n]);

		(void)str_printf(bed.headers[n] + len, sizeof(bed.headers[n]) - len, "%s;", *h);
	}
	bed.running = t;
	return 0;
}

void transfer_stop(struct transfer *t _unused_)
{
	bed.running = NULL;
}

static void bed_answer(struct transfer *t, const struct answer *a)
{
	struct error err = ERROR_INIT;

	t->head.status = a->status;
	t->fault = a->fault;
	(void)str_copy(t->head.location, sizeof(t->head.location), a->location ?: "");
	(void)str_copy(t->head.retry_after, sizeof(t->head.retry_after), a->retry_after ?: "");
	(void)str_copy(t->head.content_range, sizeof(t->head.content_range),
		       a->content_range ?: "");
	t->head.challenged = a->status == 401;
	t->head.challenge.bearer = a->bearer;
	t->head.challenge.basic = !a->bearer;
	(void)str_copy(t->head.challenge.realm, sizeof(t->head.challenge.realm),
		       "https://far.example/token");
	if (!a->status)
		(void)error_refuse(&err, ERROR_UNAVAILABLE, "the line is cut");
	if (!err.code && t->ops->on_head(t, &err) == 0 && a->body)
		(void)t->ops->on_data(t, a->body, strlen(a->body), &err);
	/* What the exchange said no to is its own word. */
	if (err.code && a->status)
		t->fault = TRANSFER_FAULT_OURS;
	t->ops->on_end(t, err.code ? &err : NULL);
}

/* ---- who asks ---- */

static int bed_on_head(struct exchange *x _unused_, struct error *err)
{
	bed.n_heads++;
	if (bed.n_heads == 1 && bed.bad_head < 0)
		return error_refuse(err, ERROR_INVALID, "it is something else");
	return 0;
}

static int bed_on_data(struct exchange *x _unused_, const void *data, size_t len,
		       struct error *err _unused_)
{
	return buf_add(&bed.heard, data, len);
}

static void bed_on_end(struct exchange *x _unused_, const struct error *err)
{
	bed.n_ends++;
	if (err)
		bed.err = *err;
}

static const struct exchange_ops bed_ops = { NULL, bed_on_head, bed_on_data, bed_on_end };

static void bed_note(void *userdata _unused_, const char *text)
{
	bed.n_notes++;
	(void)str_copy(bed.note, sizeof(bed.note), text);
}

static void bed_done(void)
{
	for (size_t i = 0; i < bed.registry.endpoints.n; i++)
		token_forget(&bed.registry, i);
	buf_done(&bed.heard);
}

/* A registry with so many hosts, the last of which is its own; no pause is long. */
static void bed_make(size_t n)
{
	static const char *const roots[] = { "https://one.test/v2", "https://two.test/v2",
					     "https://far.example/v2" };
	struct error err = ERROR_INIT;

	bed_done();
	memset(&bed, 0, sizeof(bed));
	bed.err = (struct error)ERROR_INIT;
	bed.config = (struct registry_config){ .name = "far.example/a/b", .note = bed_note };
	bed.registry =
		(struct registry){ .config = &bed.config,
				   .settings = { .n_retries = 3, .retry_ms = 1, .retry_max_ms = 2 },
				   .endpoints = { .list = bed.endpoints, .n = n },
				   .tokens = bed.tokens,
				   .path = "a/b" };
	list_init(&bed.registry.exchanges);
	(void)str_copy(bed.registry.host, sizeof(bed.registry.host), "far.example");
	for (size_t i = 0; i < n; i++) {
		struct endpoint *e = &bed.endpoints[i];

		CHECK_INT(url_parse(&e->root, roots[ARRAY_SIZE(roots) - n + i], &err), 0);
		e->credentials = e->root.host;
		e->can = FETCH_CAN_PULL | FETCH_CAN_RESOLVE;
		e->mirror = i + 1 < n;
	}
}

static void bed_says(const struct answer *a)
{
	bed.answers[bed.n_answers++] = *a;
}

static void bed_says_status(unsigned status)
{
	bed_says(&(struct answer){ .status = status });
}

/* Until the end of the question. */
static void bed_ask(const struct exchange_request *q)
{
	struct error err = ERROR_INIT;

	CHECK_INT(exchange_start(&bed.exchange, &bed.registry, q, &bed_ops, &err), 0);
	for (unsigned i = 0; i < BED_TURNS && !bed.n_ends; i++) {
		struct timespec pause = { .tv_nsec = exchange_wait(&bed.registry, 5) * 1000000L };
		struct transfer *t;

		(void)nanosleep(&pause, NULL);
		exchange_turn(&bed.registry);
		t = bed.running;
		if (!t)
			continue;
		bed.running = NULL;
		CHECK(bed.n_asked <= bed.n_answers);
		bed_answer(t, &bed.answers[bed.n_asked - 1]);
	}
	CHECK_INT(bed.n_ends, 1);
	exchange_stop(&bed.exchange);
}

static const struct exchange_request manifest = {
	.method = "GET", .what = "manifest 1", .path = "/manifests/1", .need = FETCH_CAN_PULL
};

/* ---- tests ---- */

static void each_status_is_a_kind(void)
{
	static const struct {
		unsigned status;
		enum error_kind kind;
	} cases[] = {
		{ 300, ERROR_UNAVAILABLE },  { 400, ERROR_INVALID },
		{ 402, ERROR_PRECONDITION }, { 403, ERROR_DENIED },
		{ 404, ERROR_NOT_FOUND },    { 405, ERROR_PRECONDITION },
		{ 406, ERROR_PRECONDITION }, { 407, ERROR_PRECONDITION },
		{ 409, ERROR_PRECONDITION }, { 410, ERROR_NOT_FOUND },
		{ 413, ERROR_PRECONDITION }, { 416, ERROR_PRECONDITION },
		{ 451, ERROR_DENIED },       { 499, ERROR_PRECONDITION },
		{ 600, ERROR_UNAVAILABLE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char want[128];

		bed_make(1);
		bed_says_status(cases[i].status);
		bed_ask(&manifest);
		CHECK_INT(bed.err.kind, cases[i].kind);
		CHECK_INT(bed.n_asked, 1);
		(void)str_printf(want, sizeof(want),
				 "%sregistry far.example (https://far.example): manifest 1: it "
				 "answers with status %u",
				 cases[i].kind == ERROR_UNAVAILABLE ? "RegistryUnavailable: " : "",
				 cases[i].status);
		CHECK(str_has_prefix(bed.err.text, want));
	}
	bed_done();
}

static void what_may_pass_is_tried_again(void)
{
	static const unsigned statuses[] = { 408, 425, 429, 500, 503, 599 };

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		bed_make(1);
		bed_says_status(statuses[i]);
		bed_says(&(struct answer){ .fault = TRANSFER_FAULT_CUT });
		bed_says(&(struct answer){ .status = 200, .body = "it" });
		bed_ask(&manifest);
		CHECK_INT(bed.err.code, 0);
		CHECK_INT(bed.n_asked, 3);
		CHECK_INT(bed.n_notes, 2);
		CHECK(strstr(bed.note, "the line is cut; tried again in") != NULL);
		CHECK(bed.heard.len == 2);
	}
	/* To an end. */
	bed_make(1);
	for (unsigned i = 0; i < 4; i++)
		bed_says_status(503);
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_UNAVAILABLE);
	CHECK_INT(bed.n_asked, 4);
	/* Of one that says that it is asked too much the time counts, not the tries. */
	bed_make(1);
	bed.registry.settings.throttled_ms = 16;
	for (unsigned i = 0; i < 40; i++)
		bed_says_status(429);
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_UNAVAILABLE);
	CHECK(bed.exchange.throttled_ms >= 16);
	CHECK(bed.n_asked >= 8);
	/* And not at all where the caller begins elsewhere. */
	bed_make(1);
	bed_says_status(503);
	bed_ask(&(struct exchange_request){ .method = "PUT",
					    .what = "blob",
					    .path = "/x",
					    .need = FETCH_CAN_PULL,
					    .once = true });
	CHECK_INT(bed.n_asked, 1);
	bed_done();
}

static void the_next_host_is_asked(void)
{
	bed_make(3);
	bed_says_status(405);
	bed_says(&(struct answer){ .fault = TRANSFER_FAULT_CONNECT });
	bed_says_status(200);
	bed_ask(&manifest);
	CHECK_INT(bed.err.code, 0);
	CHECK_STR(bed.urls[0], "https://one.test/v2/a/b/manifests/1?ns=far.example");
	CHECK_STR(bed.urls[1], "https://two.test/v2/a/b/manifests/1?ns=far.example");
	CHECK_STR(bed.urls[2], "https://far.example/v2/a/b/manifests/1");
	CHECK_INT(bed.n_notes, 2);
	/* What the first said that can do it counts no more than what the last one says. */
	bed_make(3);
	bed.endpoints[1].can = 0;
	bed_says_status(503);
	bed_says_status(404);
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_NOT_FOUND);
	CHECK_INT(bed.n_asked, 2);
	/* Also where a good answer is none for who asked. */
	bed_make(3);
	bed.bad_head = -EINVAL;
	bed_says_status(200);
	bed_says_status(200);
	bed_ask(&manifest);
	CHECK_INT(bed.err.code, 0);
	CHECK_STR(bed.note,
		  "https://one.test: manifest 1: it is something else; the next one is asked");
	bed_done();
}

static void redirects_lose_what_is_secret(void)
{
	static const struct registry_credentials raw = { "far.example", "", "raw",
							 FETCH_AUTH_TOKEN };

	bed_make(1);
	bed.config.credentials = &raw;
	bed.config.n_credentials = 1;
	bed_says(&(struct answer){ .status = 307, .location = "/v2/elsewhere" });
	bed_says(&(struct answer){ .status = 307, .location = "https://store.test/x?y=z" });
	/* Nor does it come back. */
	bed_says(&(struct answer){ .status = 302, .location = "https://far.example/z" });
	bed_says_status(200);
	bed_ask(&manifest);
	CHECK_INT(bed.err.code, 0);
	CHECK_STR(bed.urls[1], "https://far.example/v2/elsewhere");
	CHECK_STR(bed.urls[2], "https://store.test/x?y=z");
	CHECK(strstr(bed.headers[1], "Bearer raw") != NULL);
	CHECK(!strstr(bed.headers[2], "raw") && !strstr(bed.headers[3], "raw"));
	CHECK(!bed.strangers[1] && bed.strangers[2] && bed.strangers[3]);
	/* Nowhere nearer or barer, and not for ever. */
	bed_make(1);
	bed_says(&(struct answer){ .status = 307, .location = "http://far.example/x" });
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_DENIED);
	bed_make(1);
	bed_says(&(struct answer){ .status = 307, .location = "https://127.0.0.1/x" });
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_DENIED);
	bed_make(1);
	for (unsigned i = 0; i < 11; i++)
		bed_says(&(struct answer){ .status = 307, .location = "/again" });
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_UNAVAILABLE);
	CHECK(strstr(bed.err.text, "more than 10 redirects") != NULL);
	bed_done();
}

static void tokens_are_had_and_shown(void)
{
	static const struct registry_credentials mine = { "far.example", "me", "secret",
							  FETCH_AUTH_PASSWORD };

	bed_make(1);
	bed.config.credentials = &mine;
	bed.config.n_credentials = 1;
	bed_says(&(struct answer){ .status = 401, .bearer = true });
	bed_says(&(struct answer){ .status = 200, .body = "{\"token\":\"t1\"}" });
	bed_says_status(200);
	bed_ask(&manifest);
	CHECK_INT(bed.err.code, 0);
	CHECK(str_has_prefix(bed.urls[1], "https://far.example/token?"));
	CHECK(strstr(bed.headers[1], "Authorization: Basic ") != NULL);
	CHECK(strstr(bed.headers[2], "Authorization: Bearer t1") != NULL);
	/* The token is no good: one more is asked for, and no third. */
	bed_make(1);
	for (unsigned i = 0; i < 2; i++) {
		bed_says(&(struct answer){ .status = 401, .bearer = true });
		bed_says(&(struct answer){ .status = 200, .body = "{\"token\":\"t\"}" });
	}
	bed_says(&(struct answer){ .status = 401, .bearer = true, .body = "{\"errors\":[{}]}" });
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_UNAUTHENTICATED);
	CHECK(str_has_prefix(bed.err.text, "Unauthenticated: registry far.example"));
	CHECK_INT(bed.n_asked, 5);
	bed_done();
}

/* Of a token server with this status, where credentials are known or not. */
static enum error_kind kind_of_token(unsigned status, bool known)
{
	static const struct registry_credentials mine = { "far.example", "me", "secret",
							  FETCH_AUTH_PASSWORD };

	bed_make(1);
	bed.config.credentials = &mine;
	bed.config.n_credentials = known ? 1 : 0;
	bed_says(&(struct answer){ .status = 401, .bearer = true });
	bed_says_status(status);
	bed_ask(&manifest);
	CHECK(strstr(bed.err.text, "the token server far.example") != NULL);
	CHECK_INT(bed.n_asked, 2);
	return bed.err.kind;
}

static void token_servers_are_no_registries(void)
{
	CHECK_INT(kind_of_token(400, true), ERROR_UNAUTHENTICATED);
	CHECK_INT(kind_of_token(401, true), ERROR_UNAUTHENTICATED);
	CHECK_INT(kind_of_token(403, false), ERROR_UNAUTHENTICATED);
	CHECK_INT(kind_of_token(400, false), ERROR_PRECONDITION);
	CHECK_INT(kind_of_token(404, true), ERROR_PRECONDITION);
	CHECK_INT(kind_of_token(410, false), ERROR_PRECONDITION);
	/* One that is down is asked again, from the beginning. */
	bed_make(1);
	bed_says(&(struct answer){ .status = 401, .bearer = true });
	bed_says_status(503);
	bed_says(&(struct answer){ .status = 401, .bearer = true });
	bed_says(&(struct answer){ .status = 200, .body = "{\"token\":\"t1\"}" });
	bed_says_status(200);
	bed_ask(&manifest);
	CHECK_INT(bed.err.code, 0);
	bed_done();
}

static void parts_fit_or_are_refused(void)
{
	struct error err = ERROR_INIT;

	/* Less than the whole is a cut. */
	bed_make(1);
	bed_says(&(struct answer){ .status = 200, .body = "1234" });
	bed_says(&(struct answer){ .status = 200, .body = "12345678" });
	bed_ask(&(struct exchange_request){ .method = "GET",
					    .what = "blob",
					    .path = "/b",
					    .need = FETCH_CAN_PULL,
					    .whole = 8 });
	CHECK_INT(bed.err.code, 0);
	CHECK(strstr(bed.note, "the answer ended at byte 4 of 8; tried again") != NULL);
	/* Another part than was asked for. */
	bed_make(1);
	bed_says(&(struct answer){ .status = 206, .content_range = "bytes 5-7/8" });
	bed_ask(&manifest);
	CHECK_INT(bed.err.kind, ERROR_INVALID);
	/* Nobody can do it. */
	bed_make(2);
	CHECK(exchange_start(&bed.exchange, &bed.registry,
			     &(struct exchange_request){ .method = "PUT",
							 .what = "blob",
							 .path = "/b",
							 .need = FETCH_CAN_PUSH },
			     &bed_ops, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	bed_done();
}

UNIT_MAIN({ "each status is a kind", each_status_is_a_kind },
	  { "what may pass is tried again", what_may_pass_is_tried_again },
	  { "the next host is asked", the_next_host_is_asked },
	  { "redirects lose what is secret", redirects_lose_what_is_secret },
	  { "tokens are had and shown", tokens_are_had_and_shown },
	  { "token servers are no registries", token_servers_are_no_registries },
	  { "parts fit or are refused", parts_fit_or_are_refused })
