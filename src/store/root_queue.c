/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "store/root.h"
#include "store/root_state.h"

/* The queue of changes, on the loop thread: what waits goes to the pool in batches. */

void root_take_batch(struct root_store *s)
{
	while (!list_empty(&s->waiting)) {
		struct list *change = s->waiting.next;

		list_remove(change);
		list_add_tail(&s->batch, change);
	}
}

void root_flush(struct root_store *s)
{
	/* While a batch is reported its callbacks queue more: that goes out when all were told. */
	if (s->held || s->work.busy || !list_empty(&s->batch) || list_empty(&s->waiting))
		return;
	root_take_batch(s);
	pool_submit(s->pool, &s->work);
}

void root_store_hold(struct root_store *s)
{
	assert(root_store_is_idle(s));
	s->held = true;
}

void root_store_release(struct root_store *s)
{
	s->held = false;
	root_flush(s);
}

bool root_store_is_idle(const struct root_store *s)
{
	return !s->work.busy && list_empty(&s->batch) && list_empty(&s->waiting);
}
