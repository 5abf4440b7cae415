/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_INCOMING_H
#define NACRE_IMAGE_INCOMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/list.h"
#include "base/memory/map.h"
#include "wire/message/fetchmsg.h"
#include "wire/name/digest.h"

/*
 * The helper's description of an archive, gathered message by message. Each message was checked by
 * itself (wire/message/fetchmsg.h); here their order and sense are: every image has its end, its
 * counts agree, and every blob that it names has come.
 */

struct layer;

/* Of the arena, and of the words together, which do not lie in it. */
#define INCOMING_MEMORY_MAX (64 << 20)

struct incoming_blob {
	struct list link;
	char digest[DIGEST_SIZE];
	uint64_t size;
	bool wanted; /* an image names it */
	bool held;   /* by the import, in the store */
	bool staged; /* it is still to be moved there */
};

struct incoming_layer {
	struct list link;
	char digest[DIGEST_SIZE];
	char diff_id[DIGEST_SIZE];
	uint64_t size;
	enum fetch_compression compression;
	struct layer *layer; /* the store's, held by the import */
};

struct incoming_image {
	struct list link;
	char id[DIGEST_SIZE];
	char digest[DIGEST_SIZE];
	const char *user, *working_dir, *stop_signal;
	char **words[FETCH_LIST_COUNT]; /* by enum fetch_list; NULL where it has none */
	uint32_t n_words;
	struct list layers;
	uint32_t n_layers;
	bool ended;
};

struct incoming {
	struct arena arena;
	struct list images;
	struct list blobs;
	struct map by_digest; /* blobs */
	size_t n_images;
	size_t n_blobs;
	size_t n_word_bytes; /* of all images */
	bool done;
};

void incoming_init(struct incoming *in);
void incoming_done(struct incoming *in);

/* -EPROTO, or -ENOMEM. */
int incoming_take(struct incoming *in, const struct fetchmsg *m, struct error *err);
/* After the helper has ended: whether all is there. Marks the blobs that are wanted. */
int incoming_check(struct incoming *in, struct error *err);

/* Bytes of the documents and compressed layers of an image. */
uint64_t incoming_size(const struct incoming *in, const struct incoming_image *image);

#endif
