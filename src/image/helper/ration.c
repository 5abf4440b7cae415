/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/ration.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

void ration_init(struct ration *r, uint64_t max)
{
	*r = (struct ration){ .max = max };
	list_init(&r->waiting);
}

static void ration_serve(struct ration *r)
{
	while (!list_empty(&r->waiting)) {
		struct ration_share *next = list_first(&r->waiting, struct ration_share, link);

		if (next->n_bytes > r->max - r->used)
			return;
		list_remove(&next->link);
		r->used += next->n_bytes;
		next->on_grant(next);
	}
}

static void ration_give_back(struct ration_share *share)
{
	if (list_empty(&share->link))
		share->ration->used -= share->n_bytes;
	else
		list_remove(&share->link);
	share->n_bytes = 0;
}

void ration_ask(struct ration *r, struct ration_share *share, uint64_t n_bytes)
{
	assert(n_bytes <= r->max);
	if (share->ration)
		ration_give_back(share);
	else
		list_init(&share->link);
	share->ration = r;
	share->n_bytes = n_bytes;
	list_add_tail(&r->waiting, &share->link);
	ration_serve(r);
}

void ration_leave(struct ration_share *share)
{
	struct ration *r = share->ration;

	if (!r)
		return;
	ration_give_back(share);
	share->ration = NULL;
	ration_serve(r);
}
