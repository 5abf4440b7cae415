/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/list.h"

#include "unit.h"

struct member {
	int number;
	struct list link;
};

static void walks_in_order(void)
{
	struct list head = LIST_INIT(head);
	struct member m[5];
	const struct member *it;
	int sum = 0, n = 0;

	CHECK(list_empty(&head));
	CHECK(!list_first(&head, struct member, link));
	for (int i = 0; i < 5; i++) {
		m[i].number = i;
		list_init(&m[i].link);
		list_add_tail(&head, &m[i].link);
	}
	CHECK(list_first(&head, struct member, link) == &m[0]);
	list_for_each (it, &head, struct member, link) {
		CHECK_INT(it->number, n);
		n++;
	}
	CHECK_INT(n, 5);
	list_remove(&m[2].link);
	list_remove(&m[2].link);
	CHECK(list_empty(&m[2].link));
	list_for_each (it, &head, struct member, link)
		sum += it->number;
	CHECK_INT(sum, 8);
}

static void current_may_go(void)
{
	struct list head = LIST_INIT(head);
	struct member *it;
	int n = 0;

	for (int i = 0; i < 4; i++) {
		it = calloc(1, sizeof(*it));
		list_init(&it->link);
		list_add_tail(&head, &it->link);
	}
	list_for_each (it, &head, struct member, link) {
		list_remove(&it->link);
		free(it);
		n++;
	}
	CHECK_INT(n, 4);
	CHECK(list_empty(&head));
}

UNIT_MAIN({ "walks in order", walks_in_order }, { "the current entry may go", current_may_go })
