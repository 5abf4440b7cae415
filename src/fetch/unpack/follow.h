/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_FOLLOW_H
#define NACRE_FETCH_FOLLOW_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * A file that grows while it is read: a pipe says, in numbers of eight bytes of this machine's
 * order, how many bytes of it are good by now. A value, without resources of its own.
 */
struct follow {
	int pipe_fd;
	int stop_fd;   /* readable where the wait is to be given up */
	uint64_t size; /* that the file will have */
	uint64_t good; /* that it has, as far as was told */
};

/*
 * Waits until there are more than `pos` bytes, or all of them. 0; ERROR_INVALID ("cut") where the
 * pipe ends before, -EPROTO where it tells what cannot be, -ECANCELED where stop_fd became
 * readable.
 */
int follow_wait(struct follow *f, uint64_t pos, struct error *err);

#endif
