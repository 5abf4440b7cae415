/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_JSONREAD_H
#define NACRE_WIRE_JSONREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"

/*
 * Reads JSON (RFC 8259) into a tree, and a tree into structs by tables of members. Strict: valid
 * UTF-8, no NUL, no member twice, nothing behind the value. Numbers are kept as they are written,
 * so that all 64 bits of 18446744073709551615 (no limit, in OCI's documents) arrive.
 *
 * Everything is in the arena, and its limit bounds what a document can cost.
 */

#define JSONREAD_DEPTH_MAX 64
#define JSONREAD_MEMBERS_MAX 65536 /* of one object */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
	enum json_kind kind;
	bool truth;       /* of JSON_BOOL */
	const char *name; /* of a member; NULL in an array and at the top */
	const char *text; /* of JSON_STRING and JSON_NUMBER */
	size_t n;         /* how many members or elements */
	struct json_value *first, *next;
	uint32_t name_hash;
};

/* The value lives as long as the arena. ERROR_INVALID with the line, or -ENOMEM. */
int json_parse(struct json_value **ret, struct arena *arena, const void *data, size_t len,
	       struct error *err);

/* The member of an object; NULL where it is missing or null. */
const struct json_value *json_member(const struct json_value *object, const char *name);

/* ---- trees to structs ---- */

/* Numbers that may be missing. */
struct json_int {
	bool set;
	int64_t value;
};
struct json_uint {
	bool set;
	uint64_t value;
};

struct json_pair {
	const char *name, *value;
};

enum json_want {
	JSON_TO_TEXT,    /* const char *; NULL where it is missing */
	JSON_TO_BOOL,    /* struct json_int: 0 or 1 */
	JSON_TO_INT,     /* struct json_int, from .min to .max */
	JSON_TO_UINT,    /* struct json_uint, to .max (0: of any size) */
	JSON_TO_TEXTS,   /* const char **, ended by NULL, and their number */
	JSON_TO_NUMBERS, /* uint64_t *, each to UINT32_MAX, and their number */
	JSON_TO_PAIRS,   /* struct json_pair *, of an object of strings, and their number */
	JSON_TO_ONE,     /* pointer to a struct; NULL where it is missing */
	JSON_TO_LIST,    /* array of structs, and their number */
	/* Array of structs, of an object; the first member of each is its name (const char *). */
	JSON_TO_MAP,
};

struct json_field {
	const char *name;
	enum json_want want;
	bool required;
	size_t offset, count_offset; /* of the member, and of its size_t */
	size_t size;                 /* of one struct */
	const struct json_field *fields;
	size_t n_fields;
	int64_t min, max; /* of a number; max of a list: the most elements (0: 1024) */
};

#define JSON_LIST_MAX 1024

/*
 * Fills the struct, which was cleared, from an object. Members that are not in the table are
 * ignored, null counts as missing. path is where the object stands ("" at the top): errors name the
 * member, "linux.resources.memory.limit: is no whole number".
 */
int json_fill(void *to, const struct json_value *object, const struct json_field *fields, size_t n,
	      const char *path, struct arena *arena, struct error *err);

#endif
