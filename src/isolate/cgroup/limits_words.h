/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_LIMITS_WORDS_H
#define NACRE_ISOLATE_LIMITS_WORDS_H

#include "base/log/error.h"

/*
 * Limits as they are sent to the owner of the group: a list of words, each the name of a file of
 * cgroup version 2, '=', and what is written to it ("memory.max=67108864"). Applied in their order,
 * as limits_apply() does it: all of them, or none and an error whose field is the file.
 */

#define LIMITS_WORDS_MAX 32

/* The form alone: ERROR_INVALID. NULL is no word. */
int limits_words_check(char *const *words, struct error *err);
int limits_words_apply(int cgroup_fd, char *const *words, struct error *err);

#endif
