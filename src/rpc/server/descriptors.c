/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/descriptors.h"

#include <errno.h>
#include <string.h>

/* Field numbers of descriptor.proto. */
#define SET_FILE 1
#define FILE_NAME 1
#define FILE_PACKAGE 2

/*
 * Where a definition has its name and what is defined inside it. A name is told from its first
 * component: "Outer.Inner" is an Outer that defines Inner.
 */
enum scope_kind { SCOPE_FILE, SCOPE_MESSAGE, SCOPE_ENUM, SCOPE_SERVICE, SCOPE_LEAF };

static const struct scope_part {
	enum scope_kind in;
	uint32_t number;
	enum scope_kind is;
} scope_parts[] = {
	{ SCOPE_FILE, 4, SCOPE_MESSAGE }, { SCOPE_FILE, 5, SCOPE_ENUM },
	{ SCOPE_FILE, 6, SCOPE_SERVICE }, { SCOPE_FILE, 7, SCOPE_LEAF },
	{ SCOPE_MESSAGE, 2, SCOPE_LEAF }, { SCOPE_MESSAGE, 3, SCOPE_MESSAGE },
	{ SCOPE_MESSAGE, 4, SCOPE_ENUM }, { SCOPE_MESSAGE, 6, SCOPE_LEAF },
	{ SCOPE_MESSAGE, 8, SCOPE_LEAF }, { SCOPE_ENUM, 2, SCOPE_LEAF },
	{ SCOPE_SERVICE, 2, SCOPE_LEAF },
};

/* Every definition has its name in field 1. */
#define DEFINITION_NAME 1
#define SCOPE_DEPTH_MAX 32

static const struct scope_part *scope_part(enum scope_kind in, const struct pb_field *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(scope_parts); i++)
		if (scope_parts[i].in == in && scope_parts[i].number == f->number &&
		    f->wire == PB_BYTES)
			return &scope_parts[i];
	return NULL;
}

/* 1 where the bytes of a scope define the name, which is relative to it. */
static int scope_defines(enum scope_kind in, const void *data, size_t len, const char *name,
			 unsigned depth)
{
	size_t first = strcspn(name, ".");
	struct pb_reader reader = pb_reader(data, len);
	const struct scope_part *part;
	struct pb_field f, own;
	int r;

	if (depth > SCOPE_DEPTH_MAX)
		return -EBADMSG;
	for (;;) {
		r = pb_next(&reader, &f);
		if (r <= 0)
			return r;
		part = scope_part(in, &f);
		if (!part)
			continue;
		r = pb_find(f.data, f.len, DEFINITION_NAME, &own);
		if (r < 0)
			return r;
		if (r > 0 && own.len == first && memcmp(own.data, name, first) == 0) {
			if (name[first] == '\0')
				return 1;
			r = scope_defines(part->is, f.data, f.len, name + first + 1, depth + 1);
			if (r != 0)
				return r;
		}
		/* The values of an enum are named in the scope around it. */
		if (part->is == SCOPE_ENUM && name[first] == '\0') {
			r = scope_defines(SCOPE_ENUM, f.data, f.len, name, depth + 1);
			if (r != 0)
				return r;
		}
	}
}

static int file_is_named(const struct pb_field *file, const char *name)
{
	struct pb_field own;
	int r = pb_find(file->data, file->len, FILE_NAME, &own);

	return r <= 0 ? r : pb_is(&own, name);
}

static int file_defines(const struct pb_field *file, const char *symbol)
{
	struct pb_field package;
	int r = pb_find(file->data, file->len, FILE_PACKAGE, &package);

	if (r < 0)
		return r;
	if (r > 0 && package.len > 0) {
		if (strncmp(symbol, (const char *)package.data, package.len) != 0 ||
		    symbol[package.len] != '.')
			return 0;
		symbol += package.len + 1;
	}
	return scope_defines(SCOPE_FILE, file->data, file->len, symbol, 0);
}

static int set_find(const void *set, size_t len, const char *name,
		    int (*matches)(const struct pb_field *file, const char *name),
		    struct pb_field *ret)
{
	struct pb_reader reader = pb_reader(set, len);
	struct pb_field f;
	int r;

	for (;;) {
		r = pb_next(&reader, &f);
		if (r <= 0)
			return r;
		if (f.number != SET_FILE || f.wire != PB_BYTES)
			continue;
		r = matches(&f, name);
		if (r != 0) {
			*ret = f;
			return r;
		}
	}
}

int descriptors_find_file(const void *set, size_t len, const char *name, struct pb_field *ret)
{
	return set_find(set, len, name, file_is_named, ret);
}

int descriptors_find_symbol(const void *set, size_t len, const char *symbol, struct pb_field *ret)
{
	return set_find(set, len, symbol, file_defines, ret);
}
