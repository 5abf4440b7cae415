/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_LOWER_H
#define NACRE_IMAGE_LOWER_H

#include "base/memory/list.h"

/*
 * The lower layer of the root file systems of an image's containers where `images.root` wants
 * EROFS: the file of its layers (erofs.h), mounted once for all of them, detached, for as long as
 * one of them is there. Each overlay holds the mount for itself: a daemon that ends takes it from
 * nobody, and the next one mounts the file again for those that come then.
 */

struct error;
struct image;
struct image_store;
struct lower;

/*
 * Holds what a new root of this image is to lie upon: *ret with its mount, or NULL for the
 * directories of the layers. Errors where it must be EROFS and cannot be: ERROR_PRECONDITION where
 * the kernel cannot, -ENOENT where there is no file (image_rootfs_await() sees to it).
 */
int lower_take(struct image_store *s, const struct image *image, struct lower **ret,
	       struct error *err);
int lower_fd(const struct lower *l);
/* Lets go; the last one unmounts, on the pool. NULL is none. */
struct lower *lower_drop(struct lower *l);

/* At the store's end, with the pool gone: lets go of what is held. Nobody who waits is told. */
void lower_free_all(struct image_store *s);

#endif
