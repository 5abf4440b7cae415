/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_ROOTFS_H
#define NACRE_IMAGE_ROOTFS_H

struct image_store;
struct inventory;

/* Frees what is kept about containers, at the store's end. */
void rootfs_free_all(struct image_store *s);
/* Names the containers whose directories are being removed. */
void rootfs_inventory(const struct image_store *s, struct inventory *t);

#endif
