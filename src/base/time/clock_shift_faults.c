/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time/clock_shift.h"

#include <stdlib.h>

#include "base/macros.h"

#define CLOCK_SHIFT_NSEC_PER_MSEC UINT64_C(1000000)

int64_t clock_shift(uint64_t mono)
{
	static const int64_t swing[] = { CLOCK_SHIFT_DAY, 0, -CLOCK_SHIFT_DAY, 0 };
	const char *text = getenv("NACRE_CLOCK_SWING");
	uint64_t ms = text ? strtoul(text, NULL, 10) : 0;

	if (ms == 0)
		return 0;
	return swing[mono / CLOCK_SHIFT_NSEC_PER_MSEC / ms % ARRAY_SIZE(swing)];
}
