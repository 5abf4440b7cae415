/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/jsonread.h"

#include <errno.h>

#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

static const struct {
	const char *text, *error;
} wrong[] = {
	{ "", "the document ends too early (line 1)" },
	{ "{", "a member without a name (line 1)" },
	{ "{\n\"a\"}", "a member without a colon (line 2)" },
	{ "[1,]", "no JSON value (line 1)" },
	{ "[1 2]", "a value that is followed by neither ',' nor its end (line 1)" },
	{ "[1}", "a value that is followed by neither ',' nor its end (line 1)" },
	{ "1 1", "something stands behind the value (line 1)" },
	{ "01", "no JSON value (line 1)" },
	{ "1.", "a number without digits behind its point (line 1)" },
	{ "1e+", "a number without an exponent (line 1)" },
	{ "nul", "no JSON value (line 1)" },
	{ "\"\\x\"", "an escape that JSON does not have (line 1)" },
	{ "\"\\u12\"", "a string ends within an escape (line 1)" },
	{ "\"\\u12x4\"", "\\u needs four hexadecimal digits (line 1)" },
	{ "\"\\u0000\"", "a string contains NUL (line 1)" },
	{ "\"\\ud800\"", "half of a surrogate pair (line 1)" },
	{ "\"\\ud800\\u0041\"", "half of a surrogate pair (line 1)" },
	{ "\"\\udc00\"", "half of a surrogate pair (line 1)" },
	{ "\"a\tb\"", "a control byte in a string (line 1)" },
	{ "\"a", "a string without an end (line 1)" },
	{ "\"a\\\"", "a string without an end (line 1)" },
	{ "{\"a\":1,\"\\u0061\":2}", "a member that is there twice (line 1)" },
	{ "\"\xff\"", "no valid UTF-8, or a NUL in it" },
};

static void refuses(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		struct error err = ERROR_INIT;
		struct json_value *v = NULL;

		CHECK(json_parse(&v, &arena, wrong[i].text, strlen(wrong[i].text), &err) < 0);
		CHECK_STR(err.text, wrong[i].error);
		CHECK_INT(err.kind, ERROR_INVALID);
	}
}

static void reads(void)
{
	static const char text[] = " {\"a\\n\\u00e4\\ud83d\\ude00\": [true, null, -1.5e3, \"\\/\"],"
				   " \"o\": {}, \"n\": 18446744073709551615, \"z\": null} ";
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct error err = ERROR_INIT;
	const struct json_value *a;
	struct json_value *v = NULL;

	CHECK_INT(json_parse(&v, &arena, text, sizeof(text) - 1, &err), 0);
	if (!v)
		return;
	CHECK_INT(v->n, 4);
	a = json_member(v, "a\n\303\244\360\237\230\200");
	CHECK(a && a->kind == JSON_ARRAY && a->n == 4);
	if (!a)
		return;
	CHECK(a->first->kind == JSON_BOOL && a->first->truth);
	CHECK_INT(a->first->next->kind, JSON_NULL);
	CHECK_STR(a->first->next->next->text, "-1.5e3");
	CHECK_STR(a->first->next->next->next->text, "/");
	CHECK_STR(json_member(v, "n")->text, "18446744073709551615");
	CHECK(!json_member(v, "z") && !json_member(v, "y"));
}

/* JSONREAD_DEPTH_MAX and JSONREAD_MEMBERS_MAX, and one more. */
static void keeps_to_its_limits(void)
{
	for (int more = 0; more < 2; more++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		_cleanup_(buf_done) struct buf deep = BUF_INIT, wide = BUF_INIT;
		struct json_value *v = NULL;
		int r = 0;

		for (int i = 0; i < JSONREAD_DEPTH_MAX + more; i++)
			r = r < 0 ? r : buf_add_str(&deep, "[");
		r = r < 0 ? r : buf_add_str(&deep, "0");
		for (int i = 0; i < JSONREAD_DEPTH_MAX + more; i++)
			r = r < 0 ? r : buf_add_str(&deep, "]");
		for (int i = 0; i < JSONREAD_MEMBERS_MAX + more; i++)
			r = r < 0 ? r : buf_addf(&wide, "%s\"%d\":0", i ? "," : "{", i);
		r = r < 0 ? r : buf_add_str(&wide, "}");
		CHECK_INT(r, 0);
		CHECK_INT(json_parse(&v, &arena, buf_data(&deep), deep.len, NULL),
			  more ? -EINVAL : 0);
		CHECK_INT(json_parse(&v, &arena, buf_data(&wide), wide.len, NULL),
			  more ? -EINVAL : 0);
	}
}

