/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/text.h"

#include "unit.h"

#include "base/macros.h"

static void tells_how_long_ago(void)
{
	static const struct {
		uint64_t seconds;
		const char *text;
	} cases[] = {
		{ 0, "just now" },
		{ 1, "1 second ago" },
		{ 59, "59 seconds ago" },
		{ 60, "1 minute ago" },
		{ 200, "3 minutes ago" },
		{ 3599, "59 minutes ago" },
		{ 3600, "1 hour ago" },
		{ 86400, "1 day ago" },
		{ 6 * 86400, "6 days ago" },
		{ 7 * 86400, "1 week ago" },
		{ 40 * 86400, "1 month ago" },
		{ 400 * 86400, "1 year ago" },
		{ 800 * 86400, "2 years ago" },
	};
	nsec_t now = 2000000000 * NSEC_PER_SEC;
	char text[TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		text_ago(text, now, now - cases[i].seconds * NSEC_PER_SEC);
		CHECK_STR(text, cases[i].text);
	}
	text_ago(text, now, 0);
	CHECK_STR(text, "-");
	text_ago(text, now, now + NSEC_PER_SEC);
	CHECK_STR(text, "just now");
	text_ago(text, UINT64_MAX, 1);
	CHECK_STR(text, "584 years ago");
}

static void counts_bytes(void)
{
	static const struct {
		uint64_t n;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 999, "999 B" },
		{ 1000, "1.0 kB" },
		{ 4210000, "4.2 MB" },
		{ 999999, "999.9 kB" },
		{ 1000000, "1.0 MB" },
		{ 5000000000, "5.0 GB" },
		{ UINT64_MAX, "18.4 EB" },
	};
	char text[TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		text_bytes(text, cases[i].n);
		CHECK_STR(text, cases[i].text);
	}
}

static void shortens_ids(void)
{
	char text[TEXT_SIZE];

	text_short_id(text, "sha256:0123456789abcdef0123");
	CHECK_STR(text, "0123456789ab");
	text_short_id(text, "abc");
	CHECK_STR(text, "abc");
}

static void measures(void)
{
	CHECK_INT(text_width("nacré 貝"), 7);
}

UNIT_MAIN({ "tells_how_long_ago", tells_how_long_ago }, { "counts_bytes", counts_bytes },
	  { "shortens_ids", shortens_ids }, { "measures", measures })
