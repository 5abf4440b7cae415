/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_INVENTORY_H
#define NACRE_IMAGE_INVENTORY_H

struct error;
struct image_store;
struct inventory;

/*
 * Names what the images have in the root directory, for the check of a node: "blob" and "layer" (by
 * name), "staging" (entries there), "rootfs" (the ids of containers whose directories are on their
 * way out; the others are their containers'). And "record": what root.db has of images and
 * layers, as "KIND ID"; 0 where that could not be asked, because something is being written just
 * now, else 1. An error is the store's.
 */
int image_store_inventory(struct image_store *s, struct inventory *t, struct error *err);
/* The entries of staging alone, among others that are on their way out. */
void image_store_inventory_staging(const struct image_store *s, struct inventory *t);

#endif
