/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of an image's record: a further name, whether it is pinned, and its end. Each holds in
 * memory at once, so that a change that is queued behind it writes it too, and is taken back where
 * the database refuses it.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/content/recording.h"
#include "image/transfer/verdict.h"
#include "store/root.h"

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

/* ---- removing ---- */

struct removal {
	struct trash_watch watch;
	struct image_store *store;
	struct image_record *record; /* that leaves; NULL where only a name goes */
	char id[DIGEST_SIZE];
	char name[REFERENCE_SIZE]; /* that goes, or "" */
	bool released;             /* the content went before its record */
	struct error err;
	void (*done)(void *userdata, const struct error *err);
	void *userdata;
};

static void removal_end(struct removal *m)
{
	if (m->done)
		m->done(m->userdata, m->err.code ? &m->err : NULL);
	free(m);
}

static void removal_gone(struct trash_watch *w)
{
	removal_end(container_of(w, struct removal, watch));
}

/* Takes the record's content away, and ends when it is gone. */
static void removal_release(struct removal *m)
{
	struct image_record *r = TAKE_PTR(m->record);

	/* One of its own, so that the watch does not end in the middle. */
	m->watch.n_pending++;
	if (!m->released)
		image_record_release(m->store, r, &m->watch);
	(void)image_record_free(r);
	if (--m->watch.n_pending == 0)
		removal_end(m);
}

static void removal_undo(struct removal *m)
{
	struct image_record *r = TAKE_PTR(m->record);
	struct image *image = r ? &r->image : image_store_by_id(m->store, m->id);

	if (r) {
		list_remove(&r->image.link);
		list_add_tail(&m->store->images, &r->image.link);
	}
	/* Another image may have taken the name meanwhile. */
	if (image && *m->name && !image_store_by_name(m->store, m->name))
		(void)image_store_give_name(m->store, image, m->name);
	removal_end(m);
}

/*
 * On a full disk the record cannot be dropped, since that writes too. Then the content goes first,
 * which makes room, and the record is tried again; should that fail still, the next start finds an
 * image without layers and drops it.
 */
static void removal_dropped_last(void *userdata, const struct error *err)
{
	struct removal *m = userdata;

	if (err) {
		(void)error_copy(&m->err, err);
		(void)error_wrap(&m->err, err->code,
				 "the image's files are gone, but not its record");
	}
	removal_release(m);
}

static void removal_made_room(struct trash_watch *w)
{
	struct removal *m = container_of(w, struct removal, watch);
	struct error err = ERROR_INIT;

	m->watch.gone = removal_gone;
	/* What a pull has made of it meanwhile has written, or will, over the old record. */
	if (image_store_by_id(m->store, m->id) || recording_is_under_way(m->store, m->id))
		removal_release(m);
	else if (root_store_drop_image(m->store->config.store, m->id, removal_dropped_last, m,
				       &err) < 0)
		removal_dropped_last(m, &err);
}

static void removal_make_room(struct removal *m)
{
	m->released = true;
	m->watch.gone = removal_made_room;
	m->watch.n_pending++;
	image_record_release(m->store, m->record, &m->watch);
	if (--m->watch.n_pending == 0)
		removal_made_room(&m->watch);
}

static void removal_dropped(void *userdata, const struct error *err)
{
	struct removal *m = userdata;

	FAILPOINT_AFTER("image.remove");
	if (!err) {
		removal_release(m);
	} else if (err->code == -ENOSPC) {
		removal_make_room(m);
	} else {
		(void)error_copy(&m->err, err);
		removal_undo(m);
	}
}

static void removal_unnamed(void *userdata, const struct error *err)
{
	struct removal *m = userdata;

	if (!err) {
		removal_end(m);
		return;
	}
	(void)error_copy(&m->err, err);
	removal_undo(m);
}

static int removal_start_name(struct removal *m, struct image *image, struct error *err)
{
	struct root_image view;
	int r;

	image_drop_name(image, m->name);
	recording_overtake(m->store, m->name);
	image_record_view(image_record_of(image), &view);
	r = root_store_put_image(m->store->config.store, &view, NULL, 0, removal_unnamed, m, err);
	if (r < 0)
		(void)image_store_give_name(m->store, image, m->name);
	return r;
}

static int removal_start_image(struct removal *m, struct image *image, struct error *err)
{
	int r;

	r = FAILPOINT("image.remove");
	if (r < 0)
		return error_set(err, r, "remove an image");
	r = root_store_drop_image(m->store->config.store, image->id, removal_dropped, m, err);
	if (r < 0)
		return r;
	m->record = image_record_of(image);
	list_remove(&image->link);
	list_add_tail(&m->store->leaving, &image->link);
	return 0;
}

int image_store_remove(struct image_store *s, const char *reference,
		       void (*done)(void *userdata, const struct error *err), void *userdata,
		       struct error *err)
{
	char name[REFERENCE_SIZE];
	struct image *image = image_store_find_name(s, reference, name, err);
	struct removal *m;
	bool whole;
	int r;

	if (!image)
		return err ? err->code : -ENOENT;
	whole = !*name || strv_len(image->names) <= 1;
	if (whole && image->n_users > 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "image \"%.200s\" is in use by %u container%s", reference,
				    image->n_users, image->n_users == 1 ? "" : "s");
	if (whole && image->pinned)
		return error_refuse(err, ERROR_PRECONDITION,
				    "image \"%.200s\" is pinned (see `nacre image unpin`)",
				    reference);
	m = calloc(1, sizeof(*m));
	if (!m)
		return error_set(err, -ENOMEM, "remove image \"%.200s\"", reference);
	*m = (struct removal){ .watch = { .gone = removal_gone },
			       .store = s,
			       .err = ERROR_INIT,
			       .done = done,
			       .userdata = userdata };
	(void)str_copy(m->id, sizeof(m->id), image->id);
	(void)str_copy(m->name, sizeof(m->name), whole ? "" : name);
	r = whole ? removal_start_image(m, image, err) : removal_start_name(m, image, err);
	if (r < 0)
		free(m);
	return r;
}
