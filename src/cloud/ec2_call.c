/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/ec2_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cloud/sigv4.h"

#define EC2_TIMEOUT_MS 20000L
#define EC2_CONTENT "application/x-www-form-urlencoded; charset=utf-8"

/* ---- the account ---- */

static int ec2_open_endpoint(struct ec2_account *a, const char *endpoint, struct error *err)
{
	_cleanup_str_ char *text = NULL;

	text = *endpoint ? strdup(endpoint)
			 : str_format("https://ec2.%s.amazonaws.com%s", a->region,
				      str_has_prefix(a->region, "cn-") ? ".cn" : "");
	return text ? http_open_endpoint(&a->endpoint, text, err)
		    : error_set(err, -ENOMEM, "the endpoint of the cloud");
}

int ec2_account_open(struct ec2_account *a, const char *region, const char *endpoint,
		     const char *profile, struct error *err)
{
	int r;

	*a = (struct ec2_account){ .region = "" };
	r = str_copy(a->region, sizeof(a->region), region);
	if (r < 0)
		return error_refuse(err, ERROR_INVALID, "the region is too long");
	r = ec2_open_endpoint(a, endpoint, err);
	if (r == 0)
		r = http_open_authorities(&a->authorities, "AWS_CA_BUNDLE", "", err);
	return r < 0 ? r : credentials_open(&a->credentials, profile, err);
}

void ec2_account_close(struct ec2_account *a)
{
	credentials_close(&a->credentials);
	buf_done(&a->authorities);
}

int ec2_init(struct ec2 *e, struct ec2_account *account, struct error *err)
{
	*e = (struct ec2){ .account = account };
	return http_init(&e->http, &account->authorities, err);
}

void ec2_done(struct ec2 *e)
{
	http_done(&e->http);
}

/* ---- what an answer means ---- */

/* What a code of the cloud means. */
enum ec2_meaning {
	EC2_AGAIN,    /* it has not been done, and may be asked again */
	EC2_DOUBT,    /* it may have been done */
	EC2_KEY_OVER, /* another key is needed */
	EC2_KEY,      /* the key may not do that, or is none */
	EC2_FULL,
	EC2_WRONG,
	EC2_MISSING,
	EC2_STATE,
};

static const struct {
	const char *code; /* a '*' at the end stands for any rest */
	enum ec2_meaning meaning;
} ec2_codes[] = {
	{ "RequestLimitExceeded", EC2_AGAIN },
	{ "Throttling*", EC2_AGAIN },
	{ "RequestThrottled*", EC2_AGAIN },
	{ "EC2ThrottledException", EC2_AGAIN },
	{ "TooManyRequestsException", EC2_AGAIN },
	{ "InternalError", EC2_DOUBT },
	{ "InternalFailure", EC2_DOUBT },
	{ "ServiceUnavailable", EC2_DOUBT },
	{ "Unavailable", EC2_DOUBT },
	{ "RequestExpired", EC2_KEY_OVER },
	{ "ExpiredToken*", EC2_KEY_OVER },
	{ "AuthFailure", EC2_KEY },
	{ "UnauthorizedOperation", EC2_KEY },
	{ "InvalidClientTokenId", EC2_KEY },
	{ "SignatureDoesNotMatch", EC2_KEY },
	{ "IncompleteSignature", EC2_KEY },
	{ "MissingAuthenticationToken", EC2_KEY },
	{ "OptInRequired", EC2_KEY },
	{ "PendingVerification", EC2_KEY },
	{ "InsufficientInstanceCapacity", EC2_FULL },
	{ "InsufficientCapacity*", EC2_FULL },
	{ "InsufficientHostCapacity", EC2_FULL },
	{ "InsufficientFreeAddressesInSubnet", EC2_FULL },
	{ "InsufficientAddressCapacity", EC2_FULL },
	{ "InsufficientVolumeCapacity", EC2_FULL },
	{ "InstanceLimitExceeded", EC2_FULL },
	{ "VcpuLimitExceeded", EC2_FULL },
	{ "MaxSpotInstanceCountExceeded", EC2_FULL },
	{ "SpotMaxPriceTooLow", EC2_FULL },
	{ "VolumeLimitExceeded", EC2_FULL },
	{ "InvalidInstanceID.NotFound", EC2_MISSING },
	{ "InvalidInstanceID.Malformed", EC2_MISSING },
	{ "Invalid*", EC2_WRONG },
	{ "Missing*", EC2_WRONG },
	{ "Unsupported*", EC2_WRONG },
	{ "UnknownParameter", EC2_WRONG },
	{ "ValidationError", EC2_WRONG },
};

