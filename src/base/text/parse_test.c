/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/parse.h"

#include <errno.h>

#include "base/macros.h"
#include "unit.h"

static void numbers(void)
{
	static const char *const wrong[] = { "", " 1", "1 ", "+1", "-1", "0x1", "1a", "1.0", "\n" };
	uint64_t v = 7;
	uint32_t w = 7;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK_INT(parse_u64(wrong[i], 0, UINT64_MAX, &v), -EINVAL);
	CHECK_INT(parse_u64("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	CHECK_INT(parse_u64("99999999999999999999999999", 0, UINT64_MAX, &v), -ERANGE);
	CHECK_INT(parse_u64("4", 5, 9, &v), -ERANGE);
	CHECK_INT(parse_u64("10", 5, 9, &v), -ERANGE);
	CHECK_INT(v, 7);
	CHECK_INT(parse_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	CHECK(v == UINT64_MAX);
	CHECK_INT(parse_u64("007", 5, 9, &v), 0);
	CHECK_INT(v, 7);
	CHECK_INT(parse_u32("4294967296", &w), -ERANGE);
	CHECK_INT(w, 7);
	CHECK_INT(parse_u32("4294967295", &w), 0);
	CHECK(w == UINT32_MAX);
}

static void durations(void)
{
	static const struct {
		const char *text;
		nsec_t value;
	} good[] = {
		{ "10", 10 * NSEC_PER_SEC },
		{ "10s", 10 * NSEC_PER_SEC },
		{ "250ms", 250 * NSEC_PER_MSEC },
		{ "5m", 300 * NSEC_PER_SEC },
		{ "2h", 7200 * NSEC_PER_SEC },
		{ "0", 0 },
		{ "18446744073s", 18446744073ULL * NSEC_PER_SEC },
	};
	static const char *const wrong[] = {
		"", "s", "ms", "1 s", "-1s", "1d", "1S", "1ss", "1.5s"
	};
	nsec_t v = 7;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK_INT(parse_duration(wrong[i], &v), -EINVAL);
	CHECK_INT(parse_duration("18446744074", &v), -ERANGE);
	CHECK_INT(parse_duration("5124096h", &v), -ERANGE);
	CHECK_INT(parse_duration("18446744073709551616ms", &v), -ERANGE);
	CHECK_INT(parse_duration("100000000000000000000000000", &v), -ERANGE);
	CHECK_INT(v, 7);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CHECK_INT(parse_duration(good[i].text, &v), 0);
		CHECK(v == good[i].value);
	}
}

static void labels(void)
{
	char s[NAME_LABEL_MAX + 2];

	memset(s, 'a', sizeof(s));
	s[NAME_LABEL_MAX + 1] = '\0';
	CHECK(!name_is_label(s));
	CHECK(name_is_label(s + 1));
	CHECK(name_is_label("a") && name_is_label("0") && name_is_label("a-b--c9"));
	CHECK(!name_is_label("") && !name_is_label("-a") && !name_is_label("a-"));
	CHECK(!name_is_label("-") && !name_is_label(".") && !name_is_label(".."));
	for (int c = 1; c < 256; c++) {
		char one[2] = { (char)c, '\0' };

		CHECK(name_is_label(one) == ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')));
	}
}

static void paths(void)
{
	char s[NAME_PATH_MAX + 64] = "";
	size_t n = 0;

	CHECK(name_is_path("A/b-Z") && name_is_label_of_any_case("aZ") &&
	      !name_is_label_of_any_case("-A") && !name_is_label_of_any_case("A_b") &&
	      !name_is_label("A"));
	CHECK(name_is_path("a") && name_is_path("a/b") && name_is_path("a/b/c/d/e/f/g/h"));
	CHECK(!name_is_path("a/b/c/d/e/f/g/h/i"));
	CHECK(!name_is_path("") && !name_is_path("/") && !name_is_path("/a") &&
	      !name_is_path("a/"));
	CHECK(!name_is_path("a//b") && !name_is_path("a/../b") && name_is_path("a/B"));
	for (int i = 0; i < NAME_DEPTH_MAX; i++) {
		memset(s + n, 'x', NAME_LABEL_MAX);
		n += NAME_LABEL_MAX;
		s[n++] = '/';
	}
	s[n - 1] = '\0';
	CHECK(name_is_path(s));
	CHECK(strlen(s) + 1 <= NAME_PATH_MAX);
	CHECK_INT(name_depth(s), NAME_DEPTH_MAX);
	CHECK_INT(name_depth(""), 0);
	CHECK_INT(name_depth("a/b"), 2);
	CHECK_STR(name_last("a/b"), "b");
	CHECK_STR(name_last("a"), "a");
	CHECK_STR(name_last(""), "");
}

static void sizes(void)
{
	uint64_t v = 0;

	CHECK_INT(parse_size("4096", &v), 0);
	CHECK_INT(v, 4096);
	CHECK_INT(parse_size("64KiB", &v), 0);
	CHECK_INT(v, 65536);
	CHECK_INT(parse_size("3GiB", &v), 0);
	CHECK_INT(v, (uint64_t)3 << 30);
	CHECK_INT(parse_size("17179869184GiB", &v), -ERANGE);
	CHECK_INT(parse_size("1MB", &v), -EINVAL);
	CHECK_INT(parse_size("1 MiB", &v), -EINVAL);
	CHECK_INT(parse_size("MiB", &v), -EINVAL);
	CHECK_INT(parse_size("", &v), -EINVAL);
	CHECK_INT(parse_size("-1", &v), -EINVAL);
}

UNIT_MAIN({ "numbers", numbers }, { "durations", durations }, { "sizes", sizes },
	  { "labels", labels }, { "paths", paths })
