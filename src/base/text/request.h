/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_REQUEST_H
#define NACRE_BASE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The key by which a request is recognised as an earlier one: the id that its client has given to
 * it, and a hash of its bytes. Recorded with the object that was made for it, as one word: "ID
 * HASH"; "" stands for none.
 */

#define REQUEST_ID_MAX 64
#define REQUEST_KEY_SIZE (REQUEST_ID_MAX + 1 + 16 + 1)

/* 1 to REQUEST_ID_MAX of A-Z, a-z, 0-9, '.', '_', '-'. */
bool request_id_is(const char *id);
void request_key(char ret[REQUEST_KEY_SIZE], const char *id, uint64_t hash);
/* Whether both were given the same id; never for "". */
bool request_same_id(const char *a, const char *b);

#endif
