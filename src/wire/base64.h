/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_BASE64_H
#define NACRE_WIRE_BASE64_H

#include "base/arena.h"

/* The text behind base64 (RFC 4648, with or without '=' at its end), in the arena. NULL where it is
 * none or holds a NUL, and without memory. */
char *base64_decode(struct arena *a, const char *text);

#endif
