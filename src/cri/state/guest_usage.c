/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/guest_usage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory/array.h"
#include "instance/instance.h"

struct guest_question {
	struct guest_usage *all;
	size_t number;
	struct instance *instance; /* until it was asked */
};

int guest_usage_add(struct guest_usage *g, struct instance *i, size_t *ret)
{
	struct guest_question *q;
	void *room = g->questions;
	int r;

	for (size_t n = 0; n < g->n; n++) {
		if (g->questions[n]->instance != i)
			continue;
		*ret = n;
		return 0;
	}
	r = array_grow(&room, g->n, &g->size, sizeof(*g->questions));
	g->questions = room;
	if (r < 0)
		return r;
	q = malloc(sizeof(*q));
	if (!q)
		return -ENOMEM;
	*q = (struct guest_question){ .all = g, .number = g->n, .instance = i };
	g->questions[g->n] = q;
	*ret = g->n++;
	return 0;
}

static void guest_answered(struct guest_usage *g)
{
	if (--g->n_pending == 0)
		g->ready(g);
}

static void guest_on_usage(void *userdata, const struct peer_group *groups, size_t n,
			   const struct error *err)
{
	const struct guest_question *q = userdata;
	struct guest_usage *g = q->all;

	(void)err;
	for (size_t i = 0; i < n; i++)
		g->told(g, q->number, &groups[i]);
	guest_answered(g);
}

void guest_usage_ask(struct guest_usage *g)
{
	g->n_pending = 1;
	for (size_t n = 0; n < g->n; n++) {
		struct guest_question *q = g->questions[n];
		struct peer *peer = q->instance->state == INSTANCE_READY ? q->instance->peer : NULL;

		q->instance = NULL;
		if (!peer)
			continue;
		g->n_pending++;
		peer->ops->usage(peer, guest_on_usage, q);
	}
	guest_answered(g);
}

void guest_usage_done(struct guest_usage *g)
{
	for (size_t n = 0; n < g->n; n++)
		free(g->questions[n]);
	free(g->questions);
	g->questions = NULL;
	g->n = g->size = 0;
}
