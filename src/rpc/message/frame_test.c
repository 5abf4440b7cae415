/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/frame.h"

#include <errno.h>

#include "base/macros.h"
#include "unit.h"

static void timeouts_are_parsed_exactly(void)
{
	static const struct {
		const char *text;
		int r;
		nsec_t timeout;
	} table[] = {
		{ "1n", 0, 1 },
		{ "1u", 0, NSEC_PER_USEC },
		{ "100m", 0, 100 * NSEC_PER_MSEC },
		{ "5S", 0, 5 * NSEC_PER_SEC },
		{ "2M", 0, 120 * NSEC_PER_SEC },
		{ "1H", 0, 3600 * NSEC_PER_SEC },
		{ "0S", 0, 0 },
		{ "99999999n", 0, 99999999 },
		{ "99999999H", 0, NSEC_NEVER },
		{ "100000000n", -EINVAL, 0 },
		{ "000000001n", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "S", -EINVAL, 0 },
		{ "1", -EINVAL, 0 },
		{ "1s", -EINVAL, 0 },
		{ "1Sx", -EINVAL, 0 },
		{ "-1S", -EINVAL, 0 },
		{ " 1S", -EINVAL, 0 },
		{ "1 S", -EINVAL, 0 },
		{ "1.5S", -EINVAL, 0 },
	};
	nsec_t timeout;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		timeout = 0;
		CHECK_INT(frame_timeout_parse(table[i].text, &timeout), table[i].r);
		CHECK_INT(timeout, table[i].timeout);
	}
}

static void timeouts_are_never_sent_shorter(void)
{
	static const struct {
		nsec_t timeout;
		const char *text;
	} table[] = {
		{ 0, "0n" },
		{ 99999999, "99999999n" },
		{ 100000000, "100000u" },
		{ 100000001, "100001u" },
		{ 3600 * NSEC_PER_SEC, "3600000m" },
		{ 100000 * NSEC_PER_SEC + 1, "100001S" },
		{ NSEC_NEVER - 1, "5124096H" },
	};
	char text[FRAME_TIMEOUT_SIZE];
	nsec_t back;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		frame_timeout_format(text, table[i].timeout);
		CHECK_STR(text, table[i].text);
		back = 0;
		CHECK_INT(frame_timeout_parse(text, &back), 0);
		CHECK(back >= table[i].timeout);
	}
}

static void messages_survive_the_percent_form(void)
{
	char to[64], back[64];

	frame_message_encode(to, sizeof(to), "50% of \xc3\xa4\n");
	CHECK_STR(to, "50%25 of %C3%A4%0A");
	frame_message_decode(back, sizeof(back), to);
	CHECK_STR(back, "50% of \xc3\xa4\n");
	frame_message_decode(back, sizeof(back), "100% %zz %4 %00 %41%");
	CHECK_STR(back, "100% %zz %4 %00 A%");
	/* No escape is cut in the middle. */
	frame_message_encode(to, 6, "aaa\n");
	CHECK_STR(to, "aaa");
	frame_message_decode(back, 3, "abcdef");
	CHECK_STR(back, "ab");
}

static void content_types(void)
{
	CHECK(frame_content_type("application/grpc"));
	CHECK(frame_content_type("application/grpc+proto"));
	CHECK(frame_content_type("application/grpc;charset=utf-8"));
	CHECK(!frame_content_type("application/grpc+json"));
	CHECK(!frame_content_type("application/grpc-web"));
	CHECK(!frame_content_type("application/json"));
	CHECK(!frame_content_type(""));
}

static void prefixes(void)
{
	uint8_t bytes[FRAME_PREFIX];
	bool compressed = true;
	size_t len = 0;

	frame_prefix_write(bytes, 0x01020304, false);
	CHECK(frame_prefix_read(bytes, &len, &compressed));
	CHECK_INT(len, 0x01020304);
	CHECK(!compressed);
	frame_prefix_write(bytes, 5, true);
	CHECK(frame_prefix_read(bytes, &len, &compressed));
	CHECK(compressed);
	bytes[0] = 2;
	CHECK(!frame_prefix_read(bytes, &len, &compressed));
}

static void lists(void)
{
	CHECK(frame_list_has("gzip", "gzip"));
	CHECK(frame_list_has(FRAME_ENCODINGS, "gzip"));
	CHECK(frame_list_has(" identity ,, gzip ", "gzip"));
	CHECK(!frame_list_has("", "gzip"));
	CHECK(!frame_list_has(" , ", "gzip"));
	CHECK(!frame_list_has("xgzip,gzipx,gzi", "gzip"));
}

UNIT_MAIN({ "timeouts are parsed exactly", timeouts_are_parsed_exactly },
	  { "timeouts are never sent shorter", timeouts_are_never_sent_shorter },
	  { "messages survive the percent form", messages_survive_the_percent_form },
	  { "content types", content_types }, { "prefixes", prefixes }, { "lists", lists })
