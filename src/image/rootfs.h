/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_ROOTFS_H
#define NACRE_IMAGE_ROOTFS_H

struct error;
struct image;
struct image_store;
struct tally;

/* What the layers of an image are together, as a detached mount: read-only, without set-id, devices
 * and execution. */
int rootfs_mount_layers(struct image_store *s, const struct image *image, struct error *err);

/* Frees what is kept about containers, at the store's end. */
void rootfs_free_all(struct image_store *s);
/* Names the containers whose directories are being removed. */
void rootfs_tally(const struct image_store *s, struct tally *t);

#endif
