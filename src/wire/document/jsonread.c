/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/jsonread.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"

/*
 * One walk over the bytes, with the arrays and objects that are still open on a stack of its own.
 * Strings are unescaped into the arena at once.
 */

/* Up to so many members of an object are compared one by one; more have a table. */
#define READER_FEW 32
/* Names that somebody chose for their hashes cost so many steps each at most. */
#define READER_PROBES_MAX 1024

struct reader {
	struct arena *arena;
	const char *at, *end;
	const char *begin;
	struct error *err;
	struct {
		struct json_value *value, *last; /* and its last child so far */
		struct json_value **slots;       /* its members by their hash; NULL: few */
		size_t n_slots;                  /* a power of two, at least twice their number */
	} open[JSONREAD_DEPTH_MAX];
	unsigned depth;
};

static int reader_fail(const struct reader *r, const char *what)
{
	size_t line = 1;

	for (const char *p = r->begin; p < r->at; p++)
		line += *p == '\n';
	return error_refuse(r->err, ERROR_INVALID, "%s (line %zu)", what, line);
}

static int reader_no_memory(const struct reader *r)
{
	return error_set(r->err, -ENOMEM, "read the document");
}

static void reader_skip_blanks(struct reader *r)
{
	while (r->at < r->end &&
	       (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static int reader_hex4(struct reader *r, uint32_t *ret)
{
	uint32_t value = 0;

	if (r->end - r->at < 4)
		return reader_fail(r, "a string ends within an escape");
	for (int i = 0; i < 4; i++) {
		char c = *r->at++;

		value <<= 4;
		if (c >= '0' && c <= '9')
			value |= (uint32_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value |= (uint32_t)((c | 0x20) - 'a' + 10);
		else
			return reader_fail(r, "\\u needs four hexadecimal digits");
	}
	*ret = value;
	return 0;
}

static size_t utf8_put(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Behind "\u". Returns how many bytes it became; never more than its six or twelve characters. */
static int reader_unicode(struct reader *r, char *to)
{
	uint32_t c = 0, low = 0;
	int err;

	err = reader_hex4(r, &c);
	if (err < 0)
		return err;
	if (c == 0)
		return reader_fail(r, "a string contains NUL");
	if (c >= 0xdc00 && c <= 0xdfff)
		return reader_fail(r, "half of a surrogate pair");
	if (c < 0xd800 || c > 0xdbff)
		return (int)utf8_put(to, c);
	if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
		return reader_fail(r, "half of a surrogate pair");
	r->at += 2;
	err = reader_hex4(r, &low);
	if (err < 0)
		return err;
	if (low < 0xdc00 || low > 0xdfff)
		return reader_fail(r, "half of a surrogate pair");
	return (int)utf8_put(to, 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff));
}

/* Behind a backslash; returns as reader_unicode(). */
static int reader_escape(struct reader *r, char *to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (r->at == r->end)
		return reader_fail(r, "a string without an end");
	if (*r->at == 'u') {
		r->at++;
		return reader_unicode(r, to);
	}
	found = *r->at ? strchr(from, *r->at) : NULL;
	if (!found)
		return reader_fail(r, "an escape that JSON does not have");
	r->at++;
	*to = into[found - from];
	return 1;
}

/* Behind the first quote. */
static int reader_string(struct reader *r, const char **ret)
{
	const char *close = r->at;
	char *text, *to;

	while (close < r->end && *close != '"')
		close += *close == '\\' ? 2 : 1;
	if (close >= r->end)
		return reader_fail(r, "a string without an end");
	text = arena_alloc(r->arena, (size_t)(close - r->at) + 1);
	if (!text)
		return reader_no_memory(r);
	for (to = text; r->at < close;) {
		char c = *r->at++;

		if ((unsigned char)c < 0x20)
			return reader_fail(r, "a control byte in a string");
		if (c == '\\') {
			int n = reader_escape(r, to);

			if (n < 0)
				return n;
			to += n;
			continue;
		}
		*to++ = c;
	}
	*to = '\0';
	r->at++;
	*ret = text;
	return 0;
}

static size_t reader_digits(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && at[n] >= '0' && at[n] <= '9')
		n++;
	return n;
}

static int reader_number(struct reader *r, const char **ret)
{
	const char *at = r->at;
	size_t n;

	if (at < r->end && *at == '-')
		at++;
	n = reader_digits(at, r->end);
	if (n == 0 || (n > 1 && *at == '0'))
		return reader_fail(r, "no JSON value");
	at += n;
	if (at < r->end && *at == '.') {
		n = reader_digits(++at, r->end);
		if (n == 0)
			return reader_fail(r, "a number without digits behind its point");
		at += n;
	}
	if (at < r->end && (*at | 0x20) == 'e') {
		at++;
		if (at < r->end && (*at == '+' || *at == '-'))
			at++;
		n = reader_digits(at, r->end);
		if (n == 0)
			return reader_fail(r, "a number without an exponent");
		at += n;
	}
	*ret = arena_strndup(r->arena, r->at, (size_t)(at - r->at));
	if (!*ret)
		return reader_no_memory(r);
	r->at = at;
	return 0;
}

static int reader_literal(struct reader *r, struct json_value *v)
{
	static const struct {
		const char *word;
		enum json_kind kind;
		bool truth;
	} words[] = { { "null", JSON_NULL, false },
		      { "true", JSON_BOOL, true },
		      { "false", JSON_BOOL, false } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i].word);

		if ((size_t)(r->end - r->at) >= n && memcmp(r->at, words[i].word, n) == 0) {
			r->at += n;
			v->kind = words[i].kind;
			v->truth = words[i].truth;
			return 0;
		}
	}
	return reader_fail(r, "no JSON value");
}

static uint32_t name_hash(const char *s)
{
	uint32_t h = 2166136261U;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619U;
	return h;
}

/* Where v is among the slots, or the free one that is for it; NULL after too many others. */
static struct json_value **slot_find(struct json_value **slots, size_t n_slots,
				     const struct json_value *v)
{
	size_t at = v->name_hash & (n_slots - 1);

	for (int probes = 0; probes < READER_PROBES_MAX; probes++) {
		if (!slots[at] ||
		    (slots[at]->name_hash == v->name_hash && str_eq(slots[at]->name, v->name)))
			return &slots[at];
		at = (at + 1) & (n_slots - 1);
	}
	return NULL;
}

static int reader_collides(const struct reader *r)
{
	return reader_fail(r, "an object with too many members of one hash");
}

/* A table of twice the size; the old one stays in the arena, which costs at most as much again. */
static int reader_grow_slots(struct reader *r, const struct json_value *object)
{
	size_t n = object->n * 4;
	struct json_value **slots = arena_zalloc(r->arena, n, sizeof(struct json_value *));

	if (!slots)
		return reader_no_memory(r);
	for (struct json_value *m = object->first; m; m = m->next) {
		struct json_value **slot = slot_find(slots, n, m);

		if (!slot)
			return reader_collides(r);
		*slot = m;
	}
	r->open[r->depth - 1].slots = slots;
	r->open[r->depth - 1].n_slots = n;
	return 0;
}

/* 1 where the innermost object has a member of v's name, else 0. */
static int reader_has_member(struct reader *r, const struct json_value *object,
			     struct json_value *v)
{
	struct json_value **slot;
	int err = 0;

	if (object->n < READER_FEW) {
		for (const struct json_value *m = object->first; m; m = m->next)
			if (m->name_hash == v->name_hash && str_eq(m->name, v->name))
				return 1;
		return 0;
	}
	if (object->n * 2 >= r->open[r->depth - 1].n_slots)
		err = reader_grow_slots(r, object);
	if (err < 0)
		return err;
	slot = slot_find(r->open[r->depth - 1].slots, r->open[r->depth - 1].n_slots, v);
	if (!slot)
		return reader_collides(r);
	if (*slot)
		return 1;
	*slot = v;
	return 0;
}

static int reader_member_name(struct reader *r, const struct json_value *object,
			      struct json_value *v)
{
	int err;

	reader_skip_blanks(r);
	if (r->at == r->end || *r->at++ != '"')
		return reader_fail(r, "a member without a name");
	err = reader_string(r, &v->name);
	if (err < 0)
		return err;
	v->name_hash = name_hash(v->name);
	err = reader_has_member(r, object, v);
	if (err != 0)
		return err < 0 ? err : reader_fail(r, "a member that is there twice");
	reader_skip_blanks(r);
	if (r->at == r->end || *r->at++ != ':')
		return reader_fail(r, "a member without a colon");
	return 0;
}

/* A further child of the innermost array or object; an object's with its name read. */
static int reader_child(struct reader *r, struct json_value **ret)
{
	struct json_value *parent = r->open[r->depth - 1].value;
	struct json_value *last = r->open[r->depth - 1].last;
	struct json_value *v = arena_zalloc(r->arena, 1, sizeof(*v));
	int err;

	if (!v)
		return reader_no_memory(r);
	if (parent->kind == JSON_OBJECT) {
		if (parent->n == JSONREAD_MEMBERS_MAX)
			return reader_fail(r, "an object of more than 65536 members");
		err = reader_member_name(r, parent, v);
		if (err < 0)
			return err;
	}
	*(last ? &last->next : &parent->first) = v;
	r->open[r->depth - 1].last = v;
	parent->n++;
	*ret = v;
	return 1;
}

static char reader_closer(const struct json_value *v)
{
	return v->kind == JSON_OBJECT ? '}' : ']';
}

/* Behind the bracket: 1 with the first child in *v, 0 where there is none. */
static int reader_open(struct reader *r, struct json_value **v)
{
	reader_skip_blanks(r);
	if (r->at < r->end && *r->at == reader_closer(*v)) {
		r->at++;
		return 0;
	}
	if (r->depth == JSONREAD_DEPTH_MAX)
		return reader_fail(r, "nested more than 64 deep");
	r->open[r->depth].value = *v;
	r->open[r->depth].last = NULL;
	r->open[r->depth].slots = NULL;
	r->open[r->depth].n_slots = 0;
	r->depth++;
	return reader_child(r, v);
}

/* Behind a complete value: 1 with the next one in *v, 0 where all are closed. */
static int reader_next(struct reader *r, struct json_value **v)
{
	while (r->depth > 0) {
		reader_skip_blanks(r);
		if (r->at < r->end && *r->at == reader_closer(r->open[r->depth - 1].value)) {
			r->at++;
			r->depth--;
			continue;
		}
		if (r->at == r->end || *r->at++ != ',')
			return reader_fail(r,
					   "a value that is followed by neither ',' nor its end");
		return reader_child(r, v);
	}
	return 0;
}

/* The value of *v: 1 where it has children, with the first of them in *v. */
static int reader_value(struct reader *r, struct json_value **ret)
{
	struct json_value *v = *ret;

	reader_skip_blanks(r);
	if (r->at == r->end)
		return reader_fail(r, "the document ends too early");
	if (*r->at == '{' || *r->at == '[') {
		v->kind = *r->at++ == '{' ? JSON_OBJECT : JSON_ARRAY;
		return reader_open(r, ret);
	}
	if (*r->at == '"') {
		r->at++;
		v->kind = JSON_STRING;
		return reader_string(r, &v->text);
	}
	if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')) {
		v->kind = JSON_NUMBER;
		return reader_number(r, &v->text);
	}
	return reader_literal(r, v);
}

