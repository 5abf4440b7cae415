/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/budget.h"

#include "base/macros.h"
#include "unit.h"

struct somebody {
	struct budget_share share;
	unsigned n_grants;
};

static void granted(struct budget_share *share)
{
	container_of(share, struct somebody, share)->n_grants++;
}

#define SOMEBODY                                                                                   \
	{                                                                                          \
		.share = {.on_grant = granted }                                                    \
	}

static void goes_to_all_that_it_is_enough_for(void)
{
	struct somebody a = SOMEBODY, b = SOMEBODY, c = SOMEBODY;
	struct budget r;

	budget_init(&r, 10);
	budget_ask(&r, &a.share, 4);
	budget_ask(&r, &b.share, 6);
	budget_ask(&r, &c.share, 1);
	CHECK_INT(a.n_grants, 1);
	CHECK_INT(b.n_grants, 1);
	CHECK_INT(c.n_grants, 0);
	budget_leave(&a.share);
	CHECK_INT(c.n_grants, 1);
	budget_leave(&b.share);
	budget_leave(&c.share);
	CHECK_INT(r.used, 0);
}

static void passes_nobody_over(void)
{
	struct somebody a = SOMEBODY, big = SOMEBODY, small = SOMEBODY;
	struct budget r;

	budget_init(&r, 10);
	budget_ask(&r, &a.share, 5);
	budget_ask(&r, &big.share, 10);
	budget_ask(&r, &small.share, 1);
	CHECK_INT(big.n_grants + small.n_grants, 0);
	budget_leave(&a.share);
	CHECK_INT(big.n_grants, 1);
	CHECK_INT(small.n_grants, 0);
	budget_leave(&big.share);
	CHECK_INT(small.n_grants, 1);
	CHECK_INT(r.used, 1);
}

/* Two who have some and want more do not wait for each other. */
static void what_one_has_goes_back_first(void)
{
	struct somebody a = SOMEBODY, b = SOMEBODY;
	struct budget r;

	budget_init(&r, 10);
	budget_ask(&r, &a.share, 5);
	budget_ask(&r, &b.share, 5);
	budget_ask(&r, &a.share, 10);
	CHECK_INT(a.n_grants, 1);
	budget_ask(&r, &b.share, 10);
	CHECK_INT(a.n_grants, 2);
	CHECK_INT(b.n_grants, 1);
	budget_leave(&a.share);
	CHECK_INT(b.n_grants, 2);
	CHECK_INT(r.used, 10);
}

static void who_leaves_waits_no_more(void)
{
	struct somebody a = SOMEBODY, b = SOMEBODY, c = SOMEBODY;
	struct budget r;

	budget_init(&r, 10);
	budget_leave(&c.share);
	budget_ask(&r, &a.share, 10);
	budget_ask(&r, &b.share, 10);
	budget_ask(&r, &c.share, 1);
	budget_leave(&b.share);
	budget_leave(&b.share);
	CHECK_INT(c.n_grants, 0);
	budget_leave(&a.share);
	CHECK_INT(b.n_grants, 0);
	CHECK_INT(c.n_grants, 1);
}

UNIT_MAIN({ "goes to all that it is enough for", goes_to_all_that_it_is_enough_for },
	  { "passes nobody over", passes_nobody_over },
	  { "what one has goes back first", what_one_has_goes_back_first },
	  { "who leaves waits no more", who_leaves_waits_no_more })
