/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/image_inventory.h"

#include <inttypes.h>

#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/rootfs/erofs.h"
#include "image/rootfs/rootfs.h"
#include "image/transfer/import.h"
#include "image/transfer/pull.h"
#include "image/transfer/transfer_job.h"
#include "store/root.h"

static void inventory_image(const struct image_store *s, const struct image_record *r,
			    struct inventory *t)
{
	const struct image *i = &r->image;
	char name[24];

	for (size_t n = 0; n < i->n_layers; n++) {
		(void)str_printf(name, sizeof(name), "%" PRId64, i->layers[n]);
		inventory_must(t, "layer", name, i->id, i->names[0] ?: i->id);
	}
	for (size_t n = 0; r->blobs[n]; n++)
		inventory_must(t, "blob", digest_hex(r->blobs[n]), i->id, i->names[0] ?: i->id);
}

/* What only an import holds so far. */
static void inventory_content(const struct image_store *s, struct inventory *t)
{
	const struct layer *l;
	const struct blob *b;
	size_t pos = 0;
	char name[24];

	for (l = map_next(&s->layers, &pos); l; l = map_next(&s->layers, &pos)) {
		(void)str_printf(name, sizeof(name), "%" PRId64, l->number);
		inventory_may(t, "layer", name);
		inventory_may(t, "erofs", name);
	}
	pos = 0;
	for (b = map_next(&s->blobs, &pos); b; b = map_next(&s->blobs, &pos))
		inventory_may(t, "blob", digest_hex(b->digest));
}

/* ---- what root.db says ---- */

struct inventory_root {
	struct image_store *store;
	struct inventory *inventory;
};

static bool inventory_same_names(const struct image *i, char *const *names)
{
	if (strv_len(i->names) != strv_len(names))
		return false;
	for (size_t n = 0; names && names[n]; n++)
		if (!image_has_name(i, names[n]))
			return false;
	return true;
}

static int inventory_read_image(void *data, const struct root_image *r)
{
	const struct inventory_root *walk = data;
	const struct image *i = image_store_by_id(walk->store, r->id);
	char thing[DIGEST_SIZE + 16];

	(void)str_printf(thing, sizeof(thing), "image %s", r->id);
	inventory_seen(walk->inventory, "record", thing);
	if (i && !inventory_same_names(i, r->names))
		inventory_fault(walk->inventory, "image", i->id, i->names[0] ?: i->id,
				"its record has other names");
	return 0;
}

static int inventory_read_layer(void *data, const struct root_layer *r)
{
	const struct inventory_root *walk = data;
	char thing[40];

	(void)str_printf(thing, sizeof(thing), "layer %" PRId64, r->number);
	inventory_seen(walk->inventory, "record", thing);
	return 0;
}

static void inventory_records_of(const struct image *i, struct inventory *t)
{
	char thing[DIGEST_SIZE + 16];

	(void)str_printf(thing, sizeof(thing), "image %s", i->id);
	inventory_must(t, "record", thing, i->id, i->names[0] ?: i->id);
	for (size_t n = 0; n < i->n_layers; n++) {
		(void)str_printf(thing, sizeof(thing), "layer %" PRId64, i->layers[n]);
		inventory_must(t, "record", thing, i->id, i->names[0] ?: i->id);
	}
}

static int inventory_root(struct image_store *s, struct inventory *t, struct error *err)
{
	struct inventory_root walk = { .store = s, .inventory = t };
	const struct image *i;
	int r;

	if (!root_store_is_idle(s->config.store))
		return 0;
	r = root_store_each_image(s->config.store, inventory_read_image, &walk, err);
	if (r == 0)
		r = root_store_each_layer(s->config.store, inventory_read_layer, &walk, err);
	if (r < 0)
		return r;
	list_for_each (i, &s->images, struct image, link)
		inventory_records_of(i, t);
	return 1;
}

void image_store_inventory_staging(const struct image_store *s, struct inventory *t)
{
	import_inventory(s, t);
	pull_inventory(s, t);
	transfer_job_inventory(s, t);
	trash_inventory(s, t);
	erofs_inventory(s, t);
}

int image_store_inventory(struct image_store *s, struct inventory *t, struct error *err)
{
	struct image *i;

	list_for_each (i, &s->images, struct image, link)
		inventory_image(s, image_record_of(i), t);
	inventory_content(s, t);
	/* What an image without layers lies on. */
	inventory_may(t, "layer", "0");
	image_store_inventory_staging(s, t);
	rootfs_inventory(s, t);
	return inventory_root(s, t, err);
}
