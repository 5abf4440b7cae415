/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_TEXT_H
#define NACRE_CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/time/clock.h"

/* Values as people read them. */

#define TEXT_SIZE 32

/* "3 minutes ago", "just now"; "-" for 0. A moment after now (clocks differ) is "just now". */
void text_ago(char ret[TEXT_SIZE], nsec_t now, nsec_t then);
/* "4.2 MB", decimal units. */
void text_bytes(char ret[TEXT_SIZE], uint64_t n);
/* Time of a CPU: "12ms", "3.45s", "2m07s", "5h02m". */
void text_cpu(char ret[TEXT_SIZE], uint64_t us);
/* The first digits of a digest or id, without "sha256:". */
void text_short_id(char ret[TEXT_SIZE], const char *id);

/* Columns of a terminal that a UTF-8 text takes, by its code points. */
size_t text_width(const char *s);
/* How many bytes the first n columns of a UTF-8 text take. */
size_t text_prefix(const char *s, size_t n);

#endif
