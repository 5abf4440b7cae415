/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/template.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "wire/document/jsonread.h"

/*
 * One pass over the text writes it: an action is read and done at once. What is not to be written
 * (the branch that is not taken, a check) is passed over by the same code with `quiet` set, so that
 * nothing is accepted that could not be written.
 */

#define TEMPLATE_DEPTH_MAX 16
#define TEMPLATE_ARGS_MAX 8

enum template_stop { STOP_TEXT, STOP_ELSE, STOP_END };

struct template_run {
	const char *begin; /* for positions */
	const char *at;
	struct arena *arena;
	const struct json_value *top;            /* NULL: only checked */
	const char *(*head)(const char *member); /* not NULL: names in the place of values */
	FILE *to;
	struct error *err;
	unsigned depth;
	/* template_run(), for the blocks inside of blocks. */
	int (*run)(struct template_run *t, const struct json_value *dot, bool quiet,
		   enum template_stop *ret);
};

/* A value of the language: one of the document, or one that was computed. */
struct value {
	const struct json_value *json;
	const char *text; /* computed, or NULL */
};

static int template_fail(const struct template_run *t, const char *at, const char *why)
{
	return error_refuse(t->err, ERROR_INVALID, "--format: position %zu: %s",
			    (size_t)(at - t->begin) + 1, why);
}

static int template_fail_word(const struct template_run *t, const char *at, size_t len,
			      const char *why)
{
	return error_refuse(t->err, ERROR_INVALID, "--format: position %zu: %.*s: %s",
			    (size_t)(at - t->begin) + 1, (int)len, at, why);
}

/* ---- values as text ---- */

static void value_json_text(const char *text, FILE *to)
{
	(void)fputc('"', to);
	for (const char *at = text; *at; at++) {
		if (*at == '"' || *at == '\\')
			(void)fprintf(to, "\\%c", *at);
		else if ((unsigned char)*at < ' ')
			(void)fprintf(to, "\\u%04x", (unsigned char)*at);
		else
			(void)fputc(*at, to);
	}
	(void)fputc('"', to);
}

static void value_json(const struct json_value *v, FILE *to)
{
	const char *comma = "";

	switch (v->kind) {
	case JSON_NULL:
		(void)fputs("null", to);
		return;
	case JSON_BOOL:
		(void)fputs(v->truth ? "true" : "false", to);
		return;
	case JSON_NUMBER:
		(void)fputs(v->text, to);
		return;
	case JSON_STRING:
		value_json_text(v->text, to);
		return;
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	(void)fputc(v->kind == JSON_ARRAY ? '[' : '{', to);
	for (const struct json_value *m = v->first; m; m = m->next, comma = ",") {
		(void)fputs(comma, to);
		if (v->kind == JSON_OBJECT) {
			value_json_text(m->name, to);
			(void)fputc(':', to);
		}
		value_json(m, to);
	}
	(void)fputc(v->kind == JSON_ARRAY ? ']' : '}', to);
}

/* As Go writes it: "[a b]", "map[k:v]". */
static void value_plain(const struct json_value *v, FILE *to)
{
	const char *blank = "";

	if (v->kind == JSON_NULL) {
		(void)fputs("<no value>", to);
	} else if (v->kind == JSON_STRING) {
		(void)fputs(v->text, to);
	} else if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT) {
		value_json(v, to);
	} else {
		(void)fputs(v->kind == JSON_ARRAY ? "[" : "map[", to);
		for (const struct json_value *m = v->first; m; m = m->next, blank = " ") {
			(void)fputs(blank, to);
			if (v->kind == JSON_OBJECT)
				(void)fprintf(to, "%s:", m->name);
			value_plain(m, to);
		}
		(void)fputc(']', to);
	}
}

static void value_write(const struct value *v, FILE *to)
{
	if (v->text)
		(void)fputs(v->text, to);
	else if (v->json)
		value_plain(v->json, to);
}

static bool value_is_true(const struct value *v)
{
	if (v->text)
		return *v->text;
	if (!v->json || v->json->kind == JSON_NULL)
		return false;
	if (v->json->kind == JSON_BOOL)
		return v->json->truth;
	if (v->json->kind == JSON_NUMBER)
		return !str_eq(v->json->text, "0");
	return v->json->kind == JSON_STRING ? *v->json->text : v->json->n > 0;
}