static enum ec2_meaning ec2_meaning_of(int status, const char *code)
{
	for (size_t i = 0; *code && i < ARRAY_SIZE(ec2_codes); i++) {
		const char *pattern = ec2_codes[i].code;
		size_t n = strlen(pattern);

		if (pattern[n - 1] == '*' ? strncmp(pattern, code, n - 1) == 0
					  : str_eq(pattern, code))
			return ec2_codes[i].meaning;
	}
	if (status == 429)
		return EC2_AGAIN;
	return status >= 500 || !*code ? EC2_DOUBT : EC2_STATE;
}

static const char ec2_clock[] = " (the key has ended, or the clock of this host is wrong)";
static const char ec2_policy[] =
	" (the key of the daemon: doc/cloud.md has the policy that it needs)";

static const struct {
	enum error_kind kind;
	const char *also;
} ec2_meanings[] = {
	[EC2_AGAIN] = { ERROR_UNAVAILABLE, "" },
	[EC2_DOUBT] = { ERROR_UNAVAILABLE, "" },
	[EC2_KEY_OVER] = { ERROR_UNAVAILABLE, ec2_clock },
	[EC2_KEY] = { ERROR_PRECONDITION, ec2_policy },
	[EC2_FULL] = { ERROR_EXHAUSTED, "" },
	[EC2_WRONG] = { ERROR_INVALID, "" },
	[EC2_MISSING] = { ERROR_NOT_FOUND, "" },
	[EC2_STATE] = { ERROR_PRECONDITION, "" },
};

int ec2_judge(int status, const struct xml_node *root, struct cloud_fault *f, bool *ret_again,
	      struct error *err)
{
	const struct xml_node *e = xml_find(root, "Errors/Error");
	const char *code = xml_text(e, "Code");
	enum ec2_meaning meaning;

	*f = (struct cloud_fault){ .code = "" };
	*ret_again = false;
	if (status == 200 && !e && root)
		return 0;
	if (strlen(code) >= sizeof(f->code) || !str_is_clean(code))
		code = "";
	(void)str_copy(f->code, sizeof(f->code), code);
	meaning = ec2_meaning_of(status, code);
	f->unknown = meaning == EC2_DOUBT;
	f->stale = meaning == EC2_KEY_OVER;
	/* The call that had the token first had other words. */
	f->doubt = str_eq(code, "IdempotentParameterMismatch");
	*ret_again = meaning == EC2_AGAIN || meaning == EC2_DOUBT;
	if (!*code)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "the cloud answers with the status %d and nothing that can be "
				    "read",
				    status);
	return error_refuse(err, ec2_meanings[meaning].kind, "the cloud says %s: %.300s%s", code,
			    xml_text(e, "Message"), ec2_meanings[meaning].also);
}

/* ---- one try ---- */

static void ec2_host(const struct url *u, char *ret, size_t size)
{
	const char *open = strchr(u->host, ':') ? "[" : "", *close = *open ? "]" : "";

	if (u->port == (u->tls ? 443 : 80))
		(void)str_printf(ret, size, "%s%s%s", open, u->host, close);
	else
		(void)str_printf(ret, size, "%s%s%s:%u", open, u->host, close, u->port);
}

