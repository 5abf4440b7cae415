/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_BASE64_H
#define NACRE_WIRE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"

/* The text behind base64 (RFC 4648, with or without '=' at its end), in the arena. NULL where it is
 * none or holds a NUL, and without memory. */
char *base64_decode(struct arena *a, const char *text);
/* The bytes behind base64 of any number of lines, into room for strlen(text) bytes. */
bool base64_decode_lines(const char *text, uint8_t *to, size_t *ret_len);
/* One line of base64, in the arena; NULL without memory. */
char *base64_encode(struct arena *a, const uint8_t *data, size_t len);

#endif
