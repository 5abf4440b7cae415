/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_FLAT_H
#define NACRE_ISOLATE_FLAT_H

#include <stdbool.h>
#include <stdint.h>

/* The text of the kernel's cgroup files. Pure. */

/* "Flat keyed": a line is "KEY NUMBER". Whether key is there; "max" is UINT64_MAX. */
bool flat_find(const char *text, const char *key, uint64_t *ret);
/* The same, 0 where it is missing. */
uint64_t flat_value(const char *text, const char *key);
/* "Nested keyed": a line is "NAME KEY=NUMBER KEY=NUMBER...". Adds up a key over the lines. */
uint64_t flat_nested_sum(const char *text, const char *key);

/* A number or "max" (UINT64_MAX), behind which a blank, a new line or nothing stands. */
bool flat_number(const char *text, uint64_t *ret);
/* Whether a list as "0-3,7" has a right form, with numbers below FLAT_LIST_MAX. */
#define FLAT_LIST_MAX 8192U
bool flat_list_is_good(const char *list);
/* Whether each number of the list `part` is in the list `whole`; both have a right form. */
bool flat_list_within(const char *part, const char *whole);

#endif
