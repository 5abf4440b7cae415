/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_JSON_H
#define NACRE_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/time/clock.h"

/*
 * Writes JSON (RFC 8259) as it is told: the caller keeps to the grammar (a key inside an object,
 * NULL inside an array and at the top). Bytes that are no UTF-8 become U+FFFD. Errors are those of
 * the stream. (The names keep clear of jansson's, which the helpers are linked with.)
 */

#define JSON_DEPTH_MAX 64

struct json {
	FILE *to;
	bool compact; /* one line; else indented by two blanks */
	bool filled;  /* the innermost object or array has a member already */
	unsigned depth;
	char closers[JSON_DEPTH_MAX];
};

/* A value of its own at the top, followed by a line feed where it ends. */
#define JSON_INIT(file)                                                                            \
	{                                                                                          \
		.to = (file)                                                                       \
	}

void json_put_object(struct json *j, const char *key);
void json_put_array(struct json *j, const char *key);
/* Ends the innermost object or array. */
void json_put_end(struct json *j);

/* NULL is null. */
void json_put_string(struct json *j, const char *key, const char *value);
/* As json_put_string(), and "" is null too. */
void json_put_word(struct json *j, const char *key, const char *value);
void json_put_integer(struct json *j, const char *key, int64_t value);
void json_put_unsigned(struct json *j, const char *key, uint64_t value);
/* WHOLE.HUNDREDTHS */
void json_put_real(struct json *j, const char *key, uint64_t whole, unsigned hundredths);
void json_put_bool(struct json *j, const char *key, bool value);
void json_put_null(struct json *j, const char *key);
/* A value that is JSON already, as it is. */
void json_put_document(struct json *j, const char *key, const void *text, size_t len);
/* RFC 3339; null for 0. */
void json_put_time(struct json *j, const char *key, nsec_t real);

#endif