int json_parse(struct json_value **ret, struct arena *arena, const void *data, size_t len,
	       struct error *err)
{
	struct reader r = { .arena = arena,
			    .at = data,
			    .begin = data,
			    .end = len ? (const char *)data + len : data,
			    .err = err };
	struct json_value *v, *at;
	int e;

	/* A buffer that nothing was put into has no bytes. */
	if (len == 0)
		r.at = r.begin = r.end = "";
	if (len > 0 && !str_is_utf8(data, len))
		return error_refuse(err, ERROR_INVALID, "no valid UTF-8, or a NUL in it");
	v = arena_zalloc(arena, 1, sizeof(*v));
	if (!v)
		return reader_no_memory(&r);
	at = v;
	do {
		e = reader_value(&r, &at);
		if (e == 0)
			e = reader_next(&r, &at);
		if (e < 0)
			return e;
	} while (e > 0);
	reader_skip_blanks(&r);
	if (r.at != r.end)
		return reader_fail(&r, "something stands behind the value");
	*ret = v;
	return 0;
}

const struct json_value *json_member(const struct json_value *object, const char *name)
{
	uint32_t hash = name_hash(name);

	for (const struct json_value *m = object->first; m; m = m->next)
		if (m->name && m->name_hash == hash && str_eq(m->name, name))
			return m->kind == JSON_NULL ? NULL : m;
	return NULL;
}

