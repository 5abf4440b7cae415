/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_EROFS_H
#define NACRE_IMAGE_EROFS_H

struct image_store;
struct tally;

/* Ends what is being made for image_erofs_open(), at the store's end; nobody is told. */
void erofs_free_all(struct image_store *s);
/* Names the directories in which files are being made. */
void erofs_tally(const struct image_store *s, struct tally *t);

#endif
