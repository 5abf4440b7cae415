/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_ARRAY_H
#define NACRE_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/macros.h"

/* Of an array that has room for none. */
#define ARRAY_FIRST 16

/*
 * Room for one more in an array of *size items of `item` bytes, of which n are in use: 0, or
 * -ENOMEM, and then it is as it was. Its owner frees it.
 */
static inline int _must_check_ array_grow(void **array, size_t n, size_t *size, size_t item)
{
	size_t wanted = *size ? 2 * *size : ARRAY_FIRST;
	void *grown;

	if (n < *size)
		return 0;
	grown = reallocarray(*array, wanted, item);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*size = wanted;
	return 0;
}

#endif
