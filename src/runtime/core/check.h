/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CHECK_H
#define NACRE_RUNTIME_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Checks of the fields of requests. The error is one sentence that begins with the field's name.
 * All return 0 or a negative errno with err set (ERROR_INVALID unless said otherwise).
 */

/* What execve() takes for one argument or variable (MAX_ARG_STRLEN with pages of 4 KiB), without
 * its NUL. */
#define CHECK_WORD_MAX ((size_t)131071)

/* A label; empty is fine. */
int check_name(const char *field, const char *name, struct error *err);
/* A path of labels; empty is fine. */
int check_path(const char *field, const char *path, struct error *err);
/* NAME=VALUE, each; no control bytes in names. The limits of check_words(). */
int check_env(const char *field, char *const *env, size_t n, struct error *err);
/* At most so many bytes. */
int check_text(const char *field, const char *text, size_t n_max, struct error *err);
/* Empty, or absolute. */
int check_dir(const char *field, const char *dir, struct error *err);
/* Not empty, at most 4096 words of 131,071 bytes, and 1 MiB in all. */
int check_words(const char *field, char *const *words, size_t n, struct error *err);
/* The same limits, may be empty. */
int check_args(const char *field, char *const *words, size_t n, struct error *err);
/* Empty, or "user", "uid", "user:group", "uid:gid": the form only. */
int check_user(const char *field, const char *user, struct error *err);
/* A terminal of at most 65535 by 65535. */
int check_size(const char *field, uint32_t width, uint32_t height, struct error *err);
/* ERROR_UNSUPPORTED "FIELD: not honoured yet" where set. */
int check_unset(const char *field, int set, struct error *err);
/* One of `words`; "" stands for the first. *ret is the word of the table. */
int check_word(const char *field, const char *word, const char *const *words, size_t n,
	       const char **ret, struct error *err);

#endif
