/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/str.h"

#include <errno.h>

#include "unit.h"

static void copies_what_fits(void)
{
	char to[4];

	CHECK_INT(str_copy(to, sizeof(to), "abc"), 0);
	CHECK_STR(to, "abc");
	CHECK_INT(str_copy(to, sizeof(to), "wxyz"), -ENAMETOOLONG);
	CHECK_STR(to, "wxy");
	CHECK_INT(str_copy(to, 1, "a"), -ENAMETOOLONG);
	CHECK_STR(to, "");
	CHECK_INT(str_printf(to, sizeof(to), "%d", 123), 3);
	CHECK_INT(str_printf(to, sizeof(to), "%d", 1234), -ENAMETOOLONG);
	CHECK_STR(to, "123");
}

static void compares(void)
{
	CHECK(str_has_suffix("a.c", ".c"));
	CHECK(str_has_suffix("a.c", ""));
	CHECK(!str_has_suffix("c", ".c"));
	CHECK(str_has_prefix("abc", "ab") && !str_has_prefix("a", "ab"));
	CHECK(str_empty(NULL) && str_empty("") && !str_empty("a"));
	CHECK(str_is_clean("a b\xc3\xa4"));
	CHECK(!str_is_clean("a\n") && !str_is_clean("\x7f") && !str_is_clean("\x1b[1m"));
}

/* Each first and last code point of each length, and what must not pass. */
static void utf8(void)
{
	static const char *const good[] = {
		"",
		"a",
		"\x7f",
		"\xc2\x80",
		"\xdf\xbf",
		"\xe0\xa0\x80",
		"\xed\x9f\xbf",
		"\xee\x80\x80",
		"\xef\xbf\xbf",
		"\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf",
		"a\xc3\xa4z",
	};
	static const char *const bad[] = {
		"\x80",
		"\xbf",
		"\xc0\x80",
		"\xc1\xbf",
		"\xc2",
		"\xc2z",
		"\xc2\xc0",
		"\xe0\x9f\xbf",
		"\xe0\xa0",
		"\xe0\xa0z",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xf0\x8f\xbf\xbf",
		"\xf0\x90\x80",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xf8\x88\x80\x80",
		"\xfe",
		"\xff",
		"a\xe2\x82",
		"\xf0\x90z\x80",
		"\xf0\x90\x80\xc0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK(str_is_utf8(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!str_is_utf8(bad[i], strlen(bad[i])));
	CHECK(!str_is_utf8("a\0b", 3));
	/* A sequence that goes on behind the end. */
	CHECK(!str_is_utf8("\xc3\xa4", 1));
	CHECK(str_is_utf8(NULL, 0));
}

/* Each of the 1,114,112 code points in its one right form, told by the arithmetic of the encoding.
 */
static void utf8_all(void)
{
	unsigned n_wrong = 0;

	for (uint32_t c = 1; c < 0x110000; c++) {
		unsigned char s[4];
		size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
		uint32_t rest = c;

		for (size_t i = n - 1; i > 0; i--, rest >>= 6)
			s[i] = (unsigned char)(0x80 | (rest & 0x3f));
		s[0] = (unsigned char)(lead[n] | rest);
		n_wrong += str_is_utf8(s, n) != (c < 0xd800 || c > 0xdfff);
	}
	CHECK_INT(n_wrong, 0);
}

static void formats(void)
{
	_cleanup_str_ char *s = str_format("%s%d", "x", 1);
	_cleanup_str_ char *longer = str_format("%1000d", 1);

	CHECK_STR(s, "x1");
	CHECK(longer && strlen(longer) == 1000);
}

static void lists(void)
{
	_cleanup_strv_ char **v = NULL;
	_cleanup_strv_ char **copy = NULL;
	_cleanup_strv_ char **none = strv_copy(NULL);

	CHECK_INT(strv_len(NULL), 0);
	CHECK(none && !none[0]);
	CHECK_INT(strv_add(&v, "a"), 0);
	CHECK_INT(strv_add(&v, "b"), 0);
	CHECK_INT(strv_len(v), 2);
	copy = strv_copy(v);
	CHECK(copy != NULL);
	CHECK_STR(copy[1], "b");
	CHECK(copy[1] != v[1]);
	CHECK(!copy[2]);
}

static void environment(void)
{
	_cleanup_strv_ char **env = NULL;

	CHECK(!strv_env_get(NULL, "A"));
	CHECK_INT(strv_env_put(&env, "A=1"), 0);
	CHECK_INT(strv_env_put(&env, "AB=2"), 0);
	CHECK_INT(strv_env_put(&env, "A=3=4"), 0);
	CHECK_INT(strv_env_put(&env, "C="), 0);
	CHECK_INT(strv_len(env), 3);
	CHECK_STR(strv_env_get(env, "A"), "3=4");
	CHECK_STR(strv_env_get(env, "AB"), "2");
	CHECK_STR(strv_env_get(env, "C"), "");
	CHECK(!strv_env_get(env, "B"));
}

static void cleans(void)
{
	static const struct {
		const char *dirty, *clean;
	} cases[] = {
		{ "plain nacré 貝", "plain nacré 貝" },
		{ "a\033[31mb", "a?[31mb" },
		{ "a\nb\tc\x7f", "a?b?c?" },
		{ "a\xc2\x9b"
		  "31m",
		  "a??31m" },
		{ "\xc2", "\xc2" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "%s", cases[i].dirty);
		str_clean(text);
		CHECK_STR(text, cases[i].clean);
	}
}

UNIT_MAIN({ "copies what fits", copies_what_fits }, { "compares", compares }, { "utf8", utf8 },
	  { "utf8, all code points", utf8_all }, { "formats", formats }, { "lists", lists },
	  { "environment", environment }, { "cleans", cleans })
