/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time/clock_shift.h"

int64_t clock_shift(uint64_t mono)
{
	(void)mono;
	return 0;
}