/* What a writer writes, in the arena; NULL without memory. */
static const char *value_printed(const struct template_run *t,
				 void (*write)(const struct json_value *v, FILE *to),
				 const struct json_value *v)
{
	_cleanup_str_ char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	const char *kept;

	if (!memory)
		abort();
	write(v, memory);
	(void)fclose(memory);
	/* There is none where it could not grow. */
	kept = text ? arena_strdup(t->arena, text) : NULL;
	if (!kept)
		abort();
	return kept;
}

static const char *value_text(const struct template_run *t, const struct value *v)
{
	if (v->text)
		return v->text;
	return v->json ? value_printed(t, value_plain, v->json) : "";
}

/* ---- words of an action ---- */

static void template_blank(struct template_run *t)
{
	t->at += strspn(t->at, " \t");
}

static size_t template_word_len(const char *at)
{
	size_t n = 0;

	while (isalnum((unsigned char)at[n]) || at[n] == '_')
		n++;
	return n;
}

static bool template_at_end(const struct template_run *t)
{
	return !*t->at || str_has_prefix(t->at, "}}") || str_has_prefix(t->at, "-}}");
}

/* A string in quotes or a number. */
static int template_constant(struct template_run *t, struct value *ret)
{
	const char *begin = t->at;
	size_t n;

	if (*begin == '"' || *begin == '`') {
		n = strcspn(begin + 1, (const char[]){ *begin, '\0' });
		if (!begin[n + 1])
			return template_fail(t, begin, "the closing quote is missing");
		ret->text = arena_printf(t->arena, "%.*s", (int)n, begin + 1);
		t->at = begin + n + 2;
	} else {
		n = strspn(begin, "0123456789");
		if (n == 0 || n > 9)
			return template_fail(t, begin,
					     "a name (.Name), a text in quotes or a number is "
					     "expected");
		ret->text = arena_printf(t->arena, "%.*s", (int)n, begin);
		t->at = begin + n;
	}
	ret->json = NULL;
	return ret->text ? 0 : error_set(t->err, -ENOMEM, "--format");
}

/* The label of docker's method .Label. */
static int template_label(struct template_run *t, const struct json_value *dot, struct value *ret)
{
	const struct json_value *labels = NULL, *found;
	struct value key = { .text = NULL };
	int r;

	template_blank(t);
	r = template_constant(t, &key);
	if (r < 0)
		return r;
	ret->json = NULL;
	ret->text = t->head ? key.text : "";
	if (!dot || dot->kind != JSON_OBJECT)
		return 0;
	labels = json_member(dot, "LabelMap");
	found = labels && labels->kind == JSON_OBJECT ? json_member(labels, key.text) : NULL;
	ret->text = found && found->kind == JSON_STRING ? found->text : "";
	return 0;
}

/* ".A.B", "." or "$.A", of the value that the dot is. */
static int template_path(struct template_run *t, const struct json_value *dot, struct value *ret)
{
	const struct json_value *v = *t->at == '$' ? t->top : dot;

	t->at += *t->at == '$';
	if (*t->at != '.' && template_word_len(t->at) > 0)
		return template_fail(t, t->at, "variables are not known here");
	*ret = (struct value){ .json = v };
	while (*t->at == '.') {
		const char *name = t->at + 1;
		size_t len = template_word_len(name);
		_cleanup_str_ char *key = xformat("%.*s", (int)len, name);

		t->at = name + len;
		if (len == 0)
			continue;
		if (str_eq(key, "Label"))
			return template_label(t, v, ret);
		if (t->head) {
			ret->text = arena_strdup(t->arena, t->head(key));
			continue;
		}
		if (v && v->kind != JSON_OBJECT)
			return template_fail_word(t, name, len, "there is no such name");
		if (v) {
			const struct json_value *m = v->first;

			while (m && !str_eq(m->name, key))
				m = m->next;
			if (!m)
				return template_fail_word(t, name, len, "there is no such name");
			v = m;
		}
		ret->json = v;
	}
	return 0;
}

static int template_value(struct template_run *t, const struct json_value *dot, struct value *ret)
{
	template_blank(t);
	if (*t->at == '.' || *t->at == '$')
		return template_path(t, dot, ret);
	if (*t->at == '(')
		return template_fail(t, t->at, "parentheses are not known here");
	return template_constant(t, ret);
}

