/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_OVERLAY_H
#define NACRE_IMAGE_OVERLAY_H

#include <stdbool.h>

struct error;
struct image;
struct image_store;
struct isolate_ids;

struct overlay_upper {
	const char *place; /* containers/PLACE/{upper, WORK} are its directories */
	const char *work;  /* that no overlay has had before */
	bool obeys;        /* a quota of the directories holds (isolate/disk/quota.h) */
};

/*
 * An overlay of an image's layers as a detached mount: for a container, or with upper NULL the
 * layers alone, read-only, without set-id, devices and execution. lower_fd: a mount of all layers
 * together (lower.h), or -1: their directories. ids: of the user namespace that it is for, so that
 * the files of each layer, and of the container's directories, seem to be of those; NULL or not
 * set: as they are.
 */
int overlay_mount(struct image_store *s, const struct image *image,
		  const struct overlay_upper *upper, int lower_fd, const struct isolate_ids *ids,
		  struct error *err);
/* A directory or regular file of such a mount without a container, as a mount of its own
 * (image_mount_open()). */
int overlay_below(struct image_store *s, int mount_fd, const char *path, struct error *err);

#endif
