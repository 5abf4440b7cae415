/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/array.h"

#include <stdint.h>

#include "unit.h"

static void keeps_what_is_in_it(void)
{
	size_t n = 0, size = 0;
	uint64_t *items;
	void *array = NULL;

	while (n < 1000 && array_grow(&array, n, &size, sizeof(*items)) == 0) {
		items = array;
		items[n] = n;
		n++;
		CHECK(n <= size);
	}
	/* Also where there was no memory for more (--failmalloc). */
	items = array;
	for (size_t i = 0; i < n; i++)
		CHECK(items[i] == i);
	free(array);
}

UNIT_MAIN({ "keeps what is in it", keeps_what_is_in_it })
