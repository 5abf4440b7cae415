/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/args.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
/* Longer words are not worth a hint. */
#define DISTANCE_MAX 32

size_t text_distance(const char *a, const char *b)
{
	size_t rows[3][DISTANCE_MAX + 1], n_a = strlen(a), n_b = strlen(b);

	if (n_a > DISTANCE_MAX || n_b > DISTANCE_MAX)
		return DISTANCE_MAX;
	for (size_t j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
			size_t moved = MIN(above[j], row[j - 1]) + 1;

			row[j] = MIN(changed, moved);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = MIN(row[j], higher[j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

static const struct arg_option *args_nearest(const struct args *a, const char *name)
{
	const struct arg_option *best = NULL;
	size_t best_distance = 3;

	for (size_t t = 0; t < ARRAY_SIZE(a->tables); t++) {
		for (const struct arg_option *o = a->tables[t]; o && o->name; o++) {
			size_t distance = text_distance(name, o->name);

			if (distance < best_distance && distance < strlen(o->name)) {
				best = o;
				best_distance = distance;
			}
		}
	}
	return best;
}

static const struct arg_option *args_find(const struct args *a, const char *name, size_t len,
					  char letter)
{
	for (size_t t = 0; t < ARRAY_SIZE(a->tables); t++) {
		for (const struct arg_option *o = a->tables[t]; o && o->name; o++) {
			if (name && strlen(o->name) == len && memcmp(o->name, name, len) == 0)
				return o;
			if (!name && letter && o->letter == letter)
				return o;
		}
	}
	return NULL;
}

/* The value becomes one of the strings that callers get: readability-non-const-parameter is wrong.
 */
static int args_add(struct args *a, const struct arg_option *option, char *value, struct error *err)
{
	struct arg_given *given = reallocarray(a->given, a->n_given + 1, sizeof(*given));

	if (!given)
		return error_set(err, -ENOMEM, "read the arguments");
	a->given = given;
	a->given[a->n_given++] = (struct arg_given){ .option = option, .value = value };
	return 0;
}

static int args_unknown(struct args *a, const char *name, size_t len, struct error *err)
{
	const struct arg_option *near = NULL;
	char word[DISTANCE_MAX + 2];

	a->unknown = name;
	(void)str_printf(word, sizeof(word), "%.*s", (int)len, name);
	near = args_nearest(a, word);
	if (near)
		return error_refuse(err, ERROR_INVALID, "unknown option --%s (did you mean --%s?)",
				    word, near->name);
	return error_refuse(err, ERROR_INVALID, "unknown option --%.*s", (int)len, name);
}

/* "--name", "--name=VALUE" or "--name VALUE"; returns how many words more than one it took. */
static int args_parse_long(struct args *a, char *word, char *next, struct error *err)
{
	char *name = word + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	const struct arg_option *o = args_find(a, name, len, 0);

	if (!o)
		return args_unknown(a, name, len, err);
	if (!o->value) {
		if (value)
			return error_refuse(err, ERROR_INVALID, "option --%s takes no value",
					    o->name);
		return args_add(a, o, NULL, err);
	}
	if (value)
		return args_add(a, o, value + 1, err);
	if (!next)
		return error_refuse(err, ERROR_INVALID, "option --%s needs a value (%s)", o->name,
				    o->value);
	return args_add(a, o, next, err) < 0 ? -ENOMEM : 1;
}

/* "-abc", "-nVALUE" or "-n VALUE"; returns as args_parse_long() does. */
static int args_parse_short(struct args *a, char *word, char *next, struct error *err)
{
	for (char *at = word + 1; *at; at++) {
		const struct arg_option *o = args_find(a, NULL, 0, *at);

		if (!o)
			return error_refuse(err, ERROR_INVALID, "unknown option -%c", *at);
		if (!o->value) {
			if (args_add(a, o, NULL, err) < 0)
				return -ENOMEM;
			continue;
		}
		if (at[1])
			return args_add(a, o, at + 1, err);
		if (!next)
			return error_refuse(err, ERROR_INVALID, "option -%c needs a value (%s)",
					    *at, o->value);
		return args_add(a, o, next, err) < 0 ? -ENOMEM : 1;
	}
	return 0;
}

int args_parse(struct args *a, const struct arg_option *own, const struct arg_option *common,
	       size_t n_verbatim, int argc, char **argv, struct error *err)
{
	bool ended = false;

	*a = (struct args){ .tables = { own, common } };
	a->operands = calloc((size_t)argc + 1, sizeof(*a->operands));
	if (!a->operands)
		return error_set(err, -ENOMEM, "read the arguments");
	for (int i = 0; i < argc; i++) {
		char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
		int r;

		if (a->n_operands >= n_verbatim)
			ended = true;
		if (ended || word[0] != '-' || !word[1]) {
			a->operands[a->n_operands++] = word;
			continue;
		}
		if (str_eq(word, "--")) {
			ended = true;
			continue;
		}
		r = word[1] == '-' ? args_parse_long(a, word, next, err)
				   : args_parse_short(a, word, next, err);
		if (r < 0)
			return r;
		i += r;
	}
	a->operands[a->n_operands] = NULL;
	return 0;
}

void args_done(struct args *a)
{
	free(a->given);
	free(a->operands);
	*a = (struct args)ARGS_INIT;
}

char *args_next(const struct args *a, const char *name, size_t *pos)
{
	assert(args_find(a, name, strlen(name), 0));
	while (*pos < a->n_given) {
		const struct arg_given *g = &a->given[(*pos)++];

		if (str_eq(g->option->name, name))
			return g->value;
	}
	return NULL;
}

bool args_flag(const struct args *a, const char *name)
{
	assert(args_find(a, name, strlen(name), 0));
	for (size_t i = 0; i < a->n_given; i++) {
		if (str_eq(a->given[i].option->name, name))
			return true;
	}
	return false;
}

char *args_value(const struct args *a, const char *name)
{
	char *last = NULL, *value;
	size_t pos = 0;

	for (;;) {
		value = args_next(a, name, &pos);
		if (!value)
			return last;
		last = value;
	}
}
