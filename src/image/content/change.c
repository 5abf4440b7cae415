/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of an image's record: a further name, and whether it is pinned. Each holds in memory at
 * once, so that a change that is queued behind it writes it too, and is taken back where the
 * database refuses it.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/content/recording.h"
#include "image/transfer/verdict.h"
#include "store/root.h"
#include "wire/name/reference.h"

struct change {
	struct image_store *store;
	char id[DIGEST_SIZE];
	char name[REFERENCE_SIZE]; /* that it was given; "": it was pinned, or not */
	char loser[DIGEST_SIZE];   /* the image that had the name; "": none */
	bool pinned;               /* before */
	image_changed_fn done;
	void *userdata;
};

static void change_undo(struct change *c, struct image *image)
{
	struct image *loser = *c->loser ? image_store_by_id(c->store, c->loser) : NULL;

	if (!*c->name) {
		image->pinned = c->pinned;
		return;
	}
	image_drop_name(image, c->name);
	if (loser)
		(void)image_store_give_name(c->store, loser, c->name);
}

static void change_written(void *userdata, const struct error *err)
{
	struct change *c = userdata;
	struct image *image = image_store_by_id(c->store, c->id);

	if (err && image)
		change_undo(c, image);
	else
		FAILPOINT_AFTER("image.change");
	if (c->done)
		c->done(c->userdata, err);
	free(c);
}

static int change_write(struct change *c, struct image *image, struct error *err)
{
	struct root_image view;
	int r;

	r = FAILPOINT("image.change");
	if (r < 0)
		return error_set(err, r, "change an image");
	image_record_view(image_record_of(image), &view);
	return root_store_put_image(c->store->config.store, &view, NULL, 0, change_written, c, err);
}

static struct change *change_new(struct image_store *s, const struct image *image,
				 image_changed_fn done, void *userdata)
{
	struct change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct change){
		.store = s, .pinned = image->pinned, .done = done, .userdata = userdata
	};
	(void)str_copy(c->id, sizeof(c->id), image->id);
	return c;
}

static int change_start(struct change *c, struct image *image, struct error *err)
{
	int r;

	r = change_write(c, image, err);
	if (r < 0) {
		change_undo(c, image);
		free(c);
	}
	return r;
}

int image_store_tag(struct image_store *s, const char *reference, const char *name,
		    image_changed_fn done, void *userdata, struct error *err)
{
	const struct image *loser;
	struct reference ref;
	struct image *image;
	struct change *c;
	int r;

	r = reference_parse(&ref, name, err);
	if (r < 0)
		return r;
	if (*ref.digest)
		return error_refuse(err, ERROR_INVALID,
				    "the name of an image cannot have a digest: \"%.200s\"", name);
	image = image_store_find(s, reference, err);
	if (!image)
		return err->code;
	c = change_new(s, image, done, userdata);
	if (!c)
		return error_set(err, -ENOMEM, "name an image");
	reference_format(&ref, c->name);
	loser = image_store_by_name(s, c->name);
	if (loser && loser != image)
		(void)str_copy(c->loser, sizeof(c->loser), loser->id);
	if (loser != image)
		verdicts_drop(image->verdicts, c->name);
	recording_overtake(s, c->name);
	if (loser == image)
		c->name[0] = '\0';
	else if (image_store_give_name(s, image, c->name) < 0) {
		free(c);
		return error_set(err, -ENOMEM, "name an image");
	}
	return change_start(c, image, err);
}

int image_store_pin(struct image_store *s, const char *reference, bool pinned,
		    image_changed_fn done, void *userdata, struct error *err)
{
	struct image *image = image_store_find(s, reference, err);
	struct change *c;

	if (!image)
		return err->code;
	c = change_new(s, image, done, userdata);
	if (!c)
		return error_set(err, -ENOMEM, "pin an image");
	image->pinned = pinned;
	return change_start(c, image, err);
}
