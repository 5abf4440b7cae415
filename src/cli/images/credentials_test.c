/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/credentials.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "unit.h"

static int read_text(struct credentials *c, struct arena *a, const char *host, const char *text)
{
	struct error err = ERROR_INIT;

	*c = (struct credentials){ .host = NULL };
	return credentials_read(c, a, host, text, strlen(text), &err);
}

static void reads_entries(void)
{
	/* "me:secret:x" */
	static const char text[] =
		"{\"auths\": {\"a.example\": {\"auth\": \"bWU6c2VjcmV0Ong=\"},"
		" \"b.example:5000\": {\"identitytoken\": \"tok\", \"auth\": \"bWU6\"},"
		" \"https://c.example/v2/\": {\"registrytoken\": \"reg\"},"
		" \"https://index.docker.io/v1/\": {\"username\": \"u\", \"password\": \"p\"},"
		" \"name.example\": {\"auth\": \"bWU6\"},"
		" \"empty.example\": {}, \"bad.example\": {\"auth\": \"!\"},"
		" \"nul.example\": {\"auth\": \"AAAA\"}, \"nocolon.example\": {\"auth\": \"bWU\"}},"
		" \"credsStore\": \"x\"}";
	static const struct {
		const char *host, *user, *password, *identity, *token;
	} found[] = { { "a.example", "me", "secret:x", "", "" },
		      { "b.example:5000", "", "", "tok", "" },
		      { "c.example", "", "", "", "reg" },
		      { "docker.io", "u", "p", "", "" },
		      /* A name alone: its password is empty. */
		      { "name.example", "me", "", "", "" } };
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct credentials c;

	for (size_t i = 0; i < ARRAY_SIZE(found); i++) {
		bool there = read_text(&c, &a, found[i].host, text) == 1;

		CHECK(there);
		if (!there)
			return;
		CHECK_STR(c.host, found[i].host);
		CHECK_STR(c.username, found[i].user);
		CHECK_STR(c.password, found[i].password);
		CHECK_STR(c.identity_token, found[i].identity);
		CHECK_STR(c.registry_token, found[i].token);
	}
	CHECK_INT(read_text(&c, &a, "empty.example", text), 0);
	CHECK_INT(read_text(&c, &a, "b.example", text), 0);
	CHECK_INT(read_text(&c, &a, "x", "{}"), 0);
	CHECK_INT(read_text(&c, &a, "x", "[]"), 0);
	CHECK(read_text(&c, &a, "bad.example", text) < 0);
	CHECK(read_text(&c, &a, "nul.example", text) < 0);
	CHECK(read_text(&c, &a, "nocolon.example", text) < 0);
	CHECK(read_text(&c, &a, "x", "{") < 0);
}

static void reads_helpers(void)
{
	static const char text[] = "{\"credHelpers\": {\"a.example\": \"one\", "
				   "\"https://index.docker.io/v1/\": \"hub\","
				   " \"bad.example\": \"../x\"}, \"credsStore\": \"all\"}";
	static const struct {
		const char *host, *text, *name;
		int r;
	} cases[] = { { "a.example", text, "one", 1 },
		      { "docker.io", text, "hub", 1 },
		      { "b.example", text, "all", 1 },
		      { "bad.example", text, "", -EINVAL },
		      { "b.example", "{}", "", 0 },
		      { "b.example", "[]", "", 0 },
		      { "b.example", "{\"credsStore\": 1}", "", 0 } };
	_cleanup_(arena_done) struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		const char *name = "";

		CHECK_INT(credentials_read_helper(&name, &a, cases[i].host, cases[i].text,
						  strlen(cases[i].text), &err),
			  cases[i].r);
		CHECK_STR(name, cases[i].name);
	}
}

UNIT_MAIN({ "reads entries", reads_entries }, { "reads helpers", reads_helpers })