/* ---- trees to structs ---- */

/* Where the walk is, for errors: longer paths are cut. */
#define PATH_MAX_TEXT 160

struct filler {
	struct arena *arena;
	struct error *err;
};

static int filler_refuse(const struct filler *f, const char *path, const char *what)
{
	return error_field(f->err, ERROR_INVALID, path, "%s", what);
}

static int filler_no_memory(const struct filler *f)
{
	return error_set(f->err, -ENOMEM, "read the document");
}

static void *filler_at(void *to, size_t offset)
{
	return (char *)to + offset;
}

static int fill_text(const struct filler *f, const struct json_field *field, void *to,
		     const struct json_value *v, const char *path)
{
	if (v->kind != JSON_STRING)
		return filler_refuse(f, path, "is no string");
	*(const char **)filler_at(to, field->offset) = v->text;
	return 0;
}

static int fill_bool(const struct filler *f, const struct json_field *field, void *to,
		     const struct json_value *v, const char *path)
{
	if (v->kind != JSON_BOOL)
		return filler_refuse(f, path, "is neither true nor false");
	*(struct json_int *)filler_at(to, field->offset) =
		(struct json_int){ .set = true, .value = v->truth };
	return 0;
}

static int number_parse(const struct json_value *v, bool *ret_negative, uint64_t *ret)
{
	if (v->kind != JSON_NUMBER)
		return -EINVAL;
	*ret_negative = v->text[0] == '-';
	return parse_u64(v->text + *ret_negative, 0, UINT64_MAX, ret);
}

