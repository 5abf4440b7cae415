/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_HASH_H
#define NACRE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * FNV-1a with 64 bits: the same in every release and on every machine, so that it can be recorded
 * and handed out. It tells things apart that differ by chance; nothing is safe behind it.
 */

#define HASH_INIT 14695981039346656037ULL

/* Goes on from `hash`; HASH_INIT at the beginning. */
uint64_t hash_add(uint64_t hash, const void *data, size_t len);
/* The text with its final NUL, so that "a", "b" is not "ab". */
uint64_t hash_add_str(uint64_t hash, const char *s);

#endif
