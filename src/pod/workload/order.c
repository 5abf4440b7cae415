/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/order.h"

#include "pod/workload/container.h"

void order_hold(struct workload *w)
{
	bool ordered = false;

	for (size_t i = 0; i < w->n_containers; i++)
		ordered = ordered || w->containers[i]->is_init;
	for (size_t i = 0; i < w->n_containers && ordered; i++)
		w->containers[i]->phase = POD_CONTAINER_CREATED;
}

enum order_step order_look(const struct workload *w, const struct pod_container **ret)
{
	const struct pod_container *last = NULL;
	bool waits = false;

	for (size_t i = 0; i < w->n_containers; i++) {
		const struct pod_container *c = w->containers[i];

		if (pod_container_is_created(c))
			waits = true;
		else if (c->is_init)
			last = c;
	}
	*ret = last;
	if (!waits)
		return ORDER_DONE;
	if (last && !pod_container_has_ended(last))
		return ORDER_WAIT;
	return last && last->status.exit_code != 0 ? ORDER_BROKEN : ORDER_NEXT;
}

const struct pod_container *order_first(const struct workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (w->containers[i]->is_init && pod_container_is_created(w->containers[i]))
			return w->containers[i];
	return NULL;
}

bool order_is_next(const struct pod_container *c, const struct pod_container *first)
{
	return first ? c == first : !c->is_init;
}

void order_skip(struct workload *w, const char *reason)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (pod_container_is_created(w->containers[i]))
			pod_container_skip(w->containers[i], reason);
}