/* ---- functions ---- */

static int call_json(struct template_run *t, const struct value *args, size_t n, struct value *ret)
{
	if (args[0].text)
		*ret = args[0];
	else
		ret->text = args[0].json ? value_printed(t, value_json, args[0].json) : "";
	return 0;
}

static int call_len(struct template_run *t, const struct value *args, size_t n, struct value *ret)
{
	const struct json_value *v = args[0].json;
	size_t len = args[0].text             ? strlen(args[0].text)
		     : !v                     ? 0
		     : v->kind == JSON_STRING ? strlen(v->text)
					      : v->n;

	ret->text = arena_printf(t->arena, "%zu", len);
	return ret->text ? 0 : error_set(t->err, -ENOMEM, "--format");
}

static int call_each(struct template_run *t, const struct value *v, int (*of)(int c),
		     struct value *ret)
{
	char *text = arena_strdup(t->arena, value_text(t, v));

	if (!text)
		return error_set(t->err, -ENOMEM, "--format");
	for (char *at = text; *at; at++)
		*at = (char)of((unsigned char)*at);
	ret->text = text;
	return 0;
}

static int call_upper(struct template_run *t, const struct value *args, size_t n, struct value *ret)
{
	return call_each(t, &args[0], toupper, ret);
}

static int call_lower(struct template_run *t, const struct value *args, size_t n, struct value *ret)
{
	return call_each(t, &args[0], tolower, ret);
}

static int call_title(struct template_run *t, const struct value *args, size_t n, struct value *ret)
{
	char *text = arena_strdup(t->arena, value_text(t, &args[0]));

	if (!text)
		return error_set(t->err, -ENOMEM, "--format");
	text[0] = (char)toupper((unsigned char)text[0]);
	ret->text = text;
	return 0;
}

/* One that is not there is no value, as in Go a key that a map has not. */
static int call_index(struct template_run *t, const struct value *args, size_t n, struct value *ret)
{
	const struct json_value *v = args[0].json;

	for (size_t i = 1; i < n && v; i++) {
		const char *key = value_text(t, &args[i]);
		const struct json_value *m = v->first;
		unsigned long count = strtoul(key, NULL, 10);

		if (v->kind == JSON_OBJECT)
			while (m && !str_eq(m->name, key))
				m = m->next;
		else if (v->kind == JSON_ARRAY)
			while (m && count-- > 0)
				m = m->next;
		else
			m = NULL;
		v = m;
	}
	ret->json = v;
	ret->text = v ? NULL : "";
	return 0;
}

static int call_join(struct template_run *t, const struct value *args, size_t n, struct value *ret)
{
	const char *with = value_text(t, &args[1]);
	const struct json_value *v = args[0].json;

	ret->text = "";
	for (v = v && v->kind == JSON_ARRAY ? v->first : NULL; v; v = v->next) {
		const struct value one = { .json = v };

		ret->text = arena_printf(t->arena, "%s%s%s", ret->text, *ret->text ? with : "",
					 value_text(t, &one));
		if (!ret->text)
			return error_set(t->err, -ENOMEM, "--format");
	}
	return 0;
}

static int call_println(struct template_run *t, const struct value *args, size_t n,
			struct value *ret)
{
	ret->text = arena_printf(t->arena, "%s\n", value_text(t, &args[0]));
	return ret->text ? 0 : error_set(t->err, -ENOMEM, "--format");
}

static const struct template_function {
	const char *name;
	size_t n_min, n_max;
	int (*call)(struct template_run *t, const struct value *args, size_t n, struct value *ret);
} template_functions[] = {
	{ "json", 1, 1, call_json },   { "len", 1, 1, call_len },
	{ "upper", 1, 1, call_upper }, { "lower", 1, 1, call_lower },
	{ "title", 1, 1, call_title }, { "index", 2, TEMPLATE_ARGS_MAX, call_index },
	{ "join", 2, 2, call_join },   { "println", 1, 1, call_println },
};

