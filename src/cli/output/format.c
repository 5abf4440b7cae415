/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/format.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"

/* ---- values in a document of our own making, which is known to be right ---- */

static const char *json_blank(const char *at)
{
	return at + strspn(at, " \n");
}

/* Behind a string. */
static const char *json_string_end(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		at += *at == '\\' && at[1];
	return *at ? at + 1 : at;
}

/* Behind a value. */
static const char *json_value_end(const char *at)
{
	unsigned depth = 0;

	if (*at == '"')
		return json_string_end(at);
	if (*at != '{' && *at != '[')
		return at + strcspn(at, ",}] \n");
	while (*at) {
		if (*at == '"') {
			at = json_string_end(at);
			continue;
		}
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at++;
		if (depth == 0)
			break;
	}
	return at;
}

/* The first member or element inside of the object or array, NULL where there is none. */
static const char *json_first(const char *value)
{
	const char *at = json_blank(value + 1);

	return *at == '}' || *at == ']' ? NULL : at;
}

/* The one behind a value that ends at `end`. */
static const char *json_next(const char *end)
{
	const char *at = json_blank(end);

	return *at == ',' ? json_blank(at + 1) : NULL;
}

/* The value of a member, whose key is a plain word. */
static const char *json_member_value(const char *member)
{
	const char *at = json_blank(json_string_end(member));

	return json_blank(at + 1);
}

static const char *json_member(const char *object, const char *key, size_t len)
{
	if (*object != '{')
		return NULL;
	for (const char *at = json_first(object); at;) {
		const char *value = json_member_value(at);

		if (strncmp(at + 1, key, len) == 0 && at[1 + len] == '"')
			return value;
		at = json_next(json_value_end(value));
	}
	return NULL;
}

/* ---- the language ---- */

struct format {
	const char *begin; /* for positions */
	FILE *to;          /* NULL: only checked */
	struct error *err;
};

static int format_fail(const struct format *f, const char *at, const char *what, size_t len,
		       const char *why)
{
	return error_refuse(f->err, ERROR_INVALID, "--format: position %zu: %.*s%s",
			    (size_t)(at - f->begin) + 1, (int)len, what, why);
}

/* \uXXXX is only written for control characters. */
static void format_escape(const char *at, FILE *to)
{
	static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
	const char *known = strchr(from, *at);
	char digits[5] = "";

	if (*at == 'u') {
		memcpy(digits, at + 1, 4);
		(void)fputc((int)strtoul(digits, NULL, 16), to);
		return;
	}
	(void)fputc(known ? into[known - from] : *at, to);
}

static void format_string(const char *value, FILE *to)
{
	const char *end = json_string_end(value) - 1;

	for (const char *at = value + 1; at < end; at++) {
		if (*at != '\\') {
			(void)fputc(*at, to);
			continue;
		}
		at++;
		format_escape(at, to);
		at += *at == 'u' ? 4 : 0;
	}
}

static void format_value(const char *value, FILE *to)
{
	if (*value == '"')
		format_string(value, to);
	else if (!str_has_prefix(value, "null"))
		(void)fwrite(value, 1, (size_t)(json_value_end(value) - value), to);
}

/* "[N]" or "[*]" at `at`: *ret_end is behind it, *ret_index -1 for every one. */
static int format_index(const struct format *f, const char *at, const char **ret_end,
			long *ret_index)
{
	const char *digits = at + 1;
	size_t n = strspn(digits, "0123456789");

	if (digits[0] == '*' && digits[1] == ']') {
		*ret_index = -1;
		*ret_end = digits + 2;
		return 0;
	}
	if (n == 0 || n > 9 || digits[n] != ']')
		return format_fail(f, at, "", 0, "an index is [0], [1], … or [*]");
	*ret_index = strtol(digits, NULL, 10);
	*ret_end = digits + n + 1;
	return 0;
}

static size_t format_name_len(const char *at)
{
	size_t n = 0;

	while (isalnum((unsigned char)at[n]) || at[n] == '_')
		n++;
	return n;
}

