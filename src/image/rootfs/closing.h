/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_CLOSING_H
#define NACRE_IMAGE_CLOSING_H

#include "base/memory/list.h"
#include "loop/pool.h"

/*
 * Descriptors of detached mounts that are closed on the pool: the last one of a mount waits for a
 * grace period of RCU, and forgets all that was read of a file below it. The owner of a mount that
 * is handed to a helper keeps its own descriptor until the helper has ended: so the wait does not
 * delay that end.
 */

/* Takes the descriptor; -1 is none. Without memory it is closed here. */
void closing_add(struct list *closings, struct pool *pool, int fd);
/* Behind the pool: closes what is left. */
void closing_free_all(struct list *closings);

#endif