/* A value, or a function with its arguments. */
static int template_expression(struct template_run *t, const struct json_value *dot,
			       struct value *ret)
{
	struct value args[TEMPLATE_ARGS_MAX];
	const struct template_function *f = NULL;
	const char *name;
	size_t len, n = 0;
	int r = 0;

	*ret = (struct value){ .json = NULL };
	template_blank(t);
	name = t->at;
	len = template_word_len(name);
	if (len == 0 || isdigit((unsigned char)*name))
		return template_value(t, dot, ret);
	for (size_t i = 0; i < ARRAY_SIZE(template_functions) && !f; i++)
		if (strlen(template_functions[i].name) == len &&
		    str_has_prefix(name, template_functions[i].name))
			f = &template_functions[i];
	if (!f)
		return template_fail_word(t, name, len,
					  "not a function that is known here: json, len, upper, "
					  "lower, title, index, join, println");
	t->at += len;
	for (template_blank(t); r == 0 && n < f->n_max && !template_at_end(t) && *t->at != '|';
	     template_blank(t))
		r = template_value(t, dot, &args[n++]);
	if (r < 0)
		return r;
	if (n < f->n_min)
		return template_fail_word(t, name, len, "too few arguments");
	if (t->head) {
		*ret = args[0];
		return 0;
	}
	return t->top ? f->call(t, args, n, ret) : 0;
}

/* ---- actions ---- */

static int template_close(struct template_run *t, bool *ret_trim)
{
	template_blank(t);
	if (*t->at == '|')
		return template_fail(t, t->at, "pipes are not known here");
	*ret_trim = *t->at == '-';
	t->at += *ret_trim;
	if (!str_has_prefix(t->at, "}}"))
		return template_fail(t, t->at, "\"}}\" is expected");
	t->at += strlen("}}");
	if (*ret_trim)
		t->at += strspn(t->at, " \t\n");
	return 0;
}

/* The branch and, where there is one, the other; what is not taken is passed over. */
static int template_branches(struct template_run *t, const struct json_value *dot, bool first,
			     bool second, const struct json_value *otherwise)
{
	enum template_stop stop;
	int r = t->run(t, dot, !first, &stop);

	if (r == 0 && stop == STOP_ELSE)
		r = t->run(t, otherwise, !second, &stop);
	if (r == 0 && stop != STOP_END)
		r = template_fail(t, t->at, "{{end}} is missing");
	return r;
}

static int template_if(struct template_run *t, const struct json_value *dot, const struct value *v,
		       bool quiet)
{
	bool truth = value_is_true(v);

	return template_branches(t, dot, truth && !quiet, !truth && !quiet, dot);
}

static int template_with(struct template_run *t, const struct json_value *dot,
			 const struct value *v, bool quiet)
{
	bool truth = value_is_true(v);

	return template_branches(t, v->json, truth && !quiet, !truth && !quiet, dot);
}

static int template_range(struct template_run *t, const struct json_value *dot,
			  const struct value *v, bool quiet)
{
	const char *body = t->at;
	const struct json_value *m =
		v->json && (v->json->kind == JSON_ARRAY || v->json->kind == JSON_OBJECT)
			? v->json->first
			: NULL;
	int r;

	if (!m || quiet)
		return template_branches(t, NULL, false, !quiet, dot);
	for (; m; m = m->next) {
		t->at = body;
		r = template_branches(t, m, true, false, dot);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct template_run *t, const struct json_value *dot, const struct value *v,
		   bool quiet);
} template_blocks[] = {
	{ "if", template_if },
	{ "range", template_range },
	{ "with", template_with },
};

static bool template_take_word(struct template_run *t, const char *word)
{
	size_t len = template_word_len(t->at);

	if (len != strlen(word) || !str_has_prefix(t->at, word))
		return false;
	t->at += len;
	return true;
}

static int template_block(struct template_run *t, size_t kind, const struct json_value *dot,
			  bool quiet)
{
	struct value v;
	bool trim;
	int r;

	if (t->depth >= TEMPLATE_DEPTH_MAX)
		return template_fail(t, t->at, "too deep");
	template_blank(t);
	/* A value that is passed over may have names that are not there. */
	r = template_expression(t, quiet ? NULL : dot, &v);
	if (r == 0)
		r = template_close(t, &trim);
	if (r < 0)
		return r;
	t->depth++;
	r = template_blocks[kind].run(t, dot, &v, quiet);
	t->depth--;
	return r;
}

