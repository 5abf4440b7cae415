/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_LOG_RING_H
#define NACRE_BASE_LOG_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/time/clock.h"

/*
 * The last lines of the log of this process, for who comes to read them later; those of debugging
 * are not among them, since to tell of a line may write one. Lines are numbered from 1 on.
 */

#define LOG_RING_LINES 256

/* From now on they are kept. wake_fd: an eventfd (not blocking) that each line is told to; not
 * taken over. -EBUSY: they are already. */
int log_ring_open(int wake_fd);
void log_ring_close(void);

struct log_ring_line {
	uint64_t number; /* in: the first that is wanted */
	nsec_t at;       /* wall clock */
	char *text;      /* to be freed */
};

/* The line of that number, or the next one that is kept: 1, 0 where there is none yet, -ENOMEM. */
int log_ring_read(struct log_ring_line *line);

#endif
