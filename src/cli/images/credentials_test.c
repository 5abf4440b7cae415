/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/credentials.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/images/authfile.h"
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

static void changes_entries(void)
{
	static const char text[] = "{\"a\":[1,\"x\\\"{\",{}],\"auths\":{\"b\":{\"auth\":\"bWU6\"},"
				   "\"https://index.docker.io/v1/\":{}}}";
	static const struct {
		const char *text, *host, *auth, *made;
		bool found;
	} cases[] = {
		{ "{}", "c", "x",
		  "{\n\t\"auths\": {\n\t\t\"c\": {\n\t\t\t\"auth\": \"x\"\n\t\t}\n\t}\n}\n",
		  false },
		{ "{\"auths\":null}", "c", NULL, "{\n\t\"auths\": {}\n}\n", false },
		{ text, NULL, NULL,
		  "{\n\t\"a\": [\n\t\t1,\n\t\t\"x\\\"{\",\n\t\t{}\n\t],\n\t\"auths\": {}\n}\n",
		  true },
		{ text, "b", NULL,
		  "{\n\t\"a\": [\n\t\t1,\n\t\t\"x\\\"{\",\n\t\t{}\n\t],\n\t\"auths\": {\n\t\t"
		  "\"https://index.docker.io/v1/\": {}\n\t}\n}\n",
		  true },
		{ "{\"auths\":{\"index.docker.io\":{}}}", "docker.io", "x",
		  "{\n\t\"auths\": {\n\t\t\"https://index.docker.io/v1/\": {\n\t\t\t\"auth\": "
		  "\"x\"\n\t\t}"
		  "\n\t}\n}\n",
		  true },
		{ "[]", "b", NULL, NULL, false },
		{ "{\"auths\":[]}", "b", NULL, NULL, false },
		{ "{", "b", NULL, NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(arena_done) struct arena a = ARENA_INIT;
		_cleanup_(buf_done) struct buf made = BUF_INIT;
		struct error err = ERROR_INIT;
		bool found = false;
		int r = authfile_edit(&made, &a, cases[i].text, strlen(cases[i].text),
				      cases[i].host, cases[i].auth, &found, &err);

		CHECK_INT(r, cases[i].made ? 0 : -EINVAL);
		if (r < 0)
			continue;
		CHECK_INT(found, cases[i].found);
		CHECK_INT(buf_add(&made, "", 1), 0);
		CHECK_STR((const char *)buf_data(&made), cases[i].made);
	}
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

UNIT_MAIN({ "reads entries", reads_entries }, { "changes entries", changes_entries },
	  { "reads helpers", reads_helpers })
