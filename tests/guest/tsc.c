/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the rate of this machine's time stamp counter in kHz. A guest under emulation reads the
 * host's counter, and without its rate it hangs at boot whenever the host is busy.
 */

#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TSC_MEASURE_NS 50000000

static int64_t tsc_clock(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int main(void)
{
	struct timespec ts = { .tv_nsec = TSC_MEASURE_NS };
	int64_t began, took;
	uint64_t ticks;

	began = tsc_clock();
	ticks = __rdtsc();
	(void)nanosleep(&ts, NULL);
	took = tsc_clock() - began;
	ticks = __rdtsc() - ticks;
	printf("%llu\n", (unsigned long long)((double)ticks * 1e6 / (double)took));
	return 0;
}
