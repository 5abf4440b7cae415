/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_LAYERING_H
#define NACRE_IMAGE_LAYERING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "loop/loop.h"
#include "loop/pool.h"

/*
 * From blobs to layers: what import and pull share. The layers of the incoming images are unpacked,
 * several at once, each by a helper of its own into staging/ID/layer-N, and settled in order from
 * the lowest: a layer is known by what it lies on, so its place is known when those below have
 * theirs. Two layerings that want the same chain of layers unpack each one once: the later waits
 * for the first, and goes on by itself where that one fails. It does not wait for a download from
 * another registry than its own, which may take as long as that one likes: then both unpack, and
 * the later one takes the layer that the other has made. A blob that a layer which is there was not
 * made of is unpacked too, and thrown away when it was seen to hold the same. A value, inside its
 * owner; it must not move meanwhile.
 */

struct image_store;
struct incoming;
struct incoming_image;
struct incoming_layer;
struct layering;
struct layering_layer;

/* The descriptors that a layer is read from; both are the layering's from then on. */
struct layer_source {
	int blob_fd;
	int follow_fd; /* -1: the blob is there as a whole */
};

struct layering_ops {
	/*
	 * Opens the blob. -EAGAIN: it is not there yet, layering_kick() follows. `whole`: an
	 * unpacker that followed the download has failed, and what is wrong will be known from the
	 * whole blob.
	 */
	int (*open)(struct layering *l, const struct incoming_layer *layer, bool whole,
		    struct layer_source *ret, struct error *err);
	/* A layer (position from 1) has its place; `fresh`: it was unpacked for us. */
	void (*on_layer)(struct layering *l, const struct incoming_image *image, unsigned position,
			 const struct incoming_layer *layer, bool fresh);
	/*
	 * The end, once: every layer of the images is held (incoming_layer.layer) and on the disk,
	 * or err says why not. After layering_cancel() err is ERROR_CANCELLED. An unpacked layer
	 * without a place is still in staging. Never called from within a function of this header.
	 */
	void (*on_end)(struct layering *l, const struct error *err);
};

struct layering {
	const struct layering_ops *ops;
	struct image_store *store;
	struct incoming *incoming;
	int dir_fd;       /* staging/ID, of the owner */
	const char *from; /* of the owner */

	struct list link; /* of the store's layerings */
	struct loop_defer turn;
	struct pool_work work;
	struct incoming_image *image; /* the one in hand; NULL at the end */
	struct layering_layer *layers;
	unsigned n_settled;
	unsigned n_running;
	struct list unpackings;
	bool ahead;                       /* the pool syncs while others are unpacked */
	uint64_t n_unsynced;              /* bytes unpacked since the last time it began to */
	bool syncing;                     /* for the last time */
	struct layering_layer *repairing; /* its implied directories are on a thread (repair.h) */
	struct pool_work repair;
	int repair_fd, lower_fd;
	struct error repair_err;
	struct error err;
	struct error sync_err; /* of the thread that syncs */
};

/* Begins with the first image; or -ENOMEM, then on_end does not come. `from`: the registry that
 * blobs are downloaded from, or "". */
int layering_start(struct layering *l, struct image_store *store, struct incoming *incoming,
		   int dir_fd, const char *from, const struct layering_ops *ops, struct error *err);
/* A blob that was not there may be there now. Does nothing where none is being unpacked. */
void layering_kick(struct layering *l);
/* The download of a blob begins anew: whatever follows it is killed, and opened again. */
void layering_restart(struct layering *l, const char *digest);
/* Kills the helpers; on_end follows. Does nothing where it has ended, or was never begun. */
void layering_cancel(struct layering *l);
/* Kills and frees without a word. For a zeroed one too. */
void layering_done(struct layering *l);

#endif
