/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_CLOCK_H
#define NACRE_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Time. Durations and deadlines are nanoseconds on the monotonic clock; wall time is for records
 * and people only, and nothing waits on it: a clock that is set changes no timeout.
 */

typedef uint64_t nsec_t;

#define NSEC_PER_USEC ((nsec_t)1000)
#define NSEC_PER_MSEC ((nsec_t)1000000)
#define NSEC_PER_SEC ((nsec_t)1000000000)
#define NSEC_NEVER UINT64_MAX

nsec_t clock_mono(void);
nsec_t clock_real(void);
/* Sets the wall clock of the machine: for pid 1 of one that has just begun. */
int clock_set_real(nsec_t real);

/*
 * Tests put their own source here; NULL is the kernel. The function is asked with CLOCK_MONOTONIC
 * or CLOCK_REALTIME.
 */
void clock_set_source(nsec_t (*source)(int clock_id));

/* RFC 3339 with nanoseconds, UTC ("2026-01-31T10:00:00.000000000Z"): 30 bytes and a NUL. */
#define CLOCK_TEXT_SIZE 31
void clock_format(char buf[CLOCK_TEXT_SIZE], nsec_t real);
/* RFC 3339, all len bytes: with or without a fraction, "Z" or an offset. From 1970 to 2553. -EINVAL
 * for anything else. */
int clock_parse(const char *s, size_t len, nsec_t *ret);

#endif
