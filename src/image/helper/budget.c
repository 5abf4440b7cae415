/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/budget.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

void budget_init(struct budget *r, uint64_t max)
{
	*r = (struct budget){ .max = max };
	list_init(&r->waiting);
}

static void budget_serve(struct budget *r)
{
	while (!list_empty(&r->waiting)) {
		struct budget_share *next = list_first(&r->waiting, struct budget_share, link);

		if (next->n_bytes > r->max - r->used)
			return;
		list_remove(&next->link);
		r->used += next->n_bytes;
		next->on_grant(next);
	}
}

static void budget_give_back(struct budget_share *share)
{
	if (list_empty(&share->link))
		share->budget->used -= share->n_bytes;
	else
		list_remove(&share->link);
	share->n_bytes = 0;
}

void budget_ask(struct budget *r, struct budget_share *share, uint64_t n_bytes)
{
	assert(n_bytes <= r->max);
	if (share->budget)
		budget_give_back(share);
	else
		list_init(&share->link);
	share->budget = r;
	share->n_bytes = n_bytes;
	list_add_tail(&r->waiting, &share->link);
	budget_serve(r);
}

void budget_leave(struct budget_share *share)
{
	struct budget *r = share->budget;

	if (!r)
		return;
	budget_give_back(share);
	share->budget = NULL;
	budget_serve(r);
}
