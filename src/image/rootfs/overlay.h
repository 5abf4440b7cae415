/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_OVERLAY_H
#define NACRE_IMAGE_OVERLAY_H

struct error;
struct image;
struct image_store;

/*
 * An overlay of an image's layers as a detached mount: for the container id with its directories
 * containers/ID/{upper, WORK}, or with id NULL the layers alone, read-only, without set-id, devices
 * and execution. work: a directory that no overlay has had before. lower_fd: a mount of all layers
 * together (lower.h), or -1: their directories.
 */
int overlay_mount(struct image_store *s, const struct image *image, const char *id,
		  const char *work, int lower_fd, struct error *err);

#endif
