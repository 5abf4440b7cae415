/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/flat.h"

#include "base/macros.h"
#include "unit.h"

static void flat(void)
{
	static const char text[] =
		"usage_usec 120\nuser_usec 100\nsystem_usec 20\nlimit max\nx y\n";
	uint64_t value = 7;

	CHECK_INT(flat_value(text, "usage_usec"), 120);
	CHECK_INT(flat_value(text, "system_usec"), 20);
	CHECK_INT(flat_value(text, "usec"), 0);
	CHECK_INT(flat_value(text, "usage"), 0);
	CHECK_INT(flat_value("", "usage"), 0);
	CHECK_INT(flat_value("a 1", "a"), 1);
	CHECK(flat_value("a 18446744073709551615\n", "a") == UINT64_MAX);
	CHECK(flat_value(text, "limit") == UINT64_MAX);
	CHECK(!flat_find(text, "none", &value) && !flat_find(text, "x", &value));
	CHECK_INT(value, 7);
	CHECK(flat_find("a 0\n", "a", &value));
	CHECK_INT(value, 0);
}

static void nested(void)
{
	static const char text[] = "8:0 rbytes=100 wbytes=1 rios=2 wios=3 dbytes=0 dios=0\n"
				   "8:16 rbytes=11 wbytes=20 rios=30 wios=40 dbytes=0 dios=0\n";

	CHECK_INT(flat_nested_sum(text, "rbytes"), 111);
	CHECK_INT(flat_nested_sum(text, "wios"), 43);
	CHECK_INT(flat_nested_sum(text, "bytes"), 0);
	CHECK_INT(flat_nested_sum("", "rbytes"), 0);
}

static void lists(void)
{
	static const char *const good[] = { "0", "0-3", "0-3,7", "8191", "1,2,3-3" };
	static const char *const bad[] = { "",    ",",    "0,", "-1",   "3-1",   "a",
					   "0 1", "8192", "0-", "1,,2", "0-1-2", "0x1" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK(flat_list_is_good(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!flat_list_is_good(bad[i]));
	CHECK(flat_list_within("1-2", "0-3"));
	CHECK(flat_list_within("0,3", "0-1,3"));
	CHECK(!flat_list_within("2", "0-1,3"));
	CHECK(!flat_list_within("0-4", "0-3"));
	CHECK(!flat_list_within("0", ""));
}

UNIT_MAIN({ "flat", flat }, { "nested", nested }, { "lists", lists })
