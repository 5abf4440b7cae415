/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_EROFS_H
#define NACRE_IMAGE_EROFS_H

#include <stdint.h>

struct image;
struct image_store;
struct inventory;

/* The number of what makes up the image, whatever its other names: that of its highest layer. The
 * file is named after it. */
int64_t erofs_number(const struct image *image);
/* The file where it is made already (O_RDONLY), or a negative errno. */
int erofs_open_file(const struct image_store *s, const struct image *image);
/* Cancels the requests with this userdata (image_erofs_open()), whose callbacks are not called. A
 * file that nobody waits for any more is not made. Not from within one of its callbacks. */
void erofs_forget(struct image_store *s, const void *userdata);

/* Ends what is being made for image_erofs_open(), at the store's end; nobody is told. */
void erofs_free_all(struct image_store *s);
/* Names the directories in which files are being made. */
void erofs_inventory(const struct image_store *s, struct inventory *t);

#endif
