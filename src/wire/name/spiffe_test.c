/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name/spiffe.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "unit.h"

static int parse(const char *text)
{
	struct spiffe s;

	return spiffe_parse(&s, text, strlen(text), NULL);
}

static void reads(void)
{
	static const char id[] = "spiffe://nacre.local/node/a1/instance/0123456789abcdef";
	struct spiffe s = { 0 };

	CHECK_INT(spiffe_parse(&s, id, strlen(id), NULL), 0);
	CHECK_INT(s.domain_len, 11);
	CHECK(memcmp(s.domain, "nacre.local", 11) == 0);
	CHECK_STR(s.path, "/node/a1/instance/0123456789abcdef");
	CHECK_INT(s.path_len, strlen(s.path));
	CHECK_INT(parse("spiffe://x"), 0);
	CHECK_INT(parse("spiffe://127.0.0.1/x"), 0);
	CHECK_INT(parse("spiffe://x/.../.x/..x/X_-"), 0);
	CHECK(spiffe_is_id(id));
	CHECK(!spiffe_is_id("spiffe://x"));
}

static void refuses(void)
{
	static const char *const bad[] = {
		"",
		"spiffe",
		"spiffe:/x/y",
		"Spiffe://x/y",
		"https://x/y",
		" spiffe://x/y",
		"spiffe://",
		"spiffe:///y",
		"spiffe://X/y",
		"spiffe://x:80/y",
		"spiffe://u@x/y",
		"spiffe://[::1]/y",
		"spiffe://x%41/y",
		"spiffe://x/",
		"spiffe://x//y",
		"spiffe://x/y/",
		"spiffe://x/.",
		"spiffe://x/..",
		"spiffe://x/./y",
		"spiffe://x/y/../z",
		"spiffe://x/%41",
		"spiffe://x/y?q",
		"spiffe://x/y#f",
		"spiffe://x?q",
		"spiffe://x/y z",
		"spiffe://x/y\n",
		"spiffe://x/\303\244",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK_INT(parse(bad[i]), -EINVAL);
		if (parse(bad[i]) == 0)
			printf("# %s\n", bad[i]);
	}
}

static void every_byte(void)
{
	static const char domain[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
	char text[] = "spiffe://x?/y";

	for (int c = 1; c < 256; c++) {
		bool fits = strchr(domain, c);

		text[10] = (char)c;
		CHECK_INT(parse(text), fits ? 0 : -EINVAL);
	}
	memcpy(text, "spiffe://x/y?", sizeof(text));
	for (int c = 1; c < 256; c++) {
		bool fits = strchr(domain, c) || (c >= 'A' && c <= 'Z');

		text[12] = (char)c;
		CHECK_INT(parse(text), fits ? 0 : -EINVAL);
	}
	/* NUL within what is said to be the length. */
	CHECK_INT(spiffe_parse(&(struct spiffe){ 0 }, "spiffe://x/y\0z", 14, NULL), -EINVAL);
}

static void bounds(void)
{
	char text[SPIFFE_MAX + 2] = "spiffe://";

	memset(text + 9, 'x', SPIFFE_DOMAIN_MAX + 1);
	CHECK_INT(spiffe_parse(&(struct spiffe){ 0 }, text, 9 + SPIFFE_DOMAIN_MAX, NULL), 0);
	CHECK_INT(spiffe_parse(&(struct spiffe){ 0 }, text, 10 + SPIFFE_DOMAIN_MAX, NULL), -EINVAL);
	memset(text + 9, 'x', sizeof(text) - 9);
	text[10] = '/';
	CHECK_INT(spiffe_parse(&(struct spiffe){ 0 }, text, SPIFFE_MAX, NULL), 0);
	CHECK_INT(spiffe_parse(&(struct spiffe){ 0 }, text, SPIFFE_MAX + 1, NULL), -EINVAL);
}

static void formats(void)
{
	char id[SPIFFE_SIZE] = "";
	char name[SPIFFE_SIZE] = "";

	CHECK_INT(spiffe_format(id, "nacre.local", "n1", NULL, NULL), 0);
	CHECK_STR(id, "spiffe://nacre.local/node/n1");
	CHECK_INT(spiffe_format(id, "nacre.local", "n1", "ab", NULL), 0);
	CHECK_STR(id, "spiffe://nacre.local/node/n1/instance/ab");
	CHECK_INT(spiffe_format(id, "Nacre", "n1", "ab", NULL), -EINVAL);
	CHECK_INT(spiffe_format(id, "nacre", "n/1", "ab", NULL), -EINVAL);
	CHECK_INT(spiffe_format(id, "nacre", "..", "ab", NULL), -EINVAL);
	CHECK_INT(spiffe_format(id, "nacre", "", NULL, NULL), -EINVAL);
	memset(name, 'x', SPIFFE_MAX);
	CHECK_INT(spiffe_format(id, "nacre", name, NULL, NULL), -EINVAL);
	CHECK_STR(id, "spiffe://nacre.local/node/n1/instance/ab");
	CHECK(spiffe_same_domain("spiffe://a/x", "spiffe://a/y"));
	CHECK(!spiffe_same_domain("spiffe://a/x", "spiffe://ab/x"));
	CHECK(!spiffe_same_domain("spiffe://a/x", "spiffe://a/"));
}

static void knows_users(void)
{
	static const char *const names[] = { "alice", "a", "A_1", "_x", "0.b-c" };
	static const char *const others[] = { "", ".", "..", ".x", "-x", "a/b", "a b", "\xc3\xa4" };
	char id[SPIFFE_SIZE], name[SPIFFE_USER_MAX + 2];
	struct spiffe s;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK_INT(spiffe_format_user(id, "nacre.local", names[i], NULL), 0);
		CHECK_INT(spiffe_parse(&s, id, strlen(id), NULL), 0);
		CHECK(spiffe_is_user(&s));
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		CHECK_INT(spiffe_format_user(id, "nacre.local", others[i], NULL), -EINVAL);
	memset(name, 'n', sizeof(name));
	name[SPIFFE_USER_MAX + 1] = '\0';
	CHECK(!spiffe_user_is_valid(name));
	name[SPIFFE_USER_MAX] = '\0';
	CHECK(spiffe_user_is_valid(name));
	CHECK_INT(spiffe_parse(&s, "spiffe://x/node/n", 17, NULL), 0);
	CHECK(!spiffe_is_user(&s));
	CHECK_INT(spiffe_parse(&s, "spiffe://x/user/n/m", 19, NULL), 0);
	CHECK(!spiffe_is_user(&s));
	CHECK_INT(spiffe_parse(&s, "spiffe://x/user", 15, NULL), 0);
	CHECK(!spiffe_is_user(&s));
}

UNIT_MAIN({ "knows_users", knows_users }, { "reads", reads }, { "refuses", refuses },
	  { "every_byte", every_byte }, { "bounds", bounds }, { "formats", formats })
