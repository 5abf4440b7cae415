/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/recording.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/model.h"
#include "image/transfer/incoming.h"
#include "image/transfer/verdict.h"
#include "store/root.h"
#include "wire/name/reference.h"

#define RECORDING_ORIGINS_MAX 64 /* of an image */

/*
 * Theory of operation: names change in the database when a write of an image is queued, and in
 * memory when it is done. Between the two others may say otherwise, and a write says all names of
 * its image, also those that it only repeats. So what becomes true in memory is only what a
 * recording was asked to add, unless it was overtaken; and where a write has said anything else
 * than memory does then, what memory has is written behind it.
 */

struct recording_image {
	struct recording *recording;
	struct list link; /* of the store, while its write is under way */
	char id[DIGEST_SIZE];
	char **names, **origins, **verdicts; /* all that the write says */
	char **adds;                         /* of the names: those that are new */
	char *verdict;                       /* the one of these that is new, or NULL */
	/* A new one, that holds its content; NULL where the image was there, which only gets the
	 * names. */
	struct image_record *record;
};

static void recording_image_free(struct recording_image *r)
{
	if (r->record) {
		image_record_release(r->recording->store, r->record, NULL);
		(void)image_record_free(r->record);
	}
	list_remove(&r->link);
	strv_free(r->names);
	strv_free(r->adds);
	strv_free(r->origins);
	strv_free(r->verdicts);
	free(r->verdict);
	free(r);
}

static int recording_add(char ***list, const char *word)
{
	for (size_t i = 0; (*list)[i]; i++)
		if (str_eq((*list)[i], word))
			return 0;
	return strv_add(list, word);
}

static bool recording_has(char *const *list, const char *word)
{
	for (; *list; list++)
		if (str_eq(*list, word))
			return true;
	return false;
}

void recording_overtake(struct image_store *s, const char *name)
{
	struct recording_image *r;

	list_for_each (r, &s->recordings, struct recording_image, link) {
		size_t n = 0;

		for (size_t i = 0; r->adds[i]; i++) {
			if (str_eq(r->adds[i], name))
				free(r->adds[i]);
			else
				r->adds[n++] = r->adds[i];
		}
		r->adds[n] = NULL;
	}
}

bool recording_is_under_way(const struct image_store *s, const char *id)
{
	const struct recording_image *r;

	list_for_each (r, &s->recordings, struct recording_image, link) {
		if (r->record && str_eq(r->id, id))
			return true;
	}
	return false;
}

