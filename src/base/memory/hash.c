/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/hash.h"

#include <string.h>

#define HASH_PRIME 1099511628211ULL

uint64_t hash_add(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * HASH_PRIME;
	return hash;
}

uint64_t hash_add_str(uint64_t hash, const char *s)
{
	return hash_add(hash, s, strlen(s) + 1);
}