static int fill_int(const struct filler *f, const struct json_field *field, void *to,
		    const struct json_value *v, const char *path)
{
	int64_t value, min = field->min || field->max ? field->min : INT64_MIN;
	int64_t max = field->min || field->max ? field->max : INT64_MAX;
	bool negative = false;
	uint64_t size = 0;
	int r;

	r = number_parse(v, &negative, &size);
	if (r == -EINVAL)
		return filler_refuse(f, path, "is no whole number");
	if (r < 0 || size > (uint64_t)INT64_MAX + negative)
		return filler_refuse(f, path, "is out of range");
	value = (int64_t)(negative ? 0 - size : size);
	if (value < min || value > max)
		return error_field(f->err, ERROR_INVALID, path,
				   "%lld is out of range (%lld to %lld)", (long long)value,
				   (long long)min, (long long)max);
	*(struct json_int *)filler_at(to, field->offset) =
		(struct json_int){ .set = true, .value = value };
	return 0;
}

static int fill_uint(const struct filler *f, const struct json_field *field, void *to,
		     const struct json_value *v, const char *path)
{
	uint64_t value = 0, max = field->max ? (uint64_t)field->max : UINT64_MAX;
	bool negative = false;
	int r;

	r = number_parse(v, &negative, &value);
	if (r == -EINVAL)
		return filler_refuse(f, path, "is no whole number");
	if (r < 0 || (negative && value != 0) || value > max)
		return error_field(f->err, ERROR_INVALID, path, "%.24s is out of range (0 to %llu)",
				   v->text, (unsigned long long)max);
	*(struct json_uint *)filler_at(to, field->offset) =
		(struct json_uint){ .set = true, .value = value };
	return 0;
}

/* Room for all elements of an array or object, and one more, where the limit of the list allows
 * them. *ret is zeroed. */
static int list_begin(const struct filler *f, const struct json_field *field, void *to,
		      const struct json_value *v, const char *path, size_t size, void **ret)
{
	size_t max = field->max ? (size_t)field->max : JSON_LIST_MAX;
	bool object = field->want == JSON_TO_PAIRS || field->want == JSON_TO_MAP;

	if (v->kind != (object ? JSON_OBJECT : JSON_ARRAY))
		return filler_refuse(f, path, object ? "is no object" : "is no array");
	if (v->n > max)
		return error_field(f->err, ERROR_EXHAUSTED, path, "has more than %zu elements",
				   max);
	*ret = arena_zalloc(f->arena, v->n + 1, size);
	if (!*ret)
		return filler_no_memory(f);
	*(size_t *)filler_at(to, field->count_offset) = v->n;
	return 0;
}

static int fill_texts(const struct filler *f, const struct json_field *field, void *to,
		      const struct json_value *v, const char *path)
{
	const char **list;
	size_t n = 0;
	void *room;
	int r;

	r = list_begin(f, field, to, v, path, sizeof(*list), &room);
	if (r < 0)
		return r;
	list = room;
	for (const struct json_value *e = v->first; e; e = e->next) {
		if (e->kind != JSON_STRING)
			return error_field(f->err, ERROR_INVALID, path, "[%zu] is no string", n);
		list[n++] = e->text;
	}
	*(const char ***)filler_at(to, field->offset) = list;
	return 0;
}

