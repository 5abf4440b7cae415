/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/imds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

#define HOST "Host: 169.254.169.254\r\n"
#define TTL(seconds) IMDS_TTL_FIELD ": " seconds "\r\n"

static const uint8_t key[IMDS_KEY_SIZE] = "one pod", other_key[IMDS_KEY_SIZE] = "another";
static struct buf page = BUF_INIT;
static char answer_text[8192], token[128];

static int put(const char *path, const char *value)
{
	return imds_put(&page, path, value, strlen(value));
}

static bool page_make(void)
{
	buf_done(&page);
	return put("meta-data/instance-id", "0123456789abcdef") == 0 &&
	       put("meta-data/tags/instance/app", "shop") == 0 &&
	       put("meta-data/tags/instance/example.com/tier", "front") == 0 &&
	       put("meta-data/tags/instance/example.com/zone", "a") == 0 &&
	       put("dynamic/instance-identity/document", "{}") == 0 &&
	       put("user-data", "#!/bin/sh\n") == 0;
}

/* The status of the answer, whose text is in answer_text; 0: more is needed. */
static int ask_as(const uint8_t *by, uint64_t now, const char *request)
{
	const struct imds d = { .page = buf_data(&page), .len = page.len, .key = by, .now = now };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = imds_answer(&b, &d, (const uint8_t *)request, strlen(request));

	answer_text[0] = '\0';
	if (r != IMDS_ANSWERED)
		return r == IMDS_MORE ? 0 : r;
	(void)str_printf(answer_text, sizeof(answer_text), "%.*s", (int)b.len,
			 (const char *)buf_data(&b));
	CHECK(str_has_prefix(answer_text, "HTTP/1.1 "));
	return (int)strtol(answer_text + 9, NULL, 10);
}

static int ask(const char *request)
{
	return ask_as(key, 1000, request);
}

static const char *body(void)
{
	const char *at = strstr(answer_text, "\r\n\r\n");

	return at ? at + 4 : "";
}

static bool token_get(const char *ttl)
{
	char request[256];

	(void)str_printf(request, sizeof(request),
			 "PUT /latest/api/token HTTP/1.1\r\n" HOST IMDS_TTL_FIELD ": %s\r\n\r\n",
			 ttl);
	if (ask(request) != 200)
		return false;
	(void)str_copy(token, sizeof(token), body());
	return true;
}

static int get_as(const uint8_t *by, uint64_t now, const char *path, const char *fields)
{
	char request[1024];

	(void)str_printf(request, sizeof(request),
			 "GET %s HTTP/1.1\r\n%s" IMDS_TOKEN_FIELD ": %s\r\n\r\n", path, fields,
			 token);
	return ask_as(by, now, request);
}

static int get(const char *path)
{
	return get_as(key, 1000, path, HOST);
}

