/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_HEALTH_RECORD_H
#define NACRE_POD_HEALTH_RECORD_H

#include "pod/workload/model.h"

/*
 * The last results of a container's probes as rows of the store, so that the next daemon shows them
 * too. HEALTH_RESULTS rows are written in turn. A row that cannot be written or read is logged:
 * nothing but what is shown depends on it.
 */

#define HEALTH_RESULTS 5
#define HEALTH_OUTPUT_MAX 4096

struct health_result {
	uint64_t started_at, ended_at; /* clock_real() */
	int exit_code;                 /* 0: healthy */
	char *output;                  /* n_output bytes, at most HEALTH_OUTPUT_MAX */
	size_t n_output;
};

/* place: which row; the caller counts, modulo HEALTH_RESULTS. */
void health_record_put(const struct pod_container *c, size_t place, const struct health_result *r);
/* results: HEALTH_RESULTS; fills in the first *ret_n, the oldest first. Returns the place of the
 * next one. */
size_t health_record_read(const struct pod_container *c, struct health_result *results,
			  size_t *ret_n);
void health_record_drop(const struct pod_container *c);

#endif
