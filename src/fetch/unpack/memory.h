/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_MEMORY_H
#define NACRE_FETCH_MEMORY_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * The word of the core for memory that is too much for all helpers to have at once: the window of
 * zstd. A value, without resources of its own.
 */
struct memory {
	int sock_fd;      /* to the core; -1: nobody is asked, and it may be taken */
	int stop_fd;      /* readable where the wait is to be given up */
	uint64_t granted; /* bytes; 0 at first */
};

/*
 * Waits until so many bytes may be taken, which are all of that kind then: what was granted before
 * has been given back. Up to FETCH_MEMORY_FREE nobody is asked. 0; ERROR_EXHAUSTED past
 * FETCH_MEMORY_MAX, -ECANCELED where stop_fd became readable. Nothing else may use the socket
 * meanwhile.
 */
int memory_ask(struct memory *m, uint64_t n_bytes, struct error *err);

#endif
