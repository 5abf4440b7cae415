/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_STR_H
#define NACRE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* Strings, and lists of strings that end with NULL ("strv"). */

static inline void str_freep(char **s)
{
	free(*s);
}
#define _cleanup_str_ _cleanup_(str_freep)

static inline bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static inline bool str_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix);

/* NULL and "" alike. */
static inline bool str_empty(const char *s)
{
	return !s || !*s;
}

/* Copies what fits and always ends with NUL; -ENAMETOOLONG where it did not fit whole. */
int str_copy(char *to, size_t size, const char *from);
/* snprintf that reports truncation: the length, or -ENAMETOOLONG. */
int str_printf(char *to, size_t size, const char *fmt, ...) _printf_(3, 4);

/* An allocated string, or NULL without memory. */
char *str_format(const char *fmt, ...) _printf_(1, 2) _must_check_;

/* Valid UTF-8 (RFC 3629: no surrogates, no overlong forms) without NUL. */
bool str_is_utf8(const void *data, size_t len);

/* No byte below 0x20, no DEL. */
bool str_is_clean(const char *s);

/*
 * The bytes of the control character at s: 1 below 0x20 and for DEL, 2 for U+0080 to U+009F, which
 * terminals obey as they do an escape; 0 where there is none.
 */
size_t str_control_len(const char *s);

/* Replaces each byte of control characters (str_control_len()) by '?'. */
void str_clean(char *s);

size_t strv_len(char *const *v);
void strv_free(char **v);
static inline void strv_freep(char ***v)
{
	strv_free(*v);
}
#define _cleanup_strv_ _cleanup_(strv_freep)
/* A deep copy; NULL without memory. v may be NULL (gives an empty list). */
char **strv_copy(char *const *v) _must_check_;
/* Appends a copy of s: 0 or -ENOMEM (the list is as before). *v may be NULL. */
int strv_add(char ***v, const char *s) _must_check_;
/* The value of NAME in a list of NAME=VALUE, or NULL. */
const char *strv_env_get(char *const *env, const char *name);
/* Puts NAME=VALUE into the list, in the place of an earlier NAME. */
int strv_env_put(char ***env, const char *assignment) _must_check_;

#endif
