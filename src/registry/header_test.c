/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/header.h"

#include "base/macros.h"
#include "unit.h"

#define NOW (UINT64_C(784111777) * 1000000000) /* Sun, 06 Nov 1994 08:49:37 GMT */

static void names(void)
{
	CHECK(header_is("Content-Type", "content-type"));
	CHECK(!header_is("Content-Typ", "content-type"));
	CHECK(!header_is("Content-Typee", "content-type"));
	CHECK(!header_is("", "a") && header_is("", ""));
}

static void media_types(void)
{
	char type[16];

	header_media_type("Text/HTML; charset=x", type, sizeof(type));
	CHECK_STR(type, "text/html");
	header_media_type("text", type, sizeof(type));
	CHECK_STR(type, "");
	header_media_type("a/567890123456", type, sizeof(type));
	CHECK_STR(type, "a/567890123456");
	header_media_type("a/56789012345678", type, sizeof(type));
	CHECK_STR(type, "");
	header_media_type("a/\x7f", type, sizeof(type));
	CHECK_STR(type, "");
	header_media_type("a;b/c", type, sizeof(type));
	CHECK_STR(type, "");
}

static void links(void)
{
	static const struct {
		const char *text, *to;
	} cases[] = {
		{ "</v2/x?last=a>; rel=\"next\"", "/v2/x?last=a" },
		{ "<a>; rel=prev, <b>;title=x; Rel=next", "b" },
		{ "<a>;rel=next,", "a" },
		{ "<a>", NULL },
		{ "<a; rel=next", NULL },
		{ "a; rel=next", NULL },
		{ "<12345678901234567890>; rel=next", NULL },
		{ "", NULL },
		{ "<a>; rel=nex", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char to[16] = "";

		CHECK_INT(header_next_link(cases[i].text, to, sizeof(to)), cases[i].to != NULL);
		if (cases[i].to)
			CHECK_STR(to, cases[i].to);
	}
}

static void retry_after(void)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "0", 0 },
		{ "3", 3000 },
		{ "30", 30000 },
		{ "31", 30000 },
		{ "1000000000", 30000 },
		{ "99999999999999999999999", 30000 },
		{ "Sun, 06 Nov 1994 08:49:39 GMT", 2000 },
		{ "Sun, 06 Nov 1994 08:49:00 GMT", 0 },
		{ "Sun, 06 Nov 2294 08:49:39 GMT", 30000 },
		{ "Sun, 06 Xxx 1994 08:49:39 GMT", -1 },
		{ "Sun, 06 Nov 1994 08:49:39 UTC", -1 },
		{ "-1", -1 },
		{ "1.5", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ms = 0;

		CHECK_INT(header_retry_after(cases[i].text, NOW, 30000, &ms), cases[i].ms >= 0);
		if (cases[i].ms >= 0)
			CHECK_INT(ms, cases[i].ms);
	}
}

static void ranges(void)
{
	static const char *const bad[] = {
		"",          "bytes 5-4/9", "bytes 0-9/9",  "bytes 0-1/*",
		"bytes */9", "0-1/9",       "bytes 0-1/9 ", "bytes 99999999999999999999-1/9"
	};
	struct header_range range;
	uint64_t n;

	CHECK(header_content_range("bytes 5-8/9", &range));
	CHECK_INT(range.first, 5);
	CHECK_INT(range.last, 8);
	CHECK_INT(range.total, 9);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!header_content_range(bad[i], &range));
	CHECK(header_upload_range("0-9", &n));
	CHECK_INT(n, 10);
	CHECK(header_upload_range("bytes=0-0", &n));
	CHECK_INT(n, 1);
	CHECK(!header_upload_range("1-9", &n));
	CHECK(!header_upload_range("0-", &n));
	CHECK(!header_upload_range("0-18446744073709551615", &n));
	CHECK(header_number("18446744073709551615", UINT64_MAX, &n));
	CHECK(!header_number("18446744073709551616", UINT64_MAX, &n));
	CHECK(!header_number("+1", UINT64_MAX, &n));
}

UNIT_MAIN({ "names", names }, { "media_types", media_types }, { "links", links },
	  { "retry_after", retry_after }, { "ranges", ranges })
