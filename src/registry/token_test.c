/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "unit.h"
#include "wire/message/fetchmsg.h"

/* A registry whose endpoints and credentials a test names; nothing is spoken to. */
static struct endpoint endpoint;
static struct registry_token token;
static struct registry_config config;
static struct registry registry = { .tokens = &token };
static unsigned n_notes;

static void note(void *userdata _unused_, const char *text)
{
	n_notes++;
	CHECK(strstr(text, "asked without credentials") != NULL);
}

static void bed(const char *root, const struct registry_credentials *credentials, size_t n)
{
	struct error err = ERROR_INIT;

	token_forget(&registry, 0);
	endpoint = (struct endpoint){ .credentials = NULL };
	CHECK_INT(url_parse(&endpoint.root, root, &err), 0);
	endpoint.credentials = endpoint.root.host;
	config = (struct registry_config){ .credentials = credentials,
					   .n_credentials = n,
					   .note = note };
	registry = (struct registry){ .config = &config,
				      .endpoints = { .list = &endpoint, .n = 1 },
				      .tokens = &token,
				      .path = "tools/busybox" };
	n_notes = 0;
}

static struct challenge asks(const char *realm)
{
	struct challenge c = { .bearer = true };

	(void)str_copy(c.realm, sizeof(c.realm), realm);
	(void)str_copy(c.service, sizeof(c.service), "the service");
	return c;
}

static bool is_refused(const char *root, const char *realm)
{
	struct error err = ERROR_INIT;
	struct challenge c = asks(realm);
	struct token_request q;
	bool refused;

	bed(root, NULL, 0);
	refused = token_request(&q, &registry, 0, &c, &err) < 0;
	CHECK(!refused || err.kind == ERROR_DENIED || err.code == -ENOMEM);
	token_request_done(&q);
	return refused;
}

static void realms_that_are_nearer_or_barer_are_refused(void)
{
	CHECK(!is_refused("https://far.example/v2", "https://auth.far.example/token"));
	CHECK(!is_refused("https://far.example/v2", "https://elsewhere.test/token"));
	CHECK(is_refused("https://far.example/v2", "http://auth.far.example/token"));
	CHECK(is_refused("https://far.example/v2", "http://far.example/token"));
	CHECK(is_refused("https://far.example/v2", "https://127.0.0.1/token"));
	CHECK(is_refused("https://far.example/v2", "https://localhost/token"));
	CHECK(is_refused("https://far.example/v2", "https://[::1]/token"));
	CHECK(is_refused("https://far.example/v2", "https://169.254.169.254/latest"));
	CHECK(is_refused("https://far.example/v2", "https://[fe80::1]/token"));
	/* Plain registries may have a plain realm of their own, and one on this machine one there.
	 */
	CHECK(!is_refused("http://far.example/v2", "http://far.example/token"));
	CHECK(is_refused("http://far.example/v2", "http://elsewhere.test/token"));
	CHECK(is_refused("http://far.example/v2", "http://127.0.0.1/token"));
	CHECK(!is_refused("http://127.0.0.1:5000/v2", "http://127.0.0.1:5001/token"));
}

static const struct registry_credentials password = {
	.host = "far.example", .user = "me", .secret = "pa:ss", .kind = FETCH_AUTH_PASSWORD
};

/* The first header of the request to that realm, "" for none; and its path. */
static char *header_for(const char *realm, const struct registry_credentials *c, size_t n,
			char path[URL_PATH_MAX + 1])
{
	struct error err = ERROR_INIT;
	struct challenge challenge = asks(realm);
	struct token_request q;
	char *header;

	bed("https://far.example/v2", c, n);
	CHECK_INT(token_request(&q, &registry, 0, &challenge, &err), 0);
	header = strdup(q.headers[0] ? q.headers[0] : "");
	(void)str_copy(path, URL_PATH_MAX + 1, q.url.path);
	CHECK(!q.post);
	token_request_done(&q);
	return header;
}

static void passwords_are_shown_where_they_belong(void)
{
	static const struct registry_credentials two[] = {
		{ "far.example", "me", "pa:ss", FETCH_AUTH_PASSWORD },
		{ "elsewhere.test", "her", "x", FETCH_AUTH_PASSWORD },
	};
	char path[URL_PATH_MAX + 1];
	_cleanup_str_ char *own = header_for("https://far.example/t?a=b", &password, 1, path);
	_cleanup_str_ char *other = NULL, *hers = NULL;

	CHECK_STR(own, "Authorization: Basic bWU6cGE6c3M=");
	CHECK_STR(path, "/t?a=b&service=the%20service&scope=repository%3Atools%2Fbusybox%3Apull"
			"&account=me");
	CHECK_INT(n_notes, 0);
	other = header_for("https://elsewhere.test/t", &password, 1, path);
	CHECK_STR(other, "");
	CHECK_STR(path, "/t?service=the%20service&scope=repository%3Atools%2Fbusybox%3Apull");
	CHECK_INT(n_notes, 1);
	/* Somebody else's realm gets what was given for it. */
	hers = header_for("https://elsewhere.test/t", two, ARRAY_SIZE(two), path);
	CHECK_STR(hers, "Authorization: Basic aGVyOng=");
	CHECK_INT(n_notes, 0);
}