static bool recording_same(char *const *a, char *const *b)
{
	while (*a && *b && str_eq(*a, *b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

static bool recording_same_set(char *const *a, char *const *b)
{
	size_t n = 0;

	for (; a[n]; n++)
		if (!recording_has(b, a[n]))
			return false;
	return n == strv_len(b);
}

static void recording_put_again(struct image_store *s, struct image *image)
{
	struct root_image view;

	image_record_view(image_record_of(image), &view);
	(void)root_store_put_image(s->config.store, &view, NULL, 0, NULL, NULL, NULL);
}

/* Names that were written to be this image's, and are another's: first it loses them, then they get
 * them back. */
static void recording_repair(struct recording_image *r, struct image *image)
{
	struct image_store *s = r->recording->store;

	recording_put_again(s, image);
	for (size_t i = 0; r->names[i]; i++) {
		struct image *holder = image_store_by_name(s, r->names[i]);

		if (holder && holder != image)
			recording_put_again(s, holder);
	}
}

/* What the database has just been told becomes true in memory. */
static void recording_apply(struct recording_image *r)
{
	struct image_store *s = r->recording->store;
	struct image *image = image_store_by_id(s, r->id);
	bool raced = image != NULL;

	/* Removed since it was queued: the import says so at its end. */
	if (!image && !r->record)
		return;
	if (!image) {
		image = &TAKE_PTR(r->record)->image;
		for (size_t i = 0; r->names[i]; i++)
			if (!recording_has(r->adds, r->names[i]))
				image_drop_name(image, r->names[i]);
		list_add_tail(&s->images, &image->link);
	}
	for (size_t i = 0; r->adds[i]; i++) {
		if (!image_has_name(image, r->adds[i]))
			verdicts_drop(image->verdicts, r->adds[i]);
		(void)image_store_give_name(s, image, r->adds[i]);
	}
	if (r->verdict)
		(void)verdicts_put(&image->verdicts, r->verdict);
	for (size_t i = 0; r->origins[i]; i++)
		(void)recording_add(&image->origins, r->origins[i]);
	/* Where another one of the same image was first, its record is the one that stays. */
	if ((raced && r->record) || !recording_same_set(image->names, r->names) ||
	    (raced && (strv_len(image->origins) != strv_len(r->origins) ||
		       !recording_same(image->verdicts, r->verdicts))))
		recording_repair(r, image);
}

static void recording_image_done(void *userdata, const struct error *err)
{
	struct recording_image *r = userdata;
	struct recording *i = r->recording;
	bool fresh = r->record != NULL;

	if (!err)
		recording_apply(r);
	else if (!i->err.code)
		i->err = *err;
	/* A cancel wants it gone, also when that came too late. */
	if (!err && i->cancelled && fresh && !r->record)
		i->unwanted(i, r->id);
	recording_image_free(r);
	if (--i->n_pending == 0)
		i->done(i);
}

/* The names that the image shall have: those it has, and the new ones. */
static int recording_names(struct recording_image *r, const struct incoming_image *in)
{
	const struct recording *i = r->recording;
	const struct image *known = image_store_by_id(i->store, in->id);
	char name[REFERENCE_SIZE];
	char *one[] = { name, NULL };
	char *const *more = *i->name ? one : in->words[FETCH_NAME];

	r->names = strv_copy(known ? known->names : NULL);
	r->adds = strv_copy(NULL);
	if (!r->names || !r->adds || str_copy(name, sizeof(name), i->name) < 0)
		return -ENOMEM;
	for (; more && *more; more++)
		if (recording_add(&r->names, *more) < 0 || recording_add(&r->adds, *more) < 0)
			return -ENOMEM;
	return 0;
}

/* Likewise. The oldest go where there are too many. */
static int recording_origins(struct recording *i, const struct incoming_image *in, char ***ret)
{
	const struct image *known = image_store_by_id(i->store, in->id);
	char *const *from = known ? known->origins : NULL;
	_cleanup_strv_ char **origins = NULL;

	if (from && strv_len(from) >= RECORDING_ORIGINS_MAX)
		from += strv_len(from) - RECORDING_ORIGINS_MAX + 1;
	origins = strv_copy(from);
	if (!origins || (*i->origin && recording_add(&origins, i->origin) < 0))
		return -ENOMEM;
	*ret = TAKE_PTR(origins);
	return 0;
}

/* Likewise; what was said of a name that it has lost is not said of it now. */
static int recording_verdicts(struct recording_image *r)
{
	const struct image *known = image_store_by_id(r->recording->store, r->id);

	r->verdicts = strv_copy(known ? known->verdicts : NULL);
	if (!r->verdicts)
		return -ENOMEM;
	if (known)
		verdicts_keep(r->verdicts, known->names);
	if (!r->recording->verdict)
		return 0;
	r->verdict = verdict_line(r->recording->verdict);
	return r->verdict ? verdicts_put(&r->verdicts, r->verdict) : -ENOMEM;
}

static int recording_blobs(const struct incoming_image *in, char ***ret)
{
	_cleanup_strv_ char **blobs = NULL;
	struct incoming_layer *l;

	if (strv_add(&blobs, in->id) < 0 || strv_add(&blobs, in->digest) < 0)
		return -ENOMEM;
	list_for_each (l, &in->layers, struct incoming_layer, link) {
		bool there = false;

		for (size_t k = 0; blobs[k]; k++)
			there = there || str_eq(blobs[k], l->digest);
		if (!there && strv_add(&blobs, l->digest) < 0)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(blobs);
	return 0;
}

static struct image_record *recording_record(const struct recording_image *r,
					     const struct incoming_image *in)
{
	const struct recording *i = r->recording;
	_cleanup_strv_ char **blobs = NULL;
	int64_t numbers[FETCH_LAYERS_MAX];
	struct incoming_layer *l;
	size_t n = 0;

	if (recording_blobs(in, &blobs) < 0)
		return NULL;
	list_for_each (l, &in->layers, struct incoming_layer, link) {
		numbers[n++] = l->layer->number;
	}
	return image_record_new(&(struct root_image){
		.id = in->id,
		.digest = in->digest,
		.size = incoming_size(i->incoming, in),
		.created = clock_real(),
		.source = i->source,
		.user = in->user,
		.working_dir = in->working_dir,
		.stop_signal = in->stop_signal,
		.env = in->words[FETCH_ENV],
		.entrypoint = in->words[FETCH_ENTRYPOINT],
		.cmd = in->words[FETCH_CMD],
		.volumes = in->words[FETCH_VOLUME],
		.health = in->words[FETCH_HEALTH],
		.names = r->names,
		.blobs = blobs,
		.origins = r->origins,
		.verdicts = r->verdicts,
		.layers = numbers,
		.n_layers = n,
	});
}

static int recording_put(struct recording_image *r, const struct incoming_image *in,
			 struct error *err)
{
	struct image_store *s = r->recording->store;
	struct image *known = image_store_by_id(s, in->id);
	struct root_layer layers[FETCH_LAYERS_MAX];
	struct incoming_layer *l;
	struct root_image view;
	size_t n = 0;

	list_for_each (l, &in->layers, struct incoming_layer, link) {
		layers[n++] = (struct root_layer){ .number = l->layer->number,
						   .parent = l->layer->parent,
						   .diff_id = l->layer->diff_id,
						   .size = l->layer->size };
	}
	image_record_view(r->record ? r->record : image_record_of(known), &view);
	view.names = r->names;
	view.origins = r->origins;
	view.verdicts = r->verdicts;
	return root_store_put_image(s->config.store, &view, layers, n, recording_image_done, r,
				    err);
}

static int recording_image_new(struct recording *i, const struct incoming_image *in,
			       struct recording_image **ret)
{
	struct recording_image *r = calloc(1, sizeof(*r));
	struct image_record *record;

	if (!r)
		return -ENOMEM;
	r->recording = i;
	list_init(&r->link);
	(void)str_copy(r->id, sizeof(r->id), in->id);
	if (recording_names(r, in) < 0 || recording_origins(i, in, &r->origins) < 0 ||
	    recording_verdicts(r) < 0) {
		recording_image_free(r);
		return -ENOMEM;
	}
	*ret = r;
	if (image_store_by_id(i->store, in->id))
		return 0;
	record = recording_record(r, in);
	if (record && image_record_hold(i->store, record) == 0) {
		r->record = record;
		return 0;
	}
	(void)image_record_free(record);
	recording_image_free(r);
	return -ENOMEM;
}

static int recording_one(struct recording *i, const struct incoming_image *in, struct error *err)
{
	struct recording_image *record = NULL;
	int r;

	r = FAILPOINT("import.record");
	if (r == 0)
		r = recording_image_new(i, in, &record);
	if (r < 0)
		return error_set(err, r, "record image %s", in->id);
	r = recording_put(record, in, err);
	if (r < 0) {
		recording_image_free(record);
		return r;
	}
	list_add_tail(&i->store->recordings, &record->link);
	i->n_pending++;
	FAILPOINT_AFTER("import.record");
	return 0;
}

bool recording_start(struct recording *r)
{
	const struct incoming_image *in;

	list_for_each (in, &r->incoming->images, struct incoming_image, link) {
		if (recording_one(r, in, &r->err) < 0)
			break;
	}
	return r->n_pending > 0;
}
