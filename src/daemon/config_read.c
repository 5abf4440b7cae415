/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config_read.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"

#define CONFIG_KEY_MAX 128
#define CONFIG_DEPTH_MAX 4

struct config_reader {
	const struct config_key *keys;
	size_t n_keys;
	struct config *config;
	const char *path;
	char key[CONFIG_KEY_MAX];         /* of the value that comes next */
	size_t parents[CONFIG_DEPTH_MAX]; /* length of key at each level of nesting */
	size_t depth;
	bool has_key;
	bool in_list;
	bool seen[CONFIG_KEYS_MAX];
};

static bool config_is_section(const struct config_reader *rd, const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < rd->n_keys; i++)
		if (strncmp(rd->keys[i].key, key, n) == 0 && rd->keys[i].key[n] == '.')
			return true;
	return false;
}

static int config_find(const struct config_reader *rd, const char *key)
{
	for (size_t i = 0; i < rd->n_keys; i++)
		if (str_eq(rd->keys[i].key, key))
			return (int)i;
	return -1;
}

static int config_bad(const struct config_reader *rd, const yaml_event_t *e, struct error *err,
		      const char *what)
{
	return error_refuse(err, ERROR_INVALID, "%s:%zu: %s: %s", rd->path, e->start_mark.line + 1,
			    rd->key, what);
}

static int config_on_key(struct config_reader *rd, const yaml_event_t *e, struct error *err)
{
	size_t at = rd->depth > 1 ? rd->parents[rd->depth - 1] : 0;
	const char *name = (const char *)e->data.scalar.value;

	if (str_printf(rd->key + at, sizeof(rd->key) - at, "%s%s", at ? "." : "", name) < 0)
		return config_bad(rd, e, err, "the key is too long");
	rd->has_key = true;
	if (config_find(rd, rd->key) < 0 && !config_is_section(rd, rd->key))
		return config_bad(rd, e, err, "there is no such key");
	return 0;
}

static int config_on_value(struct config_reader *rd, const yaml_event_t *e, struct error *err)
{
	int i = config_find(rd, rd->key);
	char what[128];

	rd->has_key = rd->in_list;
	if (i < 0)
		return config_bad(rd, e, err, "this is a section, not a value");
	if (rd->seen[i] && !rd->in_list)
		return config_bad(rd, e, err, "the key is there twice");
	if (e->data.scalar.length != strlen((const char *)e->data.scalar.value))
		return config_bad(rd, e, err, "the value holds a NUL");
	rd->seen[i] = true;
	if (rd->keys[i].set(rd->config, (const char *)e->data.scalar.value) == 0)
		return 0;
	(void)str_printf(what, sizeof(what), "\"%.40s\" is not %s",
			 (const char *)e->data.scalar.value, rd->keys[i].expected);
	return config_bad(rd, e, err, what);
}

/* The list of a key that has several values. */
static int config_on_list(struct config_reader *rd, const yaml_event_t *e, struct error *err)
{
	int i = rd->has_key ? config_find(rd, rd->key) : -1;

	if (i < 0 || !rd->keys[i].is_list || rd->in_list)
		return config_bad(rd, e, err, "lists and aliases have no place here");
	if (rd->seen[i])
		return config_bad(rd, e, err, "the key is there twice");
	rd->seen[i] = true;
	rd->in_list = true;
	return 0;
}

static int config_on_mapping(struct config_reader *rd, const yaml_event_t *e, struct error *err)
{
	if (rd->in_list || (rd->depth > 0 && !config_is_section(rd, rd->key)))
		return config_bad(rd, e, err, "this takes a value, not a section");
	if (rd->depth >= CONFIG_DEPTH_MAX)
		return config_bad(rd, e, err, "nested too deep");
	rd->parents[rd->depth++] = strlen(rd->key);
	rd->has_key = false;
	return 0;
}

static int config_event(void *userdata, const yaml_event_t *e, struct error *err)
{
	struct config_reader *rd = userdata;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		/* An empty file is an empty scalar in some versions of the library. */
		if (rd->depth == 0 && !e->data.scalar.value[0])
			return 0;
		if (rd->depth == 0)
			return error_refuse(err, ERROR_INVALID, "%s:%zu: expected keys and values",
					    rd->path, e->start_mark.line + 1);
		return rd->has_key ? config_on_value(rd, e, err) : config_on_key(rd, e, err);
	case YAML_MAPPING_START_EVENT:
		return config_on_mapping(rd, e, err);
	case YAML_MAPPING_END_EVENT:
		rd->depth--;
		rd->key[rd->depth ? rd->parents[rd->depth] : 0] = '\0';
		rd->has_key = false;
		return 0;
	case YAML_SEQUENCE_START_EVENT:
		return config_on_list(rd, e, err);
	case YAML_SEQUENCE_END_EVENT:
		rd->in_list = false;
		rd->has_key = false;
		return 0;
	case YAML_ALIAS_EVENT:
		return config_bad(rd, e, err, "lists and aliases have no place here");
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

int config_read_events(const void *data, size_t len, const char *path,
		       int (*fn)(void *userdata, const yaml_event_t *e, struct error *err),
		       void *userdata, struct error *err)
{
	yaml_parser_t parser;
	bool done = false;
	int r = 0;

	if (!yaml_parser_initialize(&parser))
		return error_set(err, -ENOMEM, "read %s", path);
	yaml_parser_set_input_string(&parser, len ? data : (const void *)"", len);
	while (r == 0 && !done) {
		yaml_event_t e;

		if (!yaml_parser_parse(&parser, &e)) {
			r = error_refuse(err, ERROR_INVALID, "%.200s:%zu: %.200s", path,
					 parser.problem_mark.line + 1,
					 parser.problem ? parser.problem : "not YAML");
			break;
		}
		r = fn(userdata, &e, err);
		done = e.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&e);
	}
	yaml_parser_delete(&parser);
	return r;
}

int config_read(struct config *c, const struct config_key *keys, size_t n_keys, const char *path,
		const struct buf *text, struct error *err)
{
	struct config_reader rd = { .keys = keys, .n_keys = n_keys, .config = c, .path = path };

	return config_read_events(buf_data(text), text->len, path, config_event, &rd, err);
}
