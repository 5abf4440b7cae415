/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "image/content/accounting.h"
#include "image/content/model.h"
#include "image/content/room.h"
#include "image/content/survey.h"

struct usage {
	struct image_store *store;
	image_usage_fn done;
	void *userdata;
};

static uint64_t usage_total(const struct survey *s, enum survey_kind kind)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->entries[i].kind == kind)
			n += s->entries[i].bytes;
	return n;
}

/* The entries of a kind; the caller frees them. */
static struct image_usage_item *usage_items(const struct survey *s, enum survey_kind kind,
					    size_t *ret_n)
{
	struct image_usage_item *items = calloc(s->n + 1, sizeof(*items));

	for (size_t i = 0; items && i < s->n; i++)
		if (s->entries[i].kind == kind)
			items[(*ret_n)++] =
				(struct image_usage_item){ .name = s->entries[i].name,
							   .bytes = s->entries[i].bytes,
							   .changed = s->entries[i].changed };
	return items;
}

/* Own and shared bytes of each image; the caller frees them. */
static struct image_usage_image *usage_images(struct image_store *s, size_t *ret_n)
{
	struct image_usage_image *images;
	struct image *i;
	size_t n = 0;

	list_for_each (i, &s->images, struct image, link)
		n++;
	images = calloc(n + 1, sizeof(*images));
	if (!images)
		return NULL;
	list_for_each (i, &s->images, struct image, link)
		accounting_mark(s, image_record_of(i));
	list_for_each (i, &s->images, struct image, link) {
		struct image_usage_image *u = &images[(*ret_n)++];

		u->image = i;
		accounting_split(s, image_record_of(i), &u->own, &u->shared);
	}
	return images;
}

static void usage_looked(struct survey *s, void *userdata)
{
	struct usage *u = userdata;
	struct image_usage answer = { .free_bytes = s->free_bytes,
				      .reserve = room_reserve(u->store),
				      .incomplete = s->incomplete };
	struct image_usage_item *containers =
		usage_items(s, SURVEY_CONTAINER, &answer.n_containers);
	struct image_usage_item *partials = usage_items(s, SURVEY_PARTIAL, &answer.n_partials);
	struct image_usage_image *images;

	accounting_begin(s);
	images = usage_images(u->store, &answer.n_images);
	answer.images = images;
	answer.containers = containers;
	answer.partials = partials;
	answer.blob_bytes = usage_total(s, SURVEY_BLOB);
	answer.layer_bytes = usage_total(s, SURVEY_LAYER);
	answer.erofs_bytes = usage_total(s, SURVEY_EROFS);
	answer.partial_bytes = usage_total(s, SURVEY_PARTIAL);
	answer.container_bytes = usage_total(s, SURVEY_CONTAINER);
	answer.staging_bytes = usage_total(s, SURVEY_STAGING);
	answer.database_bytes = usage_total(s, SURVEY_DATABASE);
	answer.reclaimable = accounting_reclaimable(s);
	if (!s->err.code && (!containers || !partials || !images))
		(void)error_set(&s->err, -ENOMEM, "tell what the images take");
	u->done(u->userdata, s->err.code ? NULL : &answer, s->err.code ? &s->err : NULL);
	free(containers);
	free(partials);
	free(images);
}

int image_store_usage(struct image_store *s, image_usage_fn done, void *userdata, struct error *err)
{
	struct usage *u = calloc(1, sizeof(*u));

	if (!u)
		return error_set(err, -ENOMEM, "look what the images take");
	*u = (struct usage){ .store = s, .done = done, .userdata = userdata };
	if (survey_start(s, true, usage_looked, u, u) < 0) {
		free(u);
		return error_set(err, -ENOMEM, "look what the images take");
	}
	return 0;
}
