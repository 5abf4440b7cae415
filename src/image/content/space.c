/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Of a store, only containers and what is under way change in size. A layer's tree, which may have
 * a hundred thousand files, is walked when it is first counted, and the result is kept with it.
 * What is left are flat directories (blobs, EROFS files, partial downloads) and what containers
 * wrote.
 *
 * At most two counts exist: the one that runs, and one behind it, which whoever asks meanwhile
 * waits for. So an answer is never older than its question, and no number of callers makes more
 * work than one after the other.
 */

#include "image/content/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/measure.h"
#include "image/content/model.h"

struct space_layer {
	int64_t number;
	struct measure measure;
	bool counted;
};

struct space_wait {
	struct list link;
	image_space_fn done;
	void *userdata;
};

struct space {
	struct list link;
	struct image_store *store;
	struct pool_work work;
	struct list waits;
	struct space_layer *layers; /* that were not counted before */
	size_t n_layers;
	struct measure images, containers;
	uint64_t at;
	int result;
};

static void space_free(struct space *c)
{
	struct space_wait *w;

	list_remove(&c->link);
	list_for_each (w, &c->waits, struct space_wait, link) {
		list_remove(&w->link);
		free(w);
	}
	free(c->layers);
	free(c);
}

void space_free_all(struct image_store *s)
{
	while (!list_empty(&s->spaces))
		space_free(list_first(&s->spaces, struct space, link));
}

/* ---- on the pool ---- */

static int space_tree(struct measure *m, int dir_fd, const char *name)
{
	int r = measure_tree(m, dir_fd, name);

	return r == -ENOENT ? 0 : r;
}

static int space_layer_count(const struct space *c, struct space_layer *l)
{
	char name[24];
	int r;

	(void)str_printf(name, sizeof(name), "%" PRId64, l->number);
	r = measure_tree(&l->measure, c->store->layers_fd, name);
	l->counted = r == 0 && !l->measure.incomplete;
	return r == -ENOMEM ? r : 0;
}

static void space_run(struct pool_work *work)
{
	struct space *c = container_of(work, struct space, work);
	static const char *const flat[] = { "blobs", "erofs", "partial", "staging" };
	int r = 0;

	for (size_t i = 0; i < c->n_layers && r == 0; i++)
		r = space_layer_count(c, &c->layers[i]);
	for (size_t i = 0; i < ARRAY_SIZE(flat) && r == 0; i++)
		r = space_tree(&c->images, c->store->config.root_fd, flat[i]);
	if (r == 0)
		r = space_tree(&c->containers, c->store->config.root_fd, "containers");
	c->result = r;
}

/* ---- on the loop thread ---- */

static void space_keep(const struct space *c)
{
	for (size_t i = 0; i < c->n_layers; i++) {
		const struct space_layer *from = &c->layers[i];
		struct layer *l = layer_by_number(c->store, from->number);

		if (!l || !from->counted)
			continue;
		l->measured = true;
		l->space = (struct image_space_part){ from->measure.bytes, from->measure.n_inodes };
	}
}

static void space_add(struct image_space_part *to, const struct image_space_part *more)
{
	to->bytes += more->bytes;
	to->n_inodes += more->n_inodes;
}

static struct image_space space_sum(const struct space *c)
{
	struct image_space s = { .images = { c->images.bytes, c->images.n_inodes },
				 .containers = { c->containers.bytes, c->containers.n_inodes },
				 .at = c->at };
	const struct layer *l;
	size_t pos = 0;

	for (l = map_next(&c->store->layers, &pos); l; l = map_next(&c->store->layers, &pos))
		if (l->measured)
			space_add(&s.images, &l->space);
	return s;
}

static int space_begin(struct space *c)
{
	struct image_store *s = c->store;
	const struct layer *l;
	size_t pos = 0;

	c->layers = calloc(s->layers.n + 1, sizeof(*c->layers));
	if (!c->layers)
		return -ENOMEM;
	for (l = map_next(&s->layers, &pos); l; l = map_next(&s->layers, &pos))
		if (!l->measured)
			c->layers[c->n_layers++].number = l->number;
	c->at = clock_real();
	pool_submit(s->config.pool, &c->work);
	return 0;
}

/* Tells all who wait, and frees it. */
static void space_end(struct space *c)
{
	struct image_space sum = space_sum(c);
	struct error err = ERROR_INIT;
	struct space_wait *w;

	list_remove(&c->link);
	if (c->result < 0)
		(void)error_set(&err, c->result, "count what the images take");
	list_for_each (w, &c->waits, struct space_wait, link) {
		list_remove(&w->link);
		w->done(w->userdata, err.code ? NULL : &sum, err.code ? &err : NULL);
		free(w);
	}
	space_free(c);
}

static void space_ran(struct pool_work *work)
{
	struct space *c = container_of(work, struct space, work);
	struct image_store *s = c->store;
	struct space *next;
	int r;

	space_keep(c);
	space_end(c);
	for (;;) {
		next = list_first(&s->spaces, struct space, link);
		if (!next || next->work.busy)
			return;
		r = space_begin(next);
		/* Its thread sets the result from here on. */
		if (r == 0)
			return;
		next->result = r;
		space_end(next);
	}
}

static struct space *space_new(struct image_store *s)
{
	struct space *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct space){ .store = s, .work = { .run = space_run, .done = space_ran } };
	list_init(&c->waits);
	list_init(&c->link);
	list_add_tail(&s->spaces, &c->link);
	return c;
}

/* The one that has not begun; NULL where there is none. */
static struct space *space_waiting(const struct image_store *s)
{
	struct space *c;

	list_for_each (c, &s->spaces, struct space, link)
		if (!c->work.busy)
			return c;
	return NULL;
}

int image_store_space(struct image_store *s, image_space_fn done, void *userdata, struct error *err)
{
	struct space_wait *w = calloc(1, sizeof(*w));
	bool idle = list_empty(&s->spaces);
	struct space *c = space_waiting(s) ?: space_new(s);

	if (!w || !c || (idle && space_begin(c) < 0)) {
		free(w);
		if (c && list_empty(&c->waits))
			space_free(c);
		return error_set(err, -ENOMEM, "count what the images take");
	}
	*w = (struct space_wait){ .done = done, .userdata = userdata };
	list_init(&w->link);
	list_add_tail(&c->waits, &w->link);
	return 0;
}
