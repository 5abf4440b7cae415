/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_BUDGET_H
#define NACRE_IMAGE_BUDGET_H

#include <stdint.h>

#include "base/memory/list.h"

/*
 * The memory that all helpers of a store may have together for what a stranger's layer asks for: a
 * window of zstd (fetchmsg.h: MEMORY). Requests are served in order; a later and smaller one does
 * not overtake.
 */

struct budget {
	uint64_t max;
	uint64_t used;
	struct list waiting; /* in order */
};

/* The share of one holder. A value; zeroed: none. */
struct budget_share {
	struct list link; /* while it waits */
	struct budget *budget;
	uint64_t n_bytes;
	/* It is granted: called within a function of this header, of this share or of another one.
	 * Must not call one. */
	void (*on_grant)(struct budget_share *share);
};

void budget_init(struct budget *r, uint64_t max);
/* Gives back the share, and asks for so many bytes, at most the budget's. on_grant is set. */
void budget_ask(struct budget *r, struct budget_share *share, uint64_t n_bytes);
/* Gives back the share, or stops waiting for one. Does nothing where there is neither. */
void budget_leave(struct budget_share *share);

#endif
