/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/json.h"

#include <errno.h>
#include <stdbool.h>

#define JSON_DEPTH_MAX 64
#define JSON_VALUES_MAX 65536 /* an empty object of three bytes takes two hundred here */

/* Jansson goes down by recursion, 2048 deep, and keeps each value apart: the documents of OCI need
 * a handful of levels, and some thousand values. */
static int json_check_shape(const uint8_t *p, size_t len, const char *what, struct error *err)
{
	bool in_string = false;
	unsigned depth = 0, n = 1;

	for (size_t i = 0; i < len; i++) {
		n += !in_string && (p[i] == '{' || p[i] == '[' || p[i] == ',');
		if (n > JSON_VALUES_MAX)
			return error_refuse(err, ERROR_EXHAUSTED, "%s has more than %d values",
					    what, JSON_VALUES_MAX);
		if (in_string && p[i] == '\\')
			i++;
		else if (p[i] == '"')
			in_string = !in_string;
		else if (!in_string && (p[i] == '{' || p[i] == '['))
			depth++;
		else if (!in_string && (p[i] == '}' || p[i] == ']') && depth)
			depth--;
		if (depth > JSON_DEPTH_MAX)
			return error_refuse(err, ERROR_INVALID, "%s is nested more than %d deep",
					    what, JSON_DEPTH_MAX);
	}
	return 0;
}

static int json_read_any(json_t **ret, const struct buf *b, const char *what, struct error *err)
{
	json_error_t fault;
	json_t *j;
	int r;

	if (!b->len)
		return error_refuse(err, ERROR_INVALID, "%s is empty", what);
	r = json_check_shape(buf_data(b), b->len, what, err);
	if (r < 0)
		return r;
	j = json_loadb((const char *)buf_data(b), b->len, JSON_REJECT_DUPLICATES, &fault);
	if (!j)
		return error_refuse(err, ERROR_INVALID, "%s is no valid JSON: %s (line %d)", what,
				    fault.text, fault.line);
	*ret = j;
	return 0;
}

int json_read(json_t **ret, const struct buf *b, const char *what, struct error *err)
{
	_cleanup_json_ json_t *j = NULL;
	int r;

	r = json_read_any(&j, b, what, err);
	if (r < 0)
		return r;
	if (!json_is_object(j))
		return error_refuse(err, ERROR_INVALID, "%s is no JSON object", what);
	*ret = TAKE_PTR(j);
	return 0;
}

int json_read_array(json_t **ret, const struct buf *b, const char *what, struct error *err)
{
	_cleanup_json_ json_t *j = NULL;
	int r;

	r = json_read_any(&j, b, what, err);
	if (r < 0)
		return r;
	if (!json_is_array(j))
		return error_refuse(err, ERROR_INVALID, "%s is no JSON array", what);
	*ret = TAKE_PTR(j);
	return 0;
}

static json_t *json_member(json_t *object, const char *name)
{
	json_t *j = json_object_get(object, name);

	return json_is_null(j) ? NULL : j;
}

static int json_missing(const char *name, struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "member \"%s\" is missing", name);
}

int json_get_text(json_t *object, const char *name, const char **ret, struct error *err)
{
	json_t *j = json_member(object, name);

	if (j && !json_is_string(j))
		return error_refuse(err, ERROR_INVALID, "member \"%s\" is no string", name);
	*ret = j ? json_string_value(j) : "";
	return 0;
}

int json_need_text(json_t *object, const char *name, const char **ret, struct error *err)
{
	return json_member(object, name) ? json_get_text(object, name, ret, err)
					 : json_missing(name, err);
}

int json_get_object(json_t *object, const char *name, json_t **ret, struct error *err)
{
	json_t *j = json_member(object, name);

	if (j && !json_is_object(j))
		return error_refuse(err, ERROR_INVALID, "member \"%s\" is no object", name);
	*ret = j;
	return 0;
}

int json_need_object(json_t *object, const char *name, json_t **ret, struct error *err)
{
	return json_member(object, name) ? json_get_object(object, name, ret, err)
					 : json_missing(name, err);
}

int json_get_array(json_t *object, const char *name, size_t max, json_t **ret, struct error *err)
{
	json_t *j = json_member(object, name);

	if (j && !json_is_array(j))
		return error_refuse(err, ERROR_INVALID, "member \"%s\" is no array", name);
	if (j && json_array_size(j) > max)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "member \"%s\" has more than %zu elements", name, max);
	*ret = j;
	return 0;
}

int json_need_array(json_t *object, const char *name, size_t max, json_t **ret, struct error *err)
{
	return json_member(object, name) ? json_get_array(object, name, max, ret, err)
					 : json_missing(name, err);
}

int json_need_number(json_t *object, const char *name, uint64_t max, uint64_t *ret,
		     struct error *err)
{
	json_t *j = json_member(object, name);

	if (!j)
		return json_missing(name, err);
	if (!json_is_integer(j) || json_integer_value(j) < 0 ||
	    (uint64_t)json_integer_value(j) > max)
		return error_refuse(err, ERROR_INVALID, "member \"%s\" is no number from 0 to %llu",
				    name, (unsigned long long)max);
	*ret = (uint64_t)json_integer_value(j);
	return 0;
}
