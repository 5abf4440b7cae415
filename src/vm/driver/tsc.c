/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/tsc.h"

#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

#define TSC_MEASURE_NS 20000000
/* A pair of readings between which the thread was taken off the processor is worth nothing. */
#define TSC_TRIES 5
#define TSC_CLOSE_TICKS 20000

struct tsc_reading {
	int64_t ns;
	uint64_t ticks;
};

static int64_t tsc_clock(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Both clocks at once, as nearly as that can be had. */
static struct tsc_reading tsc_read(void)
{
	struct tsc_reading best = { 0 };
	uint64_t closest = UINT64_MAX;

	for (int i = 0; i < TSC_TRIES && closest > TSC_CLOSE_TICKS; i++) {
		uint64_t before = __rdtsc();
		int64_t ns = tsc_clock();
		uint64_t apart = __rdtsc() - before;

		if (apart >= closest)
			continue;
		closest = apart;
		best = (struct tsc_reading){ .ns = ns, .ticks = before + apart / 2 };
	}
	return best;
}

unsigned tsc_khz(void)
{
	static unsigned khz;
	struct timespec ts = { .tv_nsec = TSC_MEASURE_NS };
	struct tsc_reading from, to;

	if (khz)
		return khz;
	from = tsc_read();
	(void)nanosleep(&ts, NULL);
	to = tsc_read();
	khz = (unsigned)((double)(to.ticks - from.ticks) * 1e6 / (double)(to.ns - from.ns));
	return khz;
}
