/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_OVERLAY_H
#define NACRE_IMAGE_OVERLAY_H

struct error;
struct image;
struct image_store;

/*
 * An overlay of an image's layers as a detached mount: for the container id with its directories
 * containers/ID/{upper, work}, or with id NULL the layers alone, read-only, without set-id, devices
 * and execution.
 */
int overlay_mount(struct image_store *s, const struct image *image, const char *id,
		  struct error *err);

#endif
