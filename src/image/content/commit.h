/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_COMMIT_H
#define NACRE_IMAGE_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/text/id.h"

/* From a staging directory into the store: the blobs that a helper has left there. */

struct image_store;
struct incoming;
struct incoming_image;
struct trash_watch;

/* staging/ID, with an id that is drawn, and blobs/ in it. ret_fd is the caller's;
 * where this fails `id` may be that of a directory that is there, "" where none was made. */
int commit_make_staging(struct image_store *s, char id[ID_SIZE], int *ret_fd, struct error *err);
/* Before the next: holds every blob that is wanted and not held yet, and marks it as staged.
 * -ENOMEM: some may be held by now, commit_release() tells them. */
int commit_hold(struct image_store *s, struct incoming *in, struct error *err);
/*
 * On the pool: syncs the file system, and with it whatever else has come into the store for `in`;
 * moves the blobs that were marked from dir_fd/blobs to their places; syncs those. dir_fd must have
 * been open since before the first of all that was written, so that no fault of the disk is missed.
 */
int commit_run(struct image_store *s, const struct incoming *in, int dir_fd, struct error *err);
/* Lets go of every blob and layer that is held for `in`. */
void commit_release(struct image_store *s, struct incoming *in, struct trash_watch *watch);

/* Whether a blob is there whole: what a record names was synced before that was written, and all
 * else among the blobs has come since the daemon started. */
bool commit_has(const struct image_store *s, const char *digest, uint64_t size);
/*
 * Whether there is room (image/content/room.h) for `load` bytes and for the layers of the image
 * that are not there yet: a compressed one is taken for COMMIT_ESTIMATE times its size.
 * ERROR_EXHAUSTED.
 */
#define COMMIT_ESTIMATE 3
int commit_check_room(struct image_store *s, const struct incoming_image *image, const char *name,
		      uint64_t load, struct error *err);

#endif
