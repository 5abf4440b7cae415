/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_TAR_TEXT_H
#define NACRE_WIRE_TAR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/tree.h"

/* Numbers, times and paths as tar archives have them. All return 0 or -EINVAL. */

/* Octal digits, or base 256 where the highest bit is set. Of a negative one *ret is 0. */
int tar_number(const uint8_t *at, size_t len, uint64_t *ret, bool *ret_negative);
/* Decimal digits and nothing else. */
int tar_decimal(const char *text, size_t len, uint64_t *ret);
/* Seconds with a fraction, as nanoseconds; what was before 1970 or will be after 2262 is 1970. */
int tar_time(const char *text, size_t len, uint64_t *ret);
/* A path without what means nothing; "." for nothing at all. -EINVAL with "..", or -ENAMETOOLONG.
 */
int tar_clean(const char *from, char ret[TREE_PATH_MAX]);

#endif
