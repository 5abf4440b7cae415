/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_CLOCK_SHIFT_H
#define NACRE_BASE_CLOCK_SHIFT_H

#include <stdint.h>

/*
 * How far the wall clock of a test is from the kernel's; private to this area. Nothing in the
 * product (clock_shift_none.c). In a build with -Dfaults=true (clock_shift_faults.c)
 *
 *   NACRE_CLOCK_SWING=MS
 *
 * makes it jump every MS milliseconds, and again and again: a day ahead, right, a day behind,
 * right. All processes that have it see the same clock, since it follows the monotonic one; keepers
 * inherit it. 0, and what is no number, is none.
 */

#define CLOCK_SHIFT_DAY INT64_C(86400000000000)

/* Nanoseconds to add to the kernel's wall clock at this time (ns) of the monotonic one. */
int64_t clock_shift(uint64_t mono);

#endif
