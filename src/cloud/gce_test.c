/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/gce.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <string.h>

#include "base/text/str.h"
#include "unit.h"

static const struct gce_account account = { .project = "p-1", .zone = "europe-west1-b" };

static void the_body_of_a_create(void)
{
	static const char words[] = "verb=create\0number=1\0image=projects/d/global/images/family/i"
				    "\0type=e2-small\0token=nacre-1-2\0subnet=s\0group=web"
				    "\0user-data=aGVsbG8K\0tag=Name=a\0tag=nacre-node=0b";
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	_cleanup_str_ char *text = NULL;
	struct cloudmsg q;

	CHECK_INT(cloudmsg_read(&q, words, sizeof(words)), 0);
	text = gce_create_body(&account, &q, &a);
	CHECK(text != NULL);
	if (!text)
		return;
	CHECK(strstr(text, "\"name\":\"nacre-1-2\"") != NULL);
	CHECK(strstr(text, "\"machineType\":\"zones/europe-west1-b/machineTypes/e2-small\"") !=
	      NULL);
	CHECK(strstr(text, "\"subnetwork\":"
			   "\"projects/p-1/regions/europe-west1/subnetworks/s\"") != NULL);
	CHECK(strstr(text, "\"labels\":{\"name\":\"a\",\"nacre-node\":\"0b\"}") != NULL);
	CHECK(strstr(text, "\"tags\":{\"items\":[\"web\"]}") != NULL);
	CHECK(strstr(text, "\"value\":\"hello\\n\"") != NULL);
}

/* The same each time, another for another token, and of version 4. */
static void request_ids(void)
{
	char one[GCE_UUID_SIZE], same[GCE_UUID_SIZE], other[GCE_UUID_SIZE];

	gce_request_id("nacre-1", one);
	gce_request_id("nacre-1", same);
	gce_request_id("nacre-2", other);
	CHECK_STR(one, same);
	CHECK(!str_eq(one, other));
	CHECK(strlen(one) == 36 && one[14] == '4' && strchr("89ab", one[19]) != NULL);
}

static void judge(int status, const char *reason, enum error_kind kind, bool again, bool unknown)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct json_value *body = NULL;
	struct error err = ERROR_INIT;
	struct cloud_fault f;
	char text[256];
	bool got;

	(void)str_printf(
		text, sizeof(text),
		"{\"error\":{\"code\":%d,\"message\":\"why\",\"errors\":[{\"reason\":\"%s\"}]}}",
		status, reason);
	CHECK_INT(json_parse(&body, &a, text, strlen(text), &err), 0);
	CHECK(gce_judge(status, body, &f, &got, &err) < 0);
	CHECK_INT((int)err.kind, (int)kind);
	CHECK_STR(f.code, reason);
	CHECK(got == again && f.unknown == unknown);
	CHECK(strstr(err.text, "why") != NULL);
}

static void what_errors_mean(void)
{
	struct error err = ERROR_INIT;
	struct cloud_fault f;
	bool again;

	judge(403, "rateLimitExceeded", ERROR_UNAVAILABLE, true, false);
	judge(429, "x", ERROR_UNAVAILABLE, true, false);
	judge(403, "quotaExceeded", ERROR_EXHAUSTED, false, false);
	judge(403, "forbidden", ERROR_PRECONDITION, false, false);
	judge(404, "notFound", ERROR_NOT_FOUND, false, false);
	judge(409, "alreadyExists", ERROR_PRECONDITION, false, false);
	judge(400, "invalid", ERROR_INVALID, false, false);
	judge(503, "backendError", ERROR_UNAVAILABLE, true, true);
	judge(401, "authError", ERROR_UNAVAILABLE, false, false);
	CHECK(gce_judge(200, NULL, &f, &again, &err) < 0 && again && f.unknown);
	CHECK(gce_judge(401, NULL, &f, &again, &err) < 0 && f.stale);
}

static int read_machine(struct arena *a, const char *text, struct cloud_machine *m)
{
	struct error err = ERROR_INIT;
	struct json_value *v = NULL;

	CHECK_INT(json_parse(&v, a, text, strlen(text), &err), 0);
	return v ? gce_read_machine(m, v, a, &err) : -EINVAL;
}

static void a_machine(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct cloud_machine m;

	CHECK_INT(
		read_machine(&a,
			     "{\"name\":\"nacre-1\",\"status\":\"TERMINATED\",\"zone\":\"https://x/"
			     "zones/z-1\",\"machineType\":\"https://x/e2-small\",\"labels\":"
			     "{\"name\":\"web\",\"k\":\"v\"},\"networkInterfaces\":"
			     "[{\"networkIP\":\"10.0.0.2\"}]}",
			     &m),
		0);
	CHECK_STR(m.token, "nacre-1");
	CHECK_STR(m.state, "stopped");
	CHECK_STR(m.zone, "z-1");
	CHECK_STR(m.type, "e2-small");
	CHECK_STR(m.address, "10.0.0.2");
	CHECK(m.n_tags == 2);
	CHECK_STR(m.tags[0], "Name=web");
	CHECK(read_machine(&a, "{\"name\":\"../x\"}", &m) < 0);
	CHECK(read_machine(&a, "{\"status\":\"RUNNING\"}", &m) < 0);
	CHECK(read_machine(&a, "[1]", &m) < 0);
}

/* The signature is checked with the public half. */
static void a_claim(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct gce_tokens t = { .email = "n@p", .key_id = "k1" };
	struct error err = ERROR_INIT;
	const char *dot;

	CHECK_INT(url_parse(&t.from, "https://oauth2.googleapis.com/token", &err), 0);
	t.key = EVP_RSA_gen(2048);
	CHECK(t.key != NULL);
	CHECK_INT(gce_tokens_sign(&t, 1000, &b, &err), 0);
	CHECK_INT(buf_add(&b, "", 1), 0);
	/* {"alg":"RS256","typ":"JWT","kid":"k1"} */
	CHECK(str_has_prefix((const char *)buf_data(&b),
			     "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0."));
	dot = strrchr((const char *)buf_data(&b), '.');
	CHECK(dot && strlen(dot + 1) == 342 && !strpbrk(dot, "+/="));
	EVP_PKEY_free(t.key);
}

UNIT_MAIN({ "the body of a create", the_body_of_a_create }, { "request ids", request_ids },
	  { "what errors mean", what_errors_mean }, { "a machine", a_machine },
	  { "a claim", a_claim })
