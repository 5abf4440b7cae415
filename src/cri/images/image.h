/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_IMAGE_H
#define NACRE_CRI_IMAGE_H

#include "api/cri.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "image/image.h"

/* An image as CRI shows it, and as its requests name one. */

/* In the arena; strings point into the image. NULL without memory. */
Runtime__V1__Image *cri_image_show(struct arena *a, const struct image *image);

/*
 * The image that a request means: 1 and *ret; 0 where the node does not have it; ERROR_INVALID,
 * which names `field`.
 */
int cri_image_find(struct image_store *images, const char *field,
		   const Runtime__V1__ImageSpec *spec, struct image **ret, struct error *err);

/* The user of an image: whether it is a number (*ret_uid), else the name, in the arena: "" where
 * the image has no user. NULL without memory. */
const char *cri_image_user(struct arena *a, const char *user, bool *ret_is_uid, int64_t *ret_uid);

#endif