/* One step of a path: a name (with its '.' in front where it is not the first) or an index. Where
 * it stands for every element, *ret_each is true and *value is the array still. */
static int format_step(const struct format *f, const char **at, bool first, const char **value,
		       bool *ret_each)
{
	const char *name = *at + (**at == '.');
	size_t len = format_name_len(name);
	long index;
	int r;

	*ret_each = false;
	if (**at != '[') {
		if ((first && **at == '.') || (!first && **at != '.') || len == 0)
			return format_fail(f, *at, "", 0, "a name, '.', '[' or '}' is expected");
		if (*value) {
			*value = json_member(*value, name, len);
			if (!*value)
				return format_fail(f, name, name, len, ": there is no such name");
		}
		*at = name + len;
		return 0;
	}
	name = *at;
	r = format_index(f, name, at, &index);
	if (r < 0 || !*value)
		return r;
	if (**value != '[')
		return format_fail(f, name, name, (size_t)(*at - name), ": this is no array");
	*ret_each = index < 0;
	if (index < 0)
		return 0;
	*value = json_first(*value);
	while (*value && index-- > 0)
		*value = json_next(json_value_end(*value));
	if (!*value)
		return format_fail(f, name, name, (size_t)(*at - name), ": there are not so many");
	return 0;
}

/* From `at` to the closing brace; value NULL while only the form is checked. */
static int format_path(const struct format *f, const char *at, bool first, const char *value,
		       const char **ret_end)
{
	while (*at != '}') {
		bool each;
		int r;

		if (!*at)
			return format_fail(f, at, "", 0, "'}' is missing");
		r = format_step(f, &at, first, &value, &each);
		if (r < 0)
			return r;
		first = false;
		if (!each)
			continue;
		value = json_first(value);
		for (const char *comma = ""; value; comma = ",") {
			const char *element = value;

			(void)fputs(comma, f->to);
			r = format_path(f, at, false, element, ret_end);
			if (r < 0)
				return r;
			value = json_next(json_value_end(element));
		}
		return format_path(f, at, false, NULL, ret_end);
	}
	if (value && f->to)
		format_value(value, f->to);
	*ret_end = at + 1;
	return 0;
}

static int format_run(const struct format *f, const char *json)
{
	const char *at = f->begin;
	int r;

	while (*at) {
		bool brace = *at == '{' || *at == '}';
		const char *plain = strchr("nt\\", at[1]);

		if (brace && at[1] == at[0]) {
			if (f->to)
				(void)fputc(*at, f->to);
			at += 2;
		} else if (*at == '{') {
			r = format_path(f, at + 1, true, json, &at);
			if (r < 0)
				return r;
		} else if (*at == '}') {
			return format_fail(f, at, "", 0,
					   "'}' without '{' (write \"}}\" for a brace)");
		} else if (*at == '\\' && (!at[1] || !plain)) {
			return format_fail(f, at, "", 0, "only \\n, \\t and \\\\ are known");
		} else {
			if (f->to && *at == '\\')
				format_escape(at + 1, f->to);
			else if (f->to)
				(void)fputc(*at, f->to);
			at += *at == '\\' ? 2 : 1;
		}
	}
	return 0;
}

int format_check(const char *format, struct error *err)
{
	const struct format f = { .begin = format, .err = err };

	return format_run(&f, NULL);
}

int format_write(const char *format, const char *json, FILE *to, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	const struct format f = { .begin = format, .to = memory, .err = err };
	int r;

	if (!memory)
		abort();
	r = format_run(&f, json);
	(void)fclose(memory);
	if (r == 0)
		(void)fprintf(to, "%s\n", text);
	return r;
}

int format_show(const char *format, format_view_fn view, const void *what, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	struct json j = { .to = memory, .compact = true };

	if (!memory)
		abort();
	view(&j, what);
	(void)fclose(memory);
	return format_write(format, text, stdout, err);
}
