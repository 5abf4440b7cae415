/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/macros.h"
#include "base/text/str.h"

struct yaml_reader {
	struct buf *to;
	/* What is open: whether it is a mapping, and how many keys, values or elements it has. */
	bool is_mapping[YAML_DEPTH_MAX];
	size_t n[YAML_DEPTH_MAX];
	unsigned depth;
	unsigned n_documents;
};

static int yaml_bad(const yaml_event_t *e, const char *why, struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "line %zu: %s", e->start_mark.line + 1, why);
}

/* What stands in front of the next key, value or element. */
static int yaml_comma(struct yaml_reader *rd)
{
	size_t n;

	if (rd->depth == 0)
		return 0;
	n = rd->n[rd->depth - 1]++;
	if (rd->is_mapping[rd->depth - 1] && n % 2 == 1)
		return buf_add_str(rd->to, ":");
	return n > 0 ? buf_add_str(rd->to, ",") : 0;
}

static bool yaml_is_key(const struct yaml_reader *rd)
{
	return rd->depth > 0 && rd->is_mapping[rd->depth - 1] && rd->n[rd->depth - 1] % 2 == 0;
}

static int yaml_string(struct buf *to, const char *s, size_t len)
{
	int r = buf_add_str(to, "\"");

	for (size_t i = 0; i < len && r == 0; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\' || c < 0x20)
			r = buf_addf(to, "\\u%04x", c);
		else
			r = buf_add(to, &s[i], 1);
	}
	return r == 0 ? buf_add_str(to, "\"") : r;
}

/* As YAML 1.1 and 1.2 write whole numbers. */
static bool yaml_number(const char *text, char ret[24])
{
	bool minus = *text == '-';
	const char *digits = text + minus;
	int base = 10;
	char *end;
	unsigned long long value;

	if (str_has_prefix(digits, "0x")) {
		base = 16;
		digits += 2;
	} else if (str_has_prefix(digits, "0o")) {
		base = 8;
		digits += 2;
	} else if (digits[0] == '0' && digits[1]) {
		base = 8;
	}
	if (!isxdigit((unsigned char)*digits))
		return false;
	errno = 0;
	value = strtoull(digits, &end, base);
	if (errno || *end)
		return false;
	return str_printf(ret, 24, "%s%llu", minus ? "-" : "", value) > 0;
}

static int yaml_plain(struct yaml_reader *rd, const char *text, size_t len)
{
	static const struct {
		const char *yaml, *json;
	} words[] = {
		{ "", "null" },       { "~", "null" },      { "null", "null" },
		{ "Null", "null" },   { "NULL", "null" },   { "true", "true" },
		{ "True", "true" },   { "TRUE", "true" },   { "false", "false" },
		{ "False", "false" }, { "FALSE", "false" },
	};
	char number[24];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(words[i].yaml, text))
			return buf_add_str(rd->to, words[i].json);
	if (yaml_number(text, number))
		return buf_add_str(rd->to, number);
	return yaml_string(rd->to, text, len);
}

static int yaml_scalar(struct yaml_reader *rd, const yaml_event_t *e, struct error *err)
{
	const char *text = (const char *)e->data.scalar.value;
	size_t len = e->data.scalar.length;
	bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !yaml_is_key(rd);
	int r;

	if (e->data.scalar.anchor || e->data.scalar.tag)
		return yaml_bad(e, "anchors and tags are not taken", err);
	if (memchr(text, 0, len))
		return yaml_bad(e, "a byte 0", err);
	r = yaml_comma(rd);
	if (r == 0)
		r = plain ? yaml_plain(rd, text, len) : yaml_string(rd->to, text, len);
	return r < 0 ? error_set(err, r, "read YAML") : 0;
}

static int yaml_open(struct yaml_reader *rd, const yaml_event_t *e, bool is_mapping,
		     struct error *err)
{
	const yaml_char_t *anchor =
		is_mapping ? e->data.mapping_start.anchor : e->data.sequence_start.anchor;
	const yaml_char_t *tag =
		is_mapping ? e->data.mapping_start.tag : e->data.sequence_start.tag;
	int r;

	if (anchor || tag)
		return yaml_bad(e, "anchors and tags are not taken", err);
	if (yaml_is_key(rd))
		return yaml_bad(e, "a key is a text", err);
	if (rd->depth == YAML_DEPTH_MAX)
		return yaml_bad(e, "deeper than 32 levels", err);
	r = yaml_comma(rd);
	rd->is_mapping[rd->depth] = is_mapping;
	rd->n[rd->depth++] = 0;
	if (r == 0)
		r = buf_add_str(rd->to, is_mapping ? "{" : "[");
	return r < 0 ? error_set(err, r, "read YAML") : 0;
}

static int yaml_close(struct yaml_reader *rd, struct error *err)
{
	int r = buf_add_str(rd->to, rd->is_mapping[--rd->depth] ? "}" : "]");

	return r < 0 ? error_set(err, r, "read YAML") : 0;
}

static int yaml_event(struct yaml_reader *rd, const yaml_event_t *e, struct error *err)
{
	switch ((int)e->type) {
	case YAML_SCALAR_EVENT:
		return yaml_scalar(rd, e, err);
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT:
		return yaml_open(rd, e, e->type == YAML_MAPPING_START_EVENT, err);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return yaml_close(rd, err);
	case YAML_ALIAS_EVENT:
		return yaml_bad(e, "aliases are not taken", err);
	case YAML_DOCUMENT_START_EVENT:
		return rd->n_documents++ ? yaml_bad(e, "a second document", err) : 0;
	default:
		return 0;
	}
}

int yaml_to_json(struct buf *to, const void *data, size_t len, struct error *err)
{
	struct yaml_reader rd = { .to = to };
	yaml_parser_t parser;
	bool done = false;
	int r = 0;

	if (!yaml_parser_initialize(&parser))
		return error_set(err, -ENOMEM, "read YAML");
	yaml_parser_set_input_string(&parser, len ? data : (const void *)"", len);
	while (r == 0 && !done) {
		yaml_event_t e;

		if (!yaml_parser_parse(&parser, &e)) {
			r = parser.error == YAML_MEMORY_ERROR
				    ? error_set(err, -ENOMEM, "read YAML")
				    : error_refuse(err, ERROR_INVALID, "line %zu: %s",
						   parser.problem_mark.line + 1,
						   parser.problem ? parser.problem : "not YAML");
			break;
		}
		r = yaml_event(&rd, &e, err);
		done = e.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&e);
	}
	yaml_parser_delete(&parser);
	return r;
}
