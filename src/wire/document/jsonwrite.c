/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/jsonwrite.h"

#include <string.h>

/* Bytes that stand for themselves. */
static size_t json_plain_len(const char *s)
{
	size_t n = 0;

	while ((unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

int json_write_text(struct buf *b, const char *text)
{
	int r = buf_add_str(b, "\"");

	while (r == 0 && *text) {
		size_t n = json_plain_len(text);

		r = buf_add(b, text, n);
		text += n;
		if (r < 0 || !*text)
			continue;
		if (*text == '"' || *text == '\\')
			r = buf_addf(b, "\\%c", *text);
		else
			r = buf_addf(b, "\\u%04x", (unsigned)(unsigned char)*text);
		text++;
	}
	return r < 0 ? r : buf_add_str(b, "\"");
}

int json_write_name(struct buf *b, const char *name)
{
	const uint8_t *data = buf_data(b);
	const bool is_first = b->len == 0 || data[b->len - 1] == '{';
	int r = is_first ? 0 : buf_add_str(b, ",");

	if (r == 0)
		r = json_write_text(b, name);
	return r < 0 ? r : buf_add_str(b, ":");
}

/* Deeper than the reader allows is nothing that it made. */
static int json_write_nested(struct buf *b, const struct json_value *v)
{
	const bool is_object = v->kind == JSON_OBJECT;
	int r = buf_add_str(b, is_object ? "{" : "[");

	for (const struct json_value *at = v->first; at && r == 0; at = at->next) {
		if (is_object)
			r = json_write_name(b, at->name);
		else if (at != v->first)
			r = buf_add_str(b, ",");
		if (r == 0)
			r = json_write_value(b, at);
	}
	return r < 0 ? r : buf_add_str(b, is_object ? "}" : "]");
}

int json_write_value(struct buf *b, const struct json_value *v)
{
	switch (v->kind) {
	case JSON_NULL:
		return buf_add_str(b, "null");
	case JSON_BOOL:
		return buf_add_str(b, v->truth ? "true" : "false");
	case JSON_NUMBER:
		return buf_add_str(b, v->text);
	case JSON_STRING:
		return json_write_text(b, v->text);
	case JSON_ARRAY:
	case JSON_OBJECT:
	default:
		return json_write_nested(b, v);
	}
}
