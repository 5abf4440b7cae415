/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/accounting.h"

#include "base/text/parse.h"
#include "base/text/str.h"

static void accounting_clear(struct image_store *s)
{
	struct layer *l;
	struct blob *b;
	size_t pos = 0;

	for (l = map_next(&s->layers, &pos); l; l = map_next(&s->layers, &pos)) {
		l->n_marks = 0;
		l->bytes = 0;
	}
	pos = 0;
	for (b = map_next(&s->blobs, &pos); b; b = map_next(&s->blobs, &pos)) {
		b->n_marks = 0;
		b->bytes = 0;
	}
}

static void accounting_entry(struct image_store *s, const struct survey_entry *e)
{
	char digest[DIGEST_SIZE];
	uint64_t number;
	struct layer *l = NULL;
	struct blob *b = NULL;

	if (e->kind == SURVEY_BLOB && str_printf(digest, sizeof(digest), "sha256:%s", e->name) >= 0)
		b = map_get(&s->blobs, digest);
	/* The EROFS file of a chain is named after its highest layer, and goes with that. */
	if ((e->kind == SURVEY_LAYER || e->kind == SURVEY_EROFS) &&
	    parse_u64(e->name, 1, INT64_MAX, &number) == 0)
		l = layer_by_number(s, (int64_t)number);
	if (b)
		b->bytes += e->bytes;
	if (l)
		l->bytes += e->bytes;
}

void accounting_begin(const struct survey *s)
{
	accounting_clear(s->store);
	for (size_t i = 0; i < s->n; i++)
		accounting_entry(s->store, &s->entries[i]);
}

void accounting_mark(struct image_store *s, const struct image_record *r)
{
	for (size_t i = 0; i < r->image.n_layers; i++)
		layer_by_number(s, r->image.layers[i])->n_marks++;
	for (size_t i = 0; r->blobs[i]; i++)
		((struct blob *)map_get(&s->blobs, r->blobs[i]))->n_marks++;
}

void accounting_split(struct image_store *s, const struct image_record *r, uint64_t *ret_own,
		      uint64_t *ret_shared)
{
	for (size_t i = 0; i < r->image.n_layers; i++) {
		const struct layer *l = layer_by_number(s, r->image.layers[i]);

		*(l->n_marks > 1 ? ret_shared : ret_own) += l->bytes;
	}
	for (size_t i = 0; r->blobs[i]; i++) {
		const struct blob *b = map_get(&s->blobs, r->blobs[i]);

		*(b->n_marks > 1 ? ret_shared : ret_own) += b->bytes;
	}
}

static uint64_t accounting_take(uint64_t *bytes, unsigned n_holds, unsigned n_marks)
{
	uint64_t n = n_holds <= n_marks ? *bytes : 0;

	if (n)
		*bytes = 0;
	return n;
}

uint64_t accounting_freed(struct image_store *s, const struct image_record *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->image.n_layers; i++) {
		struct layer *l = layer_by_number(s, r->image.layers[i]);

		n += accounting_take(&l->bytes, l->n_holds, l->n_marks);
	}
	for (size_t i = 0; r->blobs[i]; i++) {
		struct blob *b = map_get(&s->blobs, r->blobs[i]);

		n += accounting_take(&b->bytes, b->n_holds, b->n_marks);
	}
	return n;
}

bool accounting_is_unused(const struct image *i, bool all)
{
	return (all || !i->names[0]) && i->n_users == 0 && !i->pinned;
}

uint64_t accounting_reclaimable(const struct survey *s)
{
	uint64_t n = 0;
	struct image *i;

	accounting_begin(s);
	list_for_each (i, &s->store->images, struct image, link)
		if (accounting_is_unused(i, true))
			accounting_mark(s->store, image_record_of(i));
	list_for_each (i, &s->store->images, struct image, link)
		if (accounting_is_unused(i, true))
			n += accounting_freed(s->store, image_record_of(i));
	for (size_t k = 0; k < s->n; k++)
		if (survey_is_garbage(s, &s->entries[k], 0))
			n += s->entries[k].bytes;
	accounting_begin(s);
	return n;
}
