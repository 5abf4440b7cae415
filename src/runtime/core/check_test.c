/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/check.h"

#include "base/text/str.h"
#include "unit.h"

static void names(void)
{
	static const char *const good[] = {
		"", "a", "web-1", "0",
		"a23456789012345678901234567890123456789012345678901234567890123"
	};
	static const char *const bad[] = {
		"-a",       "a-",
		"A",        "a_b",
		"a/b",      "a.b",
		" a",       "..",
		"\xc3\xa4", "a234567890123456789012345678901234567890123456789012345678901234"
	};
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK_INT(check_name("meta.name", good[i], &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK(check_name("meta.name", bad[i], &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK(str_has_prefix(err.text, "meta.name: \""));
	}
}

static void paths(void)
{
	struct error err = ERROR_INIT;

	CHECK_INT(check_path("parent", "a/b/c", &err), 0);
	CHECK_INT(check_path("parent", "1/2/3/4/5/6/7/8", &err), 0);
	CHECK(check_path("parent", "1/2/3/4/5/6/7/8/9", &err) < 0);
	CHECK(check_path("parent", "a//b", &err) < 0);
	CHECK(check_path("parent", "/a", &err) < 0);
	CHECK(check_path("parent", "a/..", &err) < 0);
	CHECK(str_has_prefix(err.text, "parent: "));
}

static void environments(void)
{
	static char good[] = "A=b=c", empty[] = "A=", no_name[] = "=b", no_value[] = "A",
		    blank[] = "A B=c";
	char *v[] = { good, empty };
	char *bad[] = { no_name, no_value, blank };
	struct error err = ERROR_INIT;

	CHECK_INT(check_env("env", v, 2, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		v[1] = bad[i];
		CHECK(check_env("env", v, 2, &err) < 0);
		CHECK(str_has_prefix(err.text, "env[1]: "));
	}
}

static void sizes(void)
{
	static char big[131073];
	static char word[] = "x";
	static char *many[4097];
	char *one[] = { big }, *nine[9];
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = word;
	CHECK_INT(check_words("command", many, 4096, &err), 0);
	CHECK(check_words("command", many, 4097, &err) < 0);
	CHECK_STR(err.text, "command: 4097 are more than the limit of 4096");
	memset(big, 'x', sizeof(big) - 1);
	CHECK(check_words("command", one, 1, &err) < 0);
	CHECK_STR(err.text, "command: number 1 has 131072 bytes, and a program can be given at "
			    "most 131071 in one");
	big[sizeof(big) - 2] = '\0';
	CHECK_INT(check_words("command", one, 1, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(nine); i++)
		nine[i] = big;
	CHECK_INT(check_words("command", nine, 8, &err), 0);
	CHECK(check_words("command", nine, 9, &err) < 0);
	CHECK_STR(err.text, "command: 1179648 bytes are more than the limit of 1048576");
	CHECK(check_words("command", NULL, 0, &err) < 0);
	CHECK_STR(err.text, "command: required");
}

static void users_and_directories(void)
{
	static const char *const bad_users[] = { ":1", "a:b:c", "a b", "a\n", "../x" };
	struct error err = ERROR_INIT;

	CHECK_INT(check_user("user", "", &err), 0);
	CHECK_INT(check_user("user", "www-data:0", &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad_users); i++)
		CHECK(check_user("user", bad_users[i], &err) < 0);
	CHECK_INT(check_dir("cwd", "/a/b", &err), 0);
	CHECK(check_dir("cwd", "a/b", &err) < 0);
	CHECK_STR(err.text, "cwd: \"a/b\" is not an absolute path");
}

static void words_of_a_set(void)
{
	static const char *const set[] = { "pod", "none", "host" };
	struct error err = ERROR_INIT;
	const char *word = NULL;

	CHECK_INT(check_word("network", "", set, 3, &word, &err), 0);
	CHECK(word == set[0]);
	CHECK_INT(check_word("network", "host", set, 3, &word, &err), 0);
	CHECK(word == set[2]);
	CHECK(check_word("network", "Host", set, 3, &word, &err) < 0);
	CHECK_STR(err.text, "network: \"Host\" is none of \"pod\", \"none\", \"host\"");
	CHECK(check_unset("ports", 1, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNSUPPORTED);
	CHECK_INT(check_unset("ports", 0, &err), 0);
}

UNIT_MAIN({ "names", names }, { "paths", paths }, { "environments", environments },
	  { "sizes", sizes }, { "users and directories", users_and_directories },
	  { "words of a set", words_of_a_set })
