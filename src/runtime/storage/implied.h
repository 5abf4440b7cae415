/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_STORAGE_IMPLIED_H
#define NACRE_RUNTIME_STORAGE_IMPLIED_H

#include <stddef.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"

/*
 * The volumes that a request mounts without a name: a volume without a name has an id from here on
 * (in Mount.volume, beside `anonymous`), and each path of an image's VOLUME that no mount has as
 * its target gets one. The request itself stays as it came: *containers is replaced by copies in
 * the arena, where there is anything to add.
 */

struct arena;
struct image_store;

/* images: NULL where nothing of the images is mounted. An image that is not there is passed over:
 * others tell. ERROR_INVALID for `anonymous` beside a volume; ERROR_PRECONDITION names the image
 * whose volumes cannot be mounted, or are too many. */
int implied_take(struct arena *a, struct image_store *images,
		 Aurae__Runtime__V0__Container ***containers, size_t n, struct error *err);

#endif