/* Signs and sends. */
static int ec2_send(struct ec2 *e, const struct buf *form, const struct credentials *key,
		    struct http_answer *a, struct buf *body, struct error *err)
{
	static const char content_line[] = "Content-Type: " EC2_CONTENT;
	char url[URL_SIZE], host[URL_HOST_MAX + 16], hex[SIGV4_HEX_SIZE];
	struct sigv4_header signed_headers[] = { { "content-type", EC2_CONTENT },
						 { "host", host },
						 { "x-amz-date", NULL },
						 { "x-amz-security-token", key->token } };
	struct sigv4_request q = { .method = "POST",
				   .path = e->account->endpoint.path,
				   .query = "",
				   .headers = signed_headers,
				   .n_headers = *key->token ? 4 : 3,
				   .body = buf_data(form),
				   .body_len = form->len,
				   .region = e->account->region,
				   .service = "ec2",
				   .key_id = key->id,
				   .secret = key->secret };
	_cleanup_str_ char *authorization = NULL, *date = NULL, *line = NULL, *host_line = NULL,
			   *token = NULL;
	int r;

	sigv4_time(q.time, clock_real());
	signed_headers[2].value = q.time;
	ec2_host(&e->account->endpoint, host, sizeof(host));
	url_format(&e->account->endpoint, url);
	r = sigv4_sign(&q, hex, &authorization);
	if (r < 0)
		return error_set(err, r, "sign a request");
	date = str_format("X-Amz-Date: %s", q.time);
	line = str_format("Authorization: %s", authorization);
	host_line = str_format("Host: %s", host);
	token = str_format("X-Amz-Security-Token: %s", key->token);
	if (!date || !line || !host_line || !token)
		return error_set(err, -ENOMEM, "sign a request");
	return http_ask(
		&e->http,
		&(struct http_request){ .method = "POST",
					.url = url,
					.headers = (const char *const[]){ content_line, host_line,
									  date, line, token },
					.n_headers = *key->token ? 5 : 4,
					.body = buf_data(form),
					.body_len = form->len,
					.timeout_ms = EC2_TIMEOUT_MS,
					.answer_max = EC2_ANSWER_MAX,
					.fresh = e->once },
		a, body, err);
}

static int ec2_try(struct ec2 *e, const struct buf *form, struct credentials *key,
		   struct arena *arena, struct xml_node **ret, struct cloud_fault *f,
		   bool *ret_again, struct error *err)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT;
	struct error own = ERROR_INIT;
	struct xml_node *root = NULL;
	struct http_answer a;
	int r = credentials_get(&e->account->credentials, key, err);

	*f = (struct cloud_fault){ .code = "" };
	*ret_again = r < 0 && err->kind == ERROR_UNAVAILABLE;
	if (r < 0)
		return r;
	r = ec2_send(e, form, key, &a, &body, err);
	if (r < 0) {
		*ret_again = err->kind == ERROR_UNAVAILABLE;
		f->unknown = true;
		return r;
	}
	if (xml_parse(&root, arena, body.len ? buf_data(&body) : (const uint8_t *)"", body.len,
		      &own) == -ENOMEM) {
		f->unknown = true;
		return error_copy(err, &own);
	}
	r = ec2_judge(a.status, root, f, ret_again, err);
	f->date = a.date;
	if (r == 0)
		*ret = root;
	return r;
}

/* ---- again and again ---- */

int ec2_call(struct ec2 *e, const struct buf *form, struct arena *arena, struct xml_node **ret,
	     struct cloud_fault *f, struct error *err)
{
	nsec_t until = clock_mono() + EC2_PATIENCE;
	bool again, unknown = false, renewed = false;
	int pause_ms = 0;

	for (;;) {
		struct credentials key = { .id = "" };
		int r;

		*err = (struct error)ERROR_INIT;
		r = ec2_try(e, form, &key, arena, ret, f, &again, err);
		/* A result stays unknown, once a try left it so, until a try succeeds. */
		unknown = unknown || f->unknown;
		f->unknown = r < 0 && unknown;
		if (f->stale && !renewed && credentials_renew(&e->account->credentials, &key)) {
			renewed = again = true;
			f->stale = false;
		}
		explicit_bzero(&key, sizeof(key));
		if (r == 0 || !again || clock_mono() >= until)
			return r;
		http_rest(&pause_ms);
	}
}