/* Behind "{{". */
static int template_action(struct template_run *t, const struct json_value *dot, bool quiet,
			   enum template_stop *ret)
{
	struct value v;
	bool trim;
	int r;

	*ret = STOP_TEXT;
	template_blank(t);
	for (size_t i = 0; i < ARRAY_SIZE(template_blocks); i++)
		if (template_take_word(t, template_blocks[i].name))
			return template_block(t, i, dot, quiet);
	if (template_take_word(t, "end"))
		*ret = STOP_END;
	else if (template_take_word(t, "else"))
		*ret = STOP_ELSE;
	if (*ret != STOP_TEXT)
		return t->depth ? template_close(t, &trim)
				: template_fail(t, t->at, "nothing is open that it could end");
	r = template_expression(t, quiet ? NULL : dot, &v);
	if (r == 0)
		r = template_close(t, &trim);
	if (r == 0 && !quiet && t->to)
		value_write(&v, t->to);
	return r;
}

static int template_plain(struct template_run *t, bool quiet)
{
	static const char from[] = "nt\\", into[] = "\n\t\\";
	const char *known = *t->at == '\\' && t->at[1] ? strchr(from, t->at[1]) : NULL;

	if (!quiet && t->to)
		(void)fputc(known ? into[known - from] : *t->at, t->to);
	t->at += known ? 2 : 1;
	return 0;
}

static int template_run(struct template_run *t, const struct json_value *dot, bool quiet,
			enum template_stop *ret)
{
	int r = 0;

	*ret = STOP_TEXT;
	while (*t->at && r == 0 && *ret == STOP_TEXT) {
		size_t n = strspn(t->at, " \t\n");

		/* Blanks in front of "{{-" go. */
		if (str_has_prefix(t->at + n, "{{- ")) {
			t->at += n + strlen("{{-");
			r = template_action(t, dot, quiet, ret);
		} else if (str_has_prefix(t->at, "{{")) {
			t->at += strlen("{{");
			r = template_action(t, dot, quiet, ret);
		} else {
			r = template_plain(t, quiet);
		}
	}
	return r;
}

/* ---- the whole ---- */

bool template_is(const char *text)
{
	if (str_has_prefix(text, "table "))
		return true;
	for (const char *at = strstr(text, "{{"); at; at = strstr(at + 2, "{{")) {
		const char *first = at + 2 + (at[2] == '-');
		size_t len;

		first += strspn(first, " \t");
		len = template_word_len(first);
		if (*first == '.' || *first == '$')
			return true;
		/* "{{name}}" has ever been a name in braces. */
		if (len && (first[len] == ' ' || first[len] == '\t'))
			return true;
	}
	return false;
}

const char *template_table(const char *text)
{
	static const char word[] = "table ";

	return str_has_prefix(text, word) ? text + strlen(word) + strspn(text + strlen(word), " ")
					  : NULL;
}

static int template_do(struct template_run *t)
{
	enum template_stop stop;
	const char *table = template_table(t->begin);

	t->at = table ? table : t->begin;
	t->run = template_run;
	return template_run(t, t->top, false, &stop);
}

int template_check(const char *text, struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct template_run t = { .begin = text, .arena = &a, .err = err };

	return template_do(&t);
}

int template_write(const char *text, const char *json, FILE *to, struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	_cleanup_str_ char *written = NULL;
	struct json_value *top = NULL;
	size_t len = 0;
	struct template_run t = { .begin = text, .arena = &a, .err = err };
	FILE *memory;
	int r;

	r = json_parse(&top, &a, json, strlen(json), err);
	if (r < 0)
		return error_wrap(err, r, "--format");
	memory = open_memstream(&written, &len);
	if (!memory)
		abort();
	t.top = top;
	t.to = memory;
	r = template_do(&t);
	(void)fclose(memory);
	if (!written)
		abort();
	if (r == 0)
		(void)fprintf(to, "%s\n", written);
	return r;
}

int template_heads(const char *text, const char *(*name)(const char *member), FILE *to,
		   struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct template_run t = { .begin = text, .arena = &a, .head = name, .to = to, .err = err };
	int r = template_do(&t);

	(void)fputc('\n', to);
	return r;
}
