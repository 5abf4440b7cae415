/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_DIGEST_H
#define NACRE_WIRE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The name of content: "sha256:" and 64 lower-case hexadecimal digits, nothing else. A digest is
 * checked before any path is built from it (security.md C04).
 */

#define DIGEST_HEX_LEN 64
#define DIGEST_LEN (7 + DIGEST_HEX_LEN)
#define DIGEST_SIZE (DIGEST_LEN + 1)

bool digest_is_valid(const char *s);
/* 64 lower-case hexadecimal digits. */
bool digest_is_hex(const char *s);
/* The digits of a valid digest: safe as a file name. */
const char *digest_hex(const char *digest);
void digest_format(char ret[DIGEST_SIZE], const uint8_t sha256[32]);

#endif