static void pages(void)
{
	static const char *const tree[][2] = {
		{ "/latest/meta-data/instance-id", "0123456789abcdef" },
		{ "/2009-04-04/meta-data/instance-id", "0123456789abcdef" },
		{ "//latest//user-data/", "#!/bin/sh\n" },
		{ "/latest/user-data?x=y", "#!/bin/sh\n" },
		{ "/latest/dynamic/instance-identity/document", "{}" },
		{ "/latest/meta-data/tags/instance/app", "shop" },
		{ "/latest/meta-data/tags/instance/example.com/tier", "front" },
		{ "/latest/meta-data/tags/instance/", "app\nexample.com/" },
		{ "/latest/meta-data/tags/instance/example.com", "tier\nzone" },
		{ "/latest/meta-data", "instance-id\ntags/" },
		{ "/latest", "meta-data/\ndynamic/\nuser-data" },
		{ "/", "2009-04-04\n2016-09-02\n2018-09-24\n2021-03-23\nlatest" },
	};
	static const char *const none[] = { "/latest/meta-data/instance-id/x",
					    "/latest/meta",
					    "/latest/meta-data/tag",
					    "/1999-01-01/user-data",
					    "/latest/api/token",
					    "/late",
					    "/latest/../etc" };

	if (!page_make() || !token_get("60"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(tree); i++) {
		CHECK_INT(get(tree[i][0]), 200);
		CHECK_STR(body(), tree[i][1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (get(none[i]) != 404)
			CHECK_STR(none[i], "");
}

static void tokens(void)
{
	static const char *const wrong[] = { "0",    "21601", "-1",
					     "",     "1 ",    "1x",
					     "0x10", "1.5",   "99999999999999999999" };
	char *last;

	if (!page_make() || !token_get("60"))
		return;
	CHECK(strstr(answer_text, IMDS_TTL_FIELD ": 60\r\n"));
	/* Until its end, and of this pod alone. */
	CHECK_INT(get_as(key, 1059, "/latest/user-data", HOST), 200);
	CHECK_INT(get_as(key, 1060, "/latest/user-data", HOST), 401);
	CHECK_INT(get_as(other_key, 1000, "/latest/user-data", HOST), 401);
	CHECK(!strstr(answer_text, "bin/sh"));
	/* A later end. */
	token[2] = token[2] == '0' ? '1' : '0';
	CHECK_INT(get("/latest/user-data"), 401);
	CHECK(token_get("60"));
	last = token + strlen(token) - 1;
	*last = *last == '0' ? '1' : '0';
	CHECK_INT(get("/latest/user-data"), 401);
	*last = '\0';
	CHECK_INT(get("/latest/user-data"), 401);
	token[0] = '\0';
	CHECK_INT(get("/latest/user-data"), 401);
	CHECK_INT(ask("GET /latest/meta-data/ HTTP/1.1\r\n" HOST "\r\n"), 401);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (!str_eq(wrong[i], "1 ") && token_get(wrong[i]))
			CHECK_STR(wrong[i], "no time");
	CHECK_INT(ask("PUT /latest/api/token HTTP/1.1\r\n" HOST "\r\n"), 400);
	CHECK_INT(ask("PUT /latest/api/token HTTP/1.1\r\n" HOST TTL("5") TTL("6") "\r\n"), 400);
	CHECK(token_get("1") && token_get("21600"));
}

static void hosts(void)
{
	static const char *const right[] = { HOST, "host: 169.254.169.254:80\r\n",
					     "Host: [fd00:ec2::254]\r\n",
					     "Host: [FD00:EC2::254]:80\r\n" };
	static const char *const wrong[] = { "Host: example.com\r\n",
					     "Host: 169.254.169.254.example.com\r\n",
					     "Host: 169.254.169.254:8080\r\n",
					     "Host: localhost\r\n", "Host: \r\n" };

	if (!page_make() || !token_get("60"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		CHECK_INT(get_as(key, 1000, "/latest/user-data", right[i]), 200);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CHECK_INT(get_as(key, 1000, "/latest/user-data", wrong[i]), 403);
		CHECK(!strstr(answer_text, "bin/sh"));
	}
	CHECK_INT(get_as(key, 1000, "/latest/user-data", ""), 400);
	CHECK_INT(get_as(key, 1000, "/latest/user-data", HOST "Host: example.com\r\n"), 400);
	CHECK_INT(ask("PUT /latest/api/token HTTP/1.1\r\nHost: x.example\r\n" TTL("5") "\r\n"),
		  403);
}

static void passed_on(void)
{
	static const char *const fields[] = { "X-Forwarded-For: 10.0.0.1\r\n",
					      "x-forwarded-for:\r\n", "Forwarded: for=a\r\n",
					      "Via: 1.1 proxy\r\n", "X-Forwarded-Host: a\r\n" };
	char all[256];

	if (!page_make() || !token_get("60"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		(void)str_printf(all, sizeof(all), HOST "%s", fields[i]);
		CHECK_INT(get_as(key, 1000, "/latest/user-data", all), 403);
		CHECK(!strstr(answer_text, "bin/sh"));
		(void)str_printf(all, sizeof(all),
				 "PUT /latest/api/token HTTP/1.1\r\n" HOST TTL("5") "%s\r\n",
				 fields[i]);
		CHECK_INT(ask(all), 403);
	}
}

static void methods(void)
{
	char request[256];

	if (!page_make() || !token_get("60"))
		return;
	CHECK_INT(ask("POST /latest/api/token HTTP/1.1\r\n" HOST TTL("5") "\r\n"), 405);
	CHECK_INT(ask("PUT /latest/user-data HTTP/1.1\r\n" HOST TTL("5") "\r\n"), 405);
	CHECK_INT(ask("PUT /latest/api/token HTTP/1.1\r\n" HOST TTL("5") "Content-Length: 2\r\n"
									 "\r\nab"),
		  400);
	CHECK_INT(ask("nonsense\r\n\r\n"), 400);
	CHECK_INT(ask("GET / HTTP/1.1\r\n" HOST), 0);
	(void)str_printf(request, sizeof(request),
			 "HEAD /latest/user-data HTTP/1.1\r\n" HOST IMDS_TOKEN_FIELD ": %s\r\n\r\n",
			 token);
	CHECK_INT(ask(request), 200);
	CHECK(strstr(answer_text, "Content-Length: 10\r\n"));
	CHECK_STR(body(), "");
}

static void bounds(void)
{
	_cleanup_str_ char *big = calloc(1, IMDS_PAGE_MAX + 1);

	if (!big || !page_make())
		return;
	memset(big, 'a', IMDS_PAGE_MAX);
	CHECK_INT(put("big", big), -EFBIG);
	CHECK_INT(put("", "x"), -EINVAL);
	CHECK_INT(put("/a", "x"), -EINVAL);
	CHECK_INT(put("a//b", "x"), -EINVAL);
	CHECK_INT(put("a\nb", "x"), -EINVAL);
	CHECK_INT(imds_check(buf_data(&page), page.len), 0);
	for (size_t n = 1; n < 20; n++)
		CHECK_INT(imds_check(buf_data(&page), n), -EBADMSG);
}

static void ends(void)
{
	buf_done(&page);
}

UNIT_MAIN({ "pages", pages }, { "tokens", tokens }, { "hosts", hosts }, { "passed_on", passed_on },
	  { "methods", methods }, { "bounds", bounds }, { "ends", ends })
