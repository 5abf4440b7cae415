/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_LIST_H
#define NACRE_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

/*
 * Doubly linked list of members embedded in their owners. A head and an unlinked member point to
 * themselves, so list_remove() may be called twice.
 */
struct list {
	struct list *prev, *next;
};

#define LIST_INIT(l)                                                                               \
	{                                                                                          \
		.prev = &(l), .next = &(l)                                                         \
	}

static inline void list_init(struct list *l)
{
	l->prev = l;
	l->next = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *member)
{
	assert(list_empty(member));
	member->prev = head->prev;
	member->next = head;
	head->prev->next = member;
	head->prev = member;
}

static inline void list_remove(struct list *member)
{
	member->prev->next = member->next;
	member->next->prev = member->prev;
	list_init(member);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first(head, type, member)                                                             \
	(list_empty(head) ? NULL : list_entry((head)->next, type, member))

/* The body may remove the current entry, but no other. */
#define list_for_each(it, head, type, member)                                                      \
	for (struct list *it##_at_ = (head)->next, *it##_next_ = it##_at_->next;                   \
	     it##_at_ != (head) && ((it) = list_entry(it##_at_, type, member), true);              \
	     it##_at_ = it##_next_, it##_next_ = it##_at_->next)

#endif
