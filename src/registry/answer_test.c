/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/answer.h"

#include <errno.h>
#include <string.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "registry/limits.h"
#include "unit.h"

static int token(const char *text, struct answer_token *ret, struct arena *arena)
{
	return answer_token(ret, arena, text, strlen(text), NULL);
}

static void tokens(void)
{
	static const char *const bad[] = { "",
					   "[]",
					   "{}",
					   "{\"token\":5}",
					   "{\"token\":\"\"}",
					   "{\"token\":\"a b\"}",
					   "{\"token\":\"a\\r\\nX: y\"}",
					   "{\"token\":\"a\",\"expires_in\":\"1\"}" };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct answer_token t = { .token = "" };

	CHECK_INT(token("{\"token\":\"a\",\"access_token\":\"b\",\"expires_in\":300}", &t, &arena),
		  0);
	CHECK_STR(t.token, "a");
	CHECK_INT(t.seconds, 300);
	CHECK_INT(token("{\"access_token\":\"b\",\"x\":[1]}", &t, &arena), 0);
	CHECK_STR(t.token, "b");
	CHECK_INT(t.seconds, 60);
	CHECK_INT(token("{\"token\":\"a\",\"expires_in\":99999999999}", &t, &arena), 0);
	CHECK_INT(t.seconds, 86400);
	CHECK_INT(token("{\"token\":\"a\",\"expires_in\":0}", &t, &arena), 0);
	CHECK_INT(t.seconds, 60);
	CHECK_INT(token("{\"token\":\"a\",\"expires_in\":-300}", &t, &arena), 0);
	CHECK_INT(t.seconds, 60);
	CHECK_INT(token("{\"token\":\"a\",\"expires_in\":1}", &t, &arena), 0);
	CHECK_INT(t.seconds, 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(token(bad[i], &t, &arena) < 0);
}

static void longest_token(void)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	struct answer_token t;

	CHECK_INT(buf_add_str(&b, "{\"token\":\""), 0);
	for (int i = 0; i < REGISTRY_TOKEN_MAX; i++)
		CHECK_INT(buf_add_str(&b, "x"), 0);
	CHECK_INT(buf_add_str(&b, "\"}  "), 0);
	text = buf_take_str(&b);
	CHECK(text != NULL);
	if (!text)
		return;
	CHECK_INT(token(text, &t, &arena), 0);
	memcpy(text + strlen(text) - 4, "x\"} ", 4);
	CHECK(token(text, &t, &arena) < 0);
}

static void tags(void)
{
	static const char good[] = "{\"name\":\"a\",\"tags\":[\"1\",\"v1.0_x\"]}";
	static const char none[] = "{\"name\":\"a\",\"tags\":null}";
	static const char *const bad[] = { "{\"tags\":[\"../x\"]}", "{\"tags\":[\"\"]}",
					   "{\"tags\":[5]}",        "{\"tags\":\"x\"}",
					   "{\"tags\":[\"a@b\"]}",  "[]" };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct answer_tags t = { .n_tags = 0 };

	CHECK_INT(answer_tags(&t, &arena, good, sizeof(good) - 1, NULL), 0);
	CHECK_INT(t.n_tags, 2);
	if (t.n_tags == 2)
		CHECK_STR(t.tags[1], "v1.0_x");
	CHECK_INT(answer_tags(&t, &arena, none, sizeof(none) - 1, NULL), 0);
	CHECK_INT(t.n_tags, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(answer_tags(&t, &arena, bad[i], strlen(bad[i]), NULL) < 0);
}

static void reasons(void)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "{\"errors\":[{\"code\":\"A\",\"message\":\"b\\u001b[2J\"},{\"code\":\"C\"}]}",
		  "A: b?[2J" },
		{ "{\"details\":\"no user\"}", "no user" },
		{ "{\"errors\":[]}", "" },
		{ "{\"errors\":[5]}", "" },
		{ "<html>", "" },
		{ "", "" },
	};
	char reason[ANSWER_REASON_SIZE];
	_cleanup_str_ char *longest = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		answer_reason(reason, cases[i].text, strlen(cases[i].text));
		/* Without memory there is no reason. */
		CHECK(str_eq(reason, cases[i].reason) || !*reason);
	}
	longest = str_format("{\"message\":\"%0119d\303\244\"}", 0);
	CHECK(longest != NULL);
	if (!longest)
		return;
	answer_reason(reason, longest, strlen(longest));
	CHECK(str_is_utf8(reason, strlen(reason)));
}

UNIT_MAIN({ "tokens", tokens }, { "longest_token", longest_token }, { "tags", tags },
	  { "reasons", reasons })
