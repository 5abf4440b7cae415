/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/incoming.h"

#include <assert.h>
#include <errno.h>

#include "base/text/str.h"

void incoming_init(struct incoming *in)
{
	*in = (struct incoming){ .arena = ARENA_INIT_LIMIT(INCOMING_MEMORY_MAX),
				 .by_digest = MAP_INIT };
	list_init(&in->images);
	list_init(&in->blobs);
}

void incoming_done(struct incoming *in)
{
	struct incoming_image *i;

	list_for_each (i, &in->images, struct incoming_image, link) {
		for (size_t k = 0; k < FETCH_LIST_COUNT; k++)
			strv_free(i->words[k]);
	}
	list_init(&in->images);
	list_init(&in->blobs);
	map_done(&in->by_digest);
	arena_done(&in->arena);
}

static int incoming_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "take what nacre-fetch says");
}

static int incoming_wrong(const char *what, struct error *err)
{
	return error_set(err, -EPROTO, "nacre-fetch: %s", what);
}

/* The image whose end has not come yet. */
static struct incoming_image *incoming_open_image(const struct incoming *in)
{
	struct incoming_image *i;

	if (list_empty(&in->images))
		return NULL;
	i = list_entry(in->images.prev, struct incoming_image, link);
	return i->ended ? NULL : i;
}

static int incoming_blob(struct incoming *in, const struct fetchmsg *m, struct error *err)
{
	struct incoming_blob *b;

	if (map_get(&in->by_digest, m->blob.digest) || ++in->n_blobs > FETCH_BLOBS_MAX)
		return incoming_wrong("a blob twice, or too many", err);
	b = arena_zalloc(&in->arena, 1, sizeof(*b));
	if (!b)
		return incoming_memory(err);
	list_init(&b->link);
	(void)str_copy(b->digest, sizeof(b->digest), m->blob.digest);
	b->size = m->blob.size;
	if (map_add(&in->by_digest, b->digest, b) < 0)
		return incoming_memory(err);
	list_add_tail(&in->blobs, &b->link);
	return 0;
}

static int incoming_image(struct incoming *in, const struct fetchmsg *m, struct error *err)
{
	struct incoming_image *i;

	if (incoming_open_image(in) || ++in->n_images > FETCH_IMAGES_MAX)
		return incoming_wrong("an image within an image, or too many", err);
	i = arena_zalloc(&in->arena, 1, sizeof(*i));
	if (!i)
		return incoming_memory(err);
	list_init(&i->link);
	list_init(&i->layers);
	(void)str_copy(i->id, sizeof(i->id), m->image.id);
	(void)str_copy(i->digest, sizeof(i->digest), m->image.digest);
	i->user = arena_strdup(&in->arena, m->image.user);
	i->working_dir = arena_strdup(&in->arena, m->image.working_dir);
	i->stop_signal = arena_strdup(&in->arena, m->image.stop_signal);
	if (!i->user || !i->working_dir || !i->stop_signal)
		return incoming_memory(err);
	list_add_tail(&in->images, &i->link);
	return 0;
}

static int incoming_word(struct incoming *in, const struct fetchmsg *m, struct error *err)
{
	struct incoming_image *i = incoming_open_image(in);

	if (!i || ++i->n_words > FETCH_WORDS_MAX)
		return incoming_wrong("a word outside of an image, or too many", err);
	in->n_word_bytes += strlen(m->word.text) + 1;
	if (in->n_word_bytes > INCOMING_MEMORY_MAX)
		return incoming_wrong("more bytes of words than the memory for them", err);
	return strv_add(&i->words[m->word.list], m->word.text) < 0 ? incoming_memory(err) : 0;
}

static int incoming_layer(struct incoming *in, const struct fetchmsg *m, struct error *err)
{
	struct incoming_image *i = incoming_open_image(in);
	struct incoming_layer *l;

	if (!i || ++i->n_layers > FETCH_LAYERS_MAX)
		return incoming_wrong("a layer outside of an image, or too many", err);
	l = arena_zalloc(&in->arena, 1, sizeof(*l));
	if (!l)
		return incoming_memory(err);
	list_init(&l->link);
	(void)str_copy(l->digest, sizeof(l->digest), m->layer.digest);
	(void)str_copy(l->diff_id, sizeof(l->diff_id), m->layer.diff_id);
	l->size = m->layer.size;
	l->compression = (enum fetch_compression)m->layer.compression;
	list_add_tail(&i->layers, &l->link);
	return 0;
}

static int incoming_image_end(struct incoming *in, const struct fetchmsg *m, struct error *err)
{
	struct incoming_image *i = incoming_open_image(in);

	if (!i || m->image_end.n_words != i->n_words || m->image_end.n_layers != i->n_layers)
		return incoming_wrong("the counts of an image are wrong", err);
	i->ended = true;
	return 0;
}

static int incoming_all_done(struct incoming *in, const struct fetchmsg *m, struct error *err)
{
	if (incoming_open_image(in) || m->done.n_images != in->n_images || in->n_images == 0)
		return incoming_wrong("the count of images is wrong", err);
	in->done = true;
	return 0;
}

static int (*const incoming_takers[FETCHMSG_TYPE_COUNT])(struct incoming *in,
							 const struct fetchmsg *m,
							 struct error *err) = {
	[FETCHMSG_BLOB] = incoming_blob,           [FETCHMSG_IMAGE] = incoming_image,
	[FETCHMSG_WORD] = incoming_word,           [FETCHMSG_LAYER] = incoming_layer,
	[FETCHMSG_IMAGE_END] = incoming_image_end, [FETCHMSG_DONE] = incoming_all_done,
};

int incoming_take(struct incoming *in, const struct fetchmsg *m, struct error *err)
{
	assert(m->type < FETCHMSG_TYPE_COUNT);
	if (in->done || !incoming_takers[m->type])
		return incoming_wrong("a message that does not belong here", err);
	return incoming_takers[m->type](in, m, err);
}

static int incoming_want(struct incoming *in, const char *digest, const uint64_t *size,
			 struct error *err)
{
	struct incoming_blob *b = map_get(&in->by_digest, digest);

	if (!b || (size && b->size != *size))
		return incoming_wrong("an image names a blob that did not come", err);
	b->wanted = true;
	return 0;
}

int incoming_check(struct incoming *in, struct error *err)
{
	struct incoming_image *i;
	int r = 0;

	if (!in->done)
		return incoming_wrong("it ended too early", err);
	list_for_each (i, &in->images, struct incoming_image, link) {
		struct incoming_layer *l;

		r = incoming_want(in, i->id, NULL, err);
		if (r == 0)
			r = incoming_want(in, i->digest, NULL, err);
		if (r < 0)
			return r;
		list_for_each (l, &i->layers, struct incoming_layer, link) {
			r = incoming_want(in, l->digest, &l->size, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

uint64_t incoming_size(const struct incoming *in, const struct incoming_image *image)
{
	const struct incoming_blob *id = map_get(&in->by_digest, image->id);
	const struct incoming_blob *manifest = map_get(&in->by_digest, image->digest);
	uint64_t sum = id->size + manifest->size;
	struct incoming_layer *l;

	list_for_each (l, &image->layers, struct incoming_layer, link) {
		sum += l->size;
	}
	return sum;
}
