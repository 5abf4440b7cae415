/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tally.h"

#include <inttypes.h>

#include "base/str.h"
#include "base/tally.h"
#include "image/import.h"
#include "image/model.h"
#include "image/rootfs.h"

static void tally_image(const struct image_store *s, const struct image_record *r, struct tally *t)
{
	const struct image *i = &r->image;
	char name[24];

	for (size_t n = 0; n < i->n_layers; n++) {
		(void)str_printf(name, sizeof(name), "%" PRId64, i->layers[n]);
		tally_must(t, "layer", name, i->id, i->names[0] ?: i->id);
	}
	for (size_t n = 0; r->blobs[n]; n++)
		tally_must(t, "blob", digest_hex(r->blobs[n]), i->id, i->names[0] ?: i->id);
}

/* What only an import holds so far. */
static void tally_content(const struct image_store *s, struct tally *t)
{
	const struct layer *l;
	const struct blob *b;
	size_t pos = 0;
	char name[24];

	for (l = map_next(&s->layers, &pos); l; l = map_next(&s->layers, &pos)) {
		(void)str_printf(name, sizeof(name), "%" PRId64, l->number);
		tally_may(t, "layer", name);
	}
	pos = 0;
	for (b = map_next(&s->blobs, &pos); b; b = map_next(&s->blobs, &pos))
		tally_may(t, "blob", digest_hex(b->digest));
}

void image_store_tally(struct image_store *s, struct tally *t)
{
	struct image *i;

	list_for_each (i, &s->images, struct image, link)
		tally_image(s, image_record_of(i), t);
	tally_content(s, t);
	/* What an image without layers lies on. */
	tally_may(t, "layer", "0");
	import_tally(s, t);
	trash_tally(s, t);
	rootfs_tally(s, t);
}
