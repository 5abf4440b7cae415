/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/events.h"

#include "base/clock.h"

void events_init(struct events *all)
{
	*all = (struct events){ .sequence = 0 };
	list_init(&all->listeners);
}

void events_add(struct events *all, struct event_listener *l)
{
	list_init(&l->link);
	list_add_tail(&all->listeners, &l->link);
}

void events_remove(struct event_listener *l)
{
	list_remove(&l->link);
}

void events_publish(struct events *all, struct event *e)
{
	struct event_listener *l;

	e->sequence = ++all->sequence;
	e->time = clock_real();
	list_for_each (l, &all->listeners, struct event_listener, link)
		l->fn(l, e);
}
