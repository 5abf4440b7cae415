/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log/error.h"

#include <errno.h>

#include "base/text/str.h"
#include "unit.h"

static void set_says_what_and_why(void)
{
	struct error err = ERROR_INIT;

	CHECK_STR(error_text(&err), "Success");
	CHECK_INT(error_set(&err, -ENOENT, "open %s", "x"), -ENOENT);
	CHECK_STR(err.text, "open x: No such file or directory");
	CHECK_INT(err.kind, ERROR_FAULT);
	CHECK_INT(error_set(&err, -EIO, "%s", ""), -EIO);
	CHECK_STR(err.text, "Input/output error");
	CHECK_INT(error_set(NULL, -EIO, "x"), -EIO);
}

static void refuse_has_a_code_for_each_kind(void)
{
	struct error err = ERROR_INIT;

	for (int kind = 0; kind < ERROR_KIND_COUNT; kind++) {
		int r = error_refuse(&err, (enum error_kind)kind, "no %d", kind);

		CHECK(r < 0);
		CHECK_INT(err.code, r);
		CHECK_INT(err.kind, kind);
		CHECK_INT(error_refuse(NULL, (enum error_kind)kind, "x"), r);
	}
	CHECK_STR(err.text, "no 14");
	CHECK_INT(error_refuse(&err, ERROR_NOT_FOUND, "x"), -ENOENT);
}

static void wrap_puts_in_front(void)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_DENIED, "not you");
	CHECK_INT(error_wrap(&err, -EIO, "start %s", "web"), -EACCES);
	CHECK_STR(err.text, "start web: not you");
	CHECK_INT(err.kind, ERROR_DENIED);
	CHECK_INT(error_wrap(NULL, -EIO, "x"), -EIO);
	err = (struct error)ERROR_INIT;
	CHECK_INT(error_wrap(&err, -EPERM, "x"), -EPERM);
}

/* However long the text, it ends within the buffer, and a failed call still says its reason. */
static void long_texts_are_cut(void)
{
	char longest[2 * ERROR_TEXT_MAX];
	struct error err = ERROR_INIT;
	size_t n;

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	(void)error_set(&err, -ENOSPC, "write %s", longest);
	n = strlen(err.text);
	CHECK_INT(n, ERROR_TEXT_MAX - 1);
	CHECK_STR(err.text + n - 25, ": No space left on device");
	(void)error_wrap(&err, 0, "%s", longest);
	CHECK_INT(strlen(err.text), ERROR_TEXT_MAX - 1);
	(void)error_refuse(&err, ERROR_INVALID, "%s", longest);
	CHECK_INT(strlen(err.text), ERROR_TEXT_MAX - 1);
}

static void a_field_is_named(void)
{
	struct error err = ERROR_INIT, copy = ERROR_INIT;

	CHECK_INT(error_field(&err, ERROR_INVALID, "containers[1].image", "%s", "required"),
		  -EINVAL);
	CHECK_STR(err.text, "containers[1].image: required");
	CHECK_STR(err.field, "containers[1].image");
	(void)error_wrap(&err, 0, "run web");
	CHECK_STR(err.field, "containers[1].image");
	(void)error_copy(&copy, &err);
	CHECK_STR(copy.field, "containers[1].image");
	(void)error_refuse(&err, ERROR_NOT_FOUND, "no image");
	CHECK_STR(err.field, "");
	CHECK_INT(error_wrap_field(&err, -EIO, "image"), -ENOENT);
	CHECK_STR(err.text, "image: no image");
	CHECK_STR(err.field, "image");
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	(void)error_set(&err, -EIO, "read");
	CHECK_STR(err.field, "");
	CHECK_INT(error_field(NULL, ERROR_EXISTS, "name", "taken"), -EEXIST);
	CHECK_INT(error_wrap_field(NULL, -EIO, "x"), -EIO);
}

/* What is cut in the middle of a character is not passed on as it is. */
static void a_cut_text_stays_utf8(void)
{
	char text[ERROR_TEXT_MAX + 1];
	struct error err = ERROR_INIT;

	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 3);
	(void)error_refuse(&err, ERROR_INVALID, "%s", text);
	CHECK(str_is_utf8(err.text, strlen(err.text)));
	(void)error_wrap(&err, 0, "%s", "x");
	CHECK(str_is_utf8(err.text, strlen(err.text)));
}

static void copies(void)
{
	struct error a = ERROR_INIT, b = ERROR_INIT;

	(void)error_refuse(&a, ERROR_ABORTED, "gone");
	CHECK_INT(error_copy(&b, &a), -ESTALE);
	CHECK_STR(b.text, "gone");
	CHECK_INT(error_copy(NULL, &a), -ESTALE);
	CHECK_INT(error_copy(&b, NULL), 0);
	CHECK_STR(b.text, "gone");
	CHECK(*error_text(NULL));
}

UNIT_MAIN({ "set says what and why", set_says_what_and_why },
	  { "refuse has a code for each kind", refuse_has_a_code_for_each_kind },
	  { "wrap puts in front", wrap_puts_in_front },
	  { "long texts are cut", long_texts_are_cut }, { "a field is named", a_field_is_named },
	  { "a cut text stays UTF-8", a_cut_text_stays_utf8 }, { "copies", copies })
