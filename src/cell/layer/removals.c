/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/layer/removals.h"

#include <errno.h>
#include <stdlib.h>

struct removal {
	struct list link;
	void (*done)(void *userdata);
	void *userdata;
};

int removal_add(struct list *to, void (*done)(void *userdata), void *userdata)
{
	struct removal *r = malloc(sizeof(*r));

	if (!r)
		return -ENOMEM;
	*r = (struct removal){ .done = done, .userdata = userdata };
	list_init(&r->link);
	list_add_tail(to, &r->link);
	return 0;
}

void removals_move(struct list *from, struct list *to)
{
	struct removal *r;

	list_for_each (r, from, struct removal, link) {
		list_remove(&r->link);
		list_add_tail(to, &r->link);
	}
}

void removals_answer(struct list *removals)
{
	struct removal *r;

	for (r = list_first(removals, struct removal, link); r;
	     r = list_first(removals, struct removal, link)) {
		list_remove(&r->link);
		if (r->done)
			r->done(r->userdata);
		free(r);
	}
}

void removals_drop(struct list *removals)
{
	struct removal *r;

	list_for_each (r, removals, struct removal, link) {
		list_remove(&r->link);
		free(r);
	}
}
