/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json.h"

#include "unit.h"

#include "base/macros.h"
#include "base/text/str.h"

struct capture {
	char *text;
	size_t len;
	FILE *to;
};

static FILE *capture_open(struct capture *c)
{
	c->to = open_memstream(&c->text, &c->len);
	if (!c->to)
		abort();
	return c->to;
}

static void capture_check(struct capture *c, const char *expected)
{
	(void)fclose(c->to);
	CHECK_STR(c->text, expected);
	free(c->text);
}

static void indents(void)
{
	struct capture c;
	struct json j = JSON_INIT(capture_open(&c));

	json_put_object(&j, NULL);
	json_put_string(&j, "a", "b");
	json_put_array(&j, "list");
	json_put_integer(&j, NULL, -1);
	json_put_unsigned(&j, NULL, UINT64_MAX);
	json_put_bool(&j, NULL, true);
	json_put_end(&j);
	json_put_array(&j, "empty");
	json_put_end(&j);
	json_put_object(&j, "nothing");
	json_put_end(&j);
	json_put_end(&j);
	capture_check(&c, "{\n  \"a\": \"b\",\n  \"list\": [\n    -1,\n    18446744073709551615,\n"
			  "    true\n  ],\n  \"empty\": [],\n  \"nothing\": {}\n}\n");
}

static void stays_on_a_line(void)
{
	struct capture c;
	struct json j = { .to = capture_open(&c), .compact = true };

	json_put_object(&j, NULL);
	json_put_null(&j, "n");
	json_put_word(&j, "w", "");
	json_put_string(&j, "s", "");
	json_put_end(&j);
	json_put_array(&j, NULL);
	json_put_end(&j);
	capture_check(&c, "{\"n\":null,\"w\":null,\"s\":\"\"}\n[]\n");
}

static void escapes(void)
{
	static const struct {
		const char *text, *json;
	} cases[] = {
		{ "plain", "\"plain\"" },
		{ "\"\\/", "\"\\\"\\\\/\"" },
		{ "\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"" },
		{ "\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"" },
		{ "\xc2\x9b"
		  "31m\xc2\xa0",
		  "\"\\u009b31m\xc2\xa0\"" },
		{ "nacré – 貝 🐚", "\"nacré – 貝 🐚\"" },
		{ "a\xff\xfez", "\"a\xef\xbf\xbd\xef\xbf\xbdz\"" },
		{ "cut\xe2\x82", "\"cut\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct capture c;
		struct json j = JSON_INIT(capture_open(&c));
		char expected[128];

		json_put_string(&j, NULL, cases[i].text);
		(void)snprintf(expected, sizeof(expected), "%s\n", cases[i].json);
		capture_check(&c, expected);
	}
}

static void tells_time(void)
{
	struct capture c;
	struct json j = { .to = capture_open(&c), .compact = true };

	json_put_array(&j, NULL);
	json_put_document(&j, NULL, "{\"a\": 1}, 2", 8);
	json_put_time(&j, NULL, 0);
	json_put_time(&j, NULL, 1769853600 * NSEC_PER_SEC + 5);
	json_put_end(&j);
	capture_check(&c, "[{\"a\": 1},null,\"2026-01-31T10:00:00.000000005Z\"]\n");
}

UNIT_MAIN({ "indents", indents }, { "stays_on_a_line", stays_on_a_line }, { "escapes", escapes },
	  { "tells_time", tells_time })
