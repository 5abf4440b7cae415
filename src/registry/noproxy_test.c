/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/noproxy.h"

#include <string.h>

#include "base/text/str.h"
#include "unit.h"

static bool has(const char *list, const char *url)
{
	struct url u;

	CHECK_INT(url_parse(&u, url, NULL), 0);
	return noproxy_has(list, &u);
}

static void names(void)
{
	static const struct {
		const char *list, *url;
		bool is;
	} cases[] = {
		{ "a.example", "https://a.example/", true },
		{ "a.example", "https://x.a.example/", true },
		{ ".a.example", "https://a.example/", true },
		{ ".a.example", "https://x.y.a.example/", true },
		{ "A.Example", "https://x.a.example/", true },
		{ "a.example", "https://ba.example/", false },
		{ "a.example", "https://a.example.com/", false },
		{ "x.a.example", "https://a.example/", false },
		{ "b,, a.example ,c", "https://a.example/", true },
		{ "b\ta.example", "https://a.example/", true },
		{ "*", "https://a.example/", true },
		{ "*", "https://10.1.2.3/", true },
		{ "*.example", "https://a.example/", false },
		{ "", "https://a.example/", false },
		{ ".", "https://a.example/", false },
		{ NULL, "https://a.example/", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_INT(has(cases[i].list, cases[i].url), cases[i].is);
}

static void ports(void)
{
	CHECK(has("a.example:443", "https://a.example/"));
	CHECK(!has("a.example:443", "http://a.example/"));
	CHECK(!has("a.example:", "https://a.example/"));
	CHECK(!has("a.example:x", "https://a.example/"));
	CHECK(has("10.1.2.3:5000", "http://10.1.2.3:5000/"));
	CHECK(!has("10.1.2.3:5000", "http://10.1.2.3:5001/"));
	CHECK(has("[fd00::1]:5000", "http://[fd00::1]:5000/"));
	CHECK(!has("[fd00::1]:5000", "http://[fd00::1]:5001/"));
	CHECK(!has("[fd00::1", "http://[fd00::1]/"));
	CHECK(!has("[fd00::1]x", "http://[fd00::1]/"));
}

static void addresses(void)
{
	CHECK(has("10.1.2.3", "http://10.1.2.3/"));
	CHECK(!has("10.1.2.3", "http://10.1.2.30/"));
	CHECK(!has("2.3", "http://10.1.2.3/"));
	CHECK(has("10.0.0.0/8", "http://10.1.2.3/"));
	CHECK(has("0.0.0.0/0", "http://10.1.2.3/"));
	CHECK(has("10.1.2.0/31", "http://10.1.2.1/"));
	CHECK(!has("10.1.2.0/31", "http://10.1.2.2/"));
	CHECK(!has("10.0.0.0/33", "http://10.1.2.3/"));
	CHECK(!has("10.0.0.0/", "http://10.1.2.3/"));
	CHECK(has("fd00::/9", "http://[fd00::1]/"));
	CHECK(!has("fd80::/9", "http://[fd00::1]/"));
	CHECK(has("fd00::1", "http://[fd00::1]/"));
	CHECK(!has("10.0.0.0/8", "http://[::ffff:10.1.2.3]/"));
	CHECK(!has("10.0.0.0/8", "http://a.example/"));
}

static void what_is_too_long_is_nobody(void)
{
	char list[400];

	memset(list, 'a', sizeof(list));
	(void)str_copy(list + 350, 50, ",a.example");
	CHECK(has(list, "http://a.example/"));
	CHECK(!has(list, "http://b.example/"));
}

UNIT_MAIN({ "names", names }, { "ports", ports }, { "addresses", addresses },
	  { "what_is_too_long_is_nobody", what_is_too_long_is_nobody })