static void identity_tokens_go_into_the_body(void)
{
	static const struct registry_credentials identity = { "far.example", "", "r&f",
							      FETCH_AUTH_IDENTITY };
	struct error err = ERROR_INIT;
	struct challenge c = asks("https://far.example/token");
	struct token_request q;

	bed("https://far.example/v2", &identity, 1);
	(void)str_copy(c.scope, sizeof(c.scope), "repository:a:pull");
	CHECK_INT(token_request(&q, &registry, 0, &c, &err), 0);
	CHECK(q.post && q.own);
	CHECK(buf_add(&q.body, "", 1) == 0 &&
	      str_eq((const char *)buf_data(&q.body),
		     "grant_type=refresh_token&client_id=nacre&service=the%20service"
		     "&scope=repository%3Aa%3Apull&refresh_token=r%26f"));
	CHECK_STR(q.url.path, "/token");
	token_request_done(&q);
	/* Nobody else may see it. */
	c = asks("https://elsewhere.test/token");
	CHECK_INT(token_request(&q, &registry, 0, &c, &err), 0);
	CHECK(!q.post && q.body.len == 0 && !q.own && !q.headers[0]);
	CHECK_INT(n_notes, 1);
	token_request_done(&q);
}

static void pushes_ask_for_more(void)
{
	static char a[] = "a", bc[] = "b/c";
	static char *mounts[] = { a, bc, NULL };
	struct error err = ERROR_INIT;
	struct challenge c = asks("https://far.example/t");
	struct token_request q;

	bed("https://far.example/v2", NULL, 0);
	registry.pushes = true;
	config.mounts = mounts;
	(void)str_copy(c.scope, sizeof(c.scope), "repository:other:pull");
	CHECK_INT(token_request(&q, &registry, 0, &c, &err), 0);
	CHECK_STR(q.url.path,
		  "/t?service=the%20service&scope=repository%3Atools%2Fbusybox%3Apull%2Cpush"
		  "&scope=repository%3Aa%3Apull&scope=repository%3Ab%2Fc%3Apull");
	token_request_done(&q);
}

static int take(const char *answer, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = buf_add_str(&b, answer);

	*err = (struct error)ERROR_INIT;
	return r < 0 ? r : token_take(&registry, 0, &b, err);
}

static void an_answer_is_the_header_until_it_ends(void)
{
	struct error err;

	bed("https://far.example/v2", NULL, 0);
	CHECK(token_header(&registry, 0) == NULL);
	CHECK_INT(take("{\"token\":\"abc\",\"expires_in\":300}", &err), 0);
	CHECK_STR(token_header(&registry, 0), "Authorization: Bearer abc");
	CHECK_INT(token.made, 1);
	token.expires = clock_mono();
	CHECK(token_header(&registry, 0) == NULL);
	CHECK(token.header == NULL);
	CHECK_INT(take("{\"access_token\":\"def\"}", &err), 0);
	CHECK_STR(token_header(&registry, 0), "Authorization: Bearer def");
	/* What is no token leaves the one that is there. */
	CHECK(take("{\"token\":\"a\\r\\nHost: x\"}", &err) < 0);
	CHECK(take("<html>", &err) < 0);
	CHECK_STR(token_header(&registry, 0), "Authorization: Bearer def");
	token_forget(&registry, 0);
	CHECK(token_header(&registry, 0) == NULL);
}

static void what_needs_no_realm(void)
{
	static const struct registry_credentials bearer = { "far.example", "", "raw",
							    FETCH_AUTH_TOKEN };
	struct error err = ERROR_INIT;

	bed("https://far.example/v2", &password, 1);
	CHECK_INT(token_direct(&registry, 0, false, &err), 0);
	CHECK_INT(token_direct(&registry, 0, true, &err), 1);
	CHECK_STR(token_header(&registry, 0), "Authorization: Basic bWU6cGE6c3M=");
	bed("https://far.example/v2", &bearer, 1);
	CHECK_INT(token_direct(&registry, 0, true, &err), 0);
	CHECK_INT(token_direct(&registry, 0, false, &err), 1);
	CHECK_STR(token_header(&registry, 0), "Authorization: Bearer raw");
	/* Credentials of another host are not its own. */
	bed("https://near.example/v2", &password, 1);
	CHECK(!token_has_credentials(&registry, 0));
	CHECK_INT(token_direct(&registry, 0, true, &err), 0);
	CHECK(token_header(&registry, 0) == NULL);
}

UNIT_MAIN({ "realms that are nearer or barer are refused",
	    realms_that_are_nearer_or_barer_are_refused },
	  { "passwords are shown where they belong", passwords_are_shown_where_they_belong },
	  { "identity tokens go into the body", identity_tokens_go_into_the_body },
	  { "pushes ask for more", pushes_ask_for_more },
	  { "an answer is the header until it ends", an_answer_is_the_header_until_it_ends },
	  { "what needs no realm", what_needs_no_realm })