/* A member that is there twice, the second one at the end, among few and among many. */
static void finds_what_is_there_twice(void)
{
	for (int n = 1; n <= 4096; n *= 2) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		_cleanup_(buf_done) struct buf once = BUF_INIT, twice = BUF_INIT;
		struct error err = ERROR_INIT;
		struct json_value *v = NULL;
		int r = 0;

		for (int i = 0; i < n; i++)
			r = r < 0 ? r : buf_addf(&once, "%s\"m%d\":%d", i ? "," : "{", i, i);
		r = r < 0 ? r : buf_add(&twice, buf_data(&once), once.len);
		r = r < 0 ? r : buf_addf(&twice, ",\"m%d\":0}", n / 2);
		r = r < 0 ? r : buf_add_str(&once, "}");
		CHECK_INT(r, 0);
		CHECK_INT(json_parse(&v, &arena, buf_data(&once), once.len, NULL), 0);
		CHECK_INT((int)v->n, n);
		CHECK(json_member(v, "m0") && !json_member(v, "m"));
		CHECK_INT(json_parse(&v, &arena, buf_data(&twice), twice.len, &err), -EINVAL);
		CHECK_STR(err.text, "a member that is there twice (line 1)");
	}
}

/* The end of FNV-1a's hash of a name that the reader puts its members in order by. */
static unsigned name_slot(const char *name)
{
	uint32_t h = 2166136261U;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619U;
	return h & 4095;
}

/* 1024 members whose names were chosen for one slot of 4096, and one more. */
static void refuses_names_that_collide(void)
{
	for (int more = 0; more < 2; more++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		_cleanup_(buf_done) struct buf b = BUF_INIT;
		struct error err = ERROR_INIT;
		struct json_value *v = NULL;
		int r = buf_add_str(&b, "{");

		for (unsigned k = 0, n = 0; n < 1024U + more; k++) {
			char name[16];

			(void)str_printf(name, sizeof(name), "%u", k);
			if (name_slot(name) != 0)
				continue;
			r = r < 0 ? r : buf_addf(&b, "%s\"%s\":0", n ? "," : "", name);
			n++;
		}
		r = r < 0 ? r : buf_add_str(&b, "}");
		CHECK_INT(r, 0);
		CHECK_INT(json_parse(&v, &arena, buf_data(&b), b.len, &err), more ? -EINVAL : 0);
		CHECK_STR(err.text,
			  more ? "an object with too many members of one hash (line 1)" : "");
	}
}

static void costs_no_more_than_its_arena(void)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(1000);
	_cleanup_(buf_done) struct buf wide = BUF_INIT;
	struct error err = ERROR_INIT;
	struct json_value *v = NULL;
	int r = 0;

	for (int i = 0; i < 100; i++)
		r = r < 0 ? r : buf_add_str(&wide, i ? ",0" : "[0");
	r = r < 0 ? r : buf_add_str(&wide, "]");
	CHECK_INT(r, 0);
	CHECK_INT(json_parse(&v, &arena, buf_data(&wide), wide.len, &err), -ENOMEM);
}

UNIT_MAIN({ "refuses what is no JSON", refuses }, { "reads", reads },
	  { "keeps to its limits", keeps_to_its_limits },
	  { "finds what is there twice", finds_what_is_there_twice },
	  { "refuses names that collide", refuses_names_that_collide },
	  { "costs no more than its arena", costs_no_more_than_its_arena })
