/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_MEASURE_H
#define NACRE_RPC_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/list.h"
#include "base/memory/map.h"
#include "base/time/clock.h"
#include "rpc/message/status.h"

/*
 * How often each method of a server was called, how its calls ended and how long they took. Of
 * those that are not served here nothing is known but that they were called: they are one, with the
 * path "". The memory is bounded by the methods that a server has.
 */

#define RPC_CODES (RPC_UNAUTHENTICATED + 1)
#define RPC_MEASURE_BOUNDS 12

/* Upper bounds of buckets; what takes longer than the last one is in one more. */
extern const nsec_t rpc_measure_bounds[RPC_MEASURE_BOUNDS];

struct rpc_measure {
	struct list member;
	const char *path;
	uint64_t started;
	uint64_t by_code[RPC_CODES];              /* that have ended */
	bool is_timed;                            /* the members below are valid */
	uint64_t buckets[RPC_MEASURE_BOUNDS + 1]; /* of those that have ended, each counted once */
	nsec_t total;
};

struct measures {
	struct list all;
	struct map by_path;
};

void measures_init(struct measures *m);
void measures_done(struct measures *m);

/* Without memory a call is not counted. path must live as long. */
void measures_begin(struct measures *m, const char *path, bool is_timed);
/* code: any number. */
void measures_end(struct measures *m, const char *path, unsigned code, nsec_t took);

#endif