static int fill_numbers(const struct filler *f, const struct json_field *field, void *to,
			const struct json_value *v, const char *path)
{
	uint64_t *list;
	size_t n = 0;
	void *room;
	int r;

	r = list_begin(f, field, to, v, path, sizeof(*list), &room);
	if (r < 0)
		return r;
	list = room;
	for (const struct json_value *e = v->first; e; e = e->next, n++) {
		bool negative = false;

		if (number_parse(e, &negative, &list[n]) < 0 || negative || list[n] > UINT32_MAX)
			return error_field(f->err, ERROR_INVALID, path,
					   "[%zu] is no number from 0 to %u", n, UINT32_MAX);
	}
	*(uint64_t **)filler_at(to, field->offset) = list;
	return 0;
}

static int fill_pairs(const struct filler *f, const struct json_field *field, void *to,
		      const struct json_value *v, const char *path)
{
	struct json_pair *list;
	size_t n = 0;
	void *room;
	int r;

	r = list_begin(f, field, to, v, path, sizeof(*list), &room);
	if (r < 0)
		return r;
	list = room;
	for (const struct json_value *e = v->first; e; e = e->next) {
		if (e->kind != JSON_STRING)
			return error_field(f->err, ERROR_INVALID, path, "\"%.60s\" is no string",
					   e->name);
		list[n++] = (struct json_pair){ .name = e->name, .value = e->text };
	}
	*(struct json_pair **)filler_at(to, field->offset) = list;
	return 0;
}

static int fill_one(const struct filler *f, const struct json_field *field, void *to,
		    const struct json_value *v, const char *path)
{
	void *one;

	if (v->kind != JSON_OBJECT)
		return filler_refuse(f, path, "is no object");
	one = arena_zalloc(f->arena, 1, field->size);
	if (!one)
		return filler_no_memory(f);
	*(void **)filler_at(to, field->offset) = one;
	return json_fill(one, v, field->fields, field->n_fields, path, f->arena, f->err);
}

static int fill_list(const struct filler *f, const struct json_field *field, void *to,
		     const struct json_value *v, const char *path)
{
	bool map = field->want == JSON_TO_MAP;
	size_t n = 0;
	void *room;
	char *one;
	int r;

	r = list_begin(f, field, to, v, path, field->size, &room);
	if (r < 0)
		return r;
	one = room;
	*(void **)filler_at(to, field->offset) = room;
	for (const struct json_value *e = v->first; e; e = e->next, n++, one += field->size) {
		char inner[PATH_MAX_TEXT];

		if (map)
			(void)str_printf(inner, sizeof(inner), "%s[\"%.60s\"]", path, e->name);
		else
			(void)str_printf(inner, sizeof(inner), "%s[%zu]", path, n);
		if (e->kind != JSON_OBJECT)
			return filler_refuse(f, inner, "is no object");
		if (map)
			*(const char **)(void *)one = e->name;
		r = json_fill(one, e, field->fields, field->n_fields, inner, f->arena, f->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int (*const fill_kinds[])(const struct filler *f, const struct json_field *field, void *to,
				 const struct json_value *v, const char *path) = {
	[JSON_TO_TEXT] = fill_text,   [JSON_TO_BOOL] = fill_bool,
	[JSON_TO_INT] = fill_int,     [JSON_TO_UINT] = fill_uint,
	[JSON_TO_TEXTS] = fill_texts, [JSON_TO_NUMBERS] = fill_numbers,
	[JSON_TO_PAIRS] = fill_pairs, [JSON_TO_ONE] = fill_one,
	[JSON_TO_LIST] = fill_list,   [JSON_TO_MAP] = fill_list,
};

int json_fill(void *to, const struct json_value *object, const struct json_field *fields, size_t n,
	      const char *path, struct arena *arena, struct error *err)
{
	const struct filler f = { .arena = arena, .err = err };

	for (size_t i = 0; i < n; i++) {
		const struct json_value *v = json_member(object, fields[i].name);
		char inner[PATH_MAX_TEXT];
		int r;

		if (!v && !fields[i].required)
			continue;
		(void)str_printf(inner, sizeof(inner), "%s%s%s", path, *path ? "." : "",
				 fields[i].name);
		if (!v)
			return filler_refuse(&f, inner, "is missing");
		r = fill_kinds[fields[i].want](&f, &fields[i], to, v, inner);
		if (r < 0)
			return r;
	}
	return 0;
}
