/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/text/str.h"

static void json_newline(struct json *j)
{
	if (j->compact)
		return;
	(void)fprintf(j->to, "\n%*s", (int)(2 * j->depth), "");
}

/* The length of the UTF-8 sequence at s, 0 where there is none. */
static size_t json_sequence(const char *s)
{
	size_t left = strnlen(s, 4);

	for (size_t n = 1; n <= left; n++) {
		if (str_is_utf8(s, n))
			return n;
	}
	return 0;
}

static void json_put_text(struct json *j, const char *s)
{
	static const char *const shorts[0x20] = {
		['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r",
	};

	(void)fputc('"', j->to);
	while (*s) {
		unsigned char c = (unsigned char)*s;
		size_t n = json_sequence(s);

		if (n == 0)
			(void)fputs("\xef\xbf\xbd", j->to);
		else if (c == '"' || c == '\\')
			(void)fprintf(j->to, "\\%c", c);
		else if (c < 0x20 && shorts[c])
			(void)fputs(shorts[c], j->to);
		else if (str_control_len(s))
			(void)fprintf(j->to, "\\u%04x", n == 2 ? (unsigned char)s[1] : c);
		else
			(void)fwrite(s, 1, n, j->to);
		s += n ? n : 1;
	}
	(void)fputc('"', j->to);
}

/* What stands in front of each value. */
static void json_begin(struct json *j, const char *key)
{
	if (j->filled)
		(void)fputc(',', j->to);
	if (j->depth > 0)
		json_newline(j);
	if (key) {
		json_put_text(j, key);
		(void)fputs(j->compact ? ":" : ": ", j->to);
	}
	j->filled = true;
}

static void json_finish(struct json *j)
{
	if (j->depth > 0)
		return;
	(void)fputc('\n', j->to);
	j->filled = false;
}

static void json_open(struct json *j, const char *key, char opener, char closer)
{
	assert(j->depth < JSON_DEPTH_MAX);
	json_begin(j, key);
	(void)fputc(opener, j->to);
	j->closers[j->depth++] = closer;
	j->filled = false;
}

void json_put_object(struct json *j, const char *key)
{
	json_open(j, key, '{', '}');
}

void json_put_array(struct json *j, const char *key)
{
	json_open(j, key, '[', ']');
}

void json_put_end(struct json *j)
{
	assert(j->depth > 0);
	j->depth--;
	if (j->filled)
		json_newline(j);
	(void)fputc(j->closers[j->depth], j->to);
	j->filled = true;
	json_finish(j);
}

void json_put_string(struct json *j, const char *key, const char *value)
{
	if (!value) {
		json_put_null(j, key);
		return;
	}
	json_begin(j, key);
	json_put_text(j, value);
	json_finish(j);
}

void json_put_word(struct json *j, const char *key, const char *value)
{
	json_put_string(j, key, str_empty(value) ? NULL : value);
}

void json_put_integer(struct json *j, const char *key, int64_t value)
{
	json_begin(j, key);
	(void)fprintf(j->to, "%" PRId64, value);
	json_finish(j);
}

void json_put_unsigned(struct json *j, const char *key, uint64_t value)
{
	json_begin(j, key);
	(void)fprintf(j->to, "%" PRIu64, value);
	json_finish(j);
}

static void json_literal(struct json *j, const char *key, const char *text)
{
	json_begin(j, key);
	(void)fputs(text, j->to);
	json_finish(j);
}

void json_put_real(struct json *j, const char *key, uint64_t whole, unsigned hundredths)
{
	json_begin(j, key);
	(void)fprintf(j->to, "%" PRIu64 ".%02u", whole, hundredths);
	json_finish(j);
}

void json_put_bool(struct json *j, const char *key, bool value)
{
	json_literal(j, key, value ? "true" : "false");
}

void json_put_null(struct json *j, const char *key)
{
	json_literal(j, key, "null");
}

void json_put_document(struct json *j, const char *key, const void *text, size_t len)
{
	json_begin(j, key);
	(void)fwrite(text, 1, len, j->to);
	json_finish(j);
}

void json_put_time(struct json *j, const char *key, nsec_t real)
{
	char text[CLOCK_TEXT_SIZE];

	if (!real) {
		json_put_null(j, key);
		return;
	}
	clock_format(text, real);
	json_put_string(j, key, text);
}
