/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. A survey says what each file takes. When it is there, the loop thread picks:
 * images by their records, files by what nobody needs; it counts what goes with each, and begins
 * to remove all of it, before it returns to the loop. Each removal is whole or not at all, by
 * itself: a crash leaves a prune half done, and every image as it was or gone.
 */

#include "image/content/prune.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/accounting.h"
#include "image/content/collect.h"
#include "image/content/model.h"
#include "image/content/survey.h"

struct prune_item {
	struct prune *prune;
	size_t at; /* in prune->items */
	char id[NAME_MAX + 1];
	char **names;
};

struct prune {
	struct list link;
	struct image_store *store;
	struct image_prune_options options;
	image_prune_fn done;
	void *userdata;
	struct trash_watch watch;
	struct image_pruned_item *items;
	struct prune_item *owned; /* what the items point to */
	size_t n, size;
};

static void prune_free(struct prune *p)
{
	list_remove(&p->link);
	for (size_t i = 0; i < p->n; i++)
		strv_free(p->owned[i].names);
	free(p->items);
	free(p->owned);
	free(p);
}

static void prune_end(struct prune *p, const struct error *err)
{
	struct image_pruned answer = { .items = p->items, .n = p->n };

	for (size_t i = 0; i < p->n; i++)
		if (!p->items[i].err.code)
			answer.bytes += p->items[i].bytes;
	p->done(p->userdata, err ? NULL : &answer, err);
	prune_free(p);
}

static void prune_gone(struct trash_watch *w)
{
	prune_end(container_of(w, struct prune, watch), NULL);
}

/* The beginner of the removals holds one of these too, so that it does not end in the middle. */
static void prune_drop(struct prune *p)
{
	if (--p->watch.n_pending == 0)
		prune_gone(&p->watch);
}

/* ---- choosing ---- */

/* NULL where there is no room, which prune_make_room() has seen to. */
static struct prune_item *prune_add(struct prune *p, const char *kind, const char *id,
				    uint64_t bytes)
{
	struct prune_item *o = &p->owned[p->n];

	*o = (struct prune_item){ .prune = p, .at = p->n };
	if (str_copy(o->id, sizeof(o->id), id) < 0)
		return NULL;
	p->items[p->n++] = (struct image_pruned_item){
		.kind = kind, .id = o->id, .bytes = bytes, .err = ERROR_INIT
	};
	return o;
}

static int prune_make_room(struct prune *p, const struct survey *s)
{
	size_t n = s->n;

	for (const struct list *at = p->store->images.next; at != &p->store->images; at = at->next)
		n++;
	p->items = calloc(n + 1, sizeof(*p->items));
	p->owned = calloc(n + 1, sizeof(*p->owned));
	return p->items && p->owned ? 0 : -ENOMEM;
}

static bool prune_wants(const struct prune *p, const struct image *i)
{
	nsec_t now = clock_real(), age = now > i->created ? now - i->created : 0;

	return accounting_is_unused(i, p->options.all) &&
	       age / NSEC_PER_SEC >= p->options.older_than;
}

static int prune_choose(struct prune *p, const struct survey *s)
{
	struct image *i;

	if (prune_make_room(p, s) < 0)
		return -ENOMEM;
	accounting_begin(s);
	list_for_each (i, &p->store->images, struct image, link)
		if (prune_wants(p, i))
			accounting_mark(p->store, image_record_of(i));
	list_for_each (i, &p->store->images, struct image, link) {
		struct prune_item *item;

		if (!prune_wants(p, i))
			continue;
		item = prune_add(p, "image", i->id, accounting_freed(p->store, image_record_of(i)));
		if (!item)
			continue;
		item->names = strv_copy(i->names);
		if (!item->names)
			return -ENOMEM;
		p->items[item->at].names = item->names;
	}
	return 0;
}

/* ---- removing ---- */

static void prune_removed(void *userdata, const struct error *err)
{
	struct prune_item *item = userdata;
	struct prune *p = item->prune;

	if (err)
		p->items[item->at].err = *err;
	else
		FAILPOINT_AFTER("image.prune");
	prune_drop(p);
}

static void prune_image(struct prune *p, struct prune_item *item)
{
	struct error *err = &p->items[item->at].err;
	int r;

	p->watch.n_pending++;
	r = FAILPOINT("image.prune");
	if (r < 0)
		(void)error_set(err, r, "prune an image");
	else
		r = image_store_remove(p->store, item->id, prune_removed, item, err);
	if (r < 0)
		prune_drop(p);
}

static void prune_files(struct prune *p, const struct survey *s)
{
	int64_t age = (int64_t)p->options.older_than;

	for (size_t i = 0; i < s->n; i++) {
		const struct survey_entry *e = &s->entries[i];
		bool gone = p->options.dry_run ? survey_is_garbage(s, e, age)
					       : collect_entry(s, e, age, &p->watch);

		if (gone)
			(void)prune_add(p, survey_kind_word(e->kind), e->name, e->bytes);
	}
}

static void prune_looked(struct survey *s, void *userdata)
{
	struct prune *p = userdata;
	size_t n_images;

	if (!s->err.code && prune_choose(p, s) < 0)
		(void)error_set(&s->err, -ENOMEM, "choose what is pruned");
	if (s->err.code) {
		prune_end(p, &s->err);
		return;
	}
	n_images = p->n;
	p->watch = (struct trash_watch){ .gone = prune_gone, .n_pending = 1 };
	/* Files first: what the images leave behind from here on is theirs. */
	prune_files(p, s);
	for (size_t i = 0; i < n_images && !p->options.dry_run; i++)
		prune_image(p, &p->owned[i]);
	prune_drop(p);
}

int image_store_prune(struct image_store *s, const struct image_prune_options *o,
		      image_prune_fn done, void *userdata, struct error *err)
{
	struct prune *p = calloc(1, sizeof(*p));

	if (!p)
		return error_set(err, -ENOMEM, "prune the images");
	*p = (struct prune){ .store = s, .options = *o, .done = done, .userdata = userdata };
	list_init(&p->link);
	if (survey_start(s, true, prune_looked, p, NULL) < 0) {
		prune_free(p);
		return error_set(err, -ENOMEM, "prune the images");
	}
	list_add_tail(&s->prunes, &p->link);
	return 0;
}

void prune_free_all(struct image_store *s)
{
	while (!list_empty(&s->prunes))
		prune_free(list_first(&s->prunes, struct prune, link));
}
