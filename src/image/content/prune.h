/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_PRUNE_H
#define NACRE_IMAGE_PRUNE_H

struct image_store;

/* Ends what runs of image_store_prune(), at the store's end; nobody is told. */
void prune_free_all(struct image_store *s);

#endif
