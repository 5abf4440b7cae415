/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_IMAGE_MOUNTS_H
#define NACRE_POD_IMAGE_MOUNTS_H

#include <stddef.h>

#include "base/log/error.h"

/*
 * Images that a container mounts beside the one that it runs. They are held (image.n_users) for as
 * long as the container is known, so that none is removed meanwhile; their ids stand in its record.
 * Private to this area, but for image_mounts_name().
 */

struct image;
struct image_store;
struct pod_container;
struct pod_mount_spec;

#define IMAGE_ID_SIZE 72

/* In the order of its mounts. */
struct image_mount {
	struct image *image; /* NULL: it is gone */
	char id[IMAGE_ID_SIZE];
};

/* The mount, with the ids of the container's user namespace; the image is held from here on.
 * Errors name m->field. */
int image_mounts_open(struct pod_container *c, struct image_store *images,
		      const struct pod_mount_spec *m, struct error *err);
/* One of an earlier life, of which only the id is known; image_mounts_adopt() holds it. -ENOMEM,
 * -EBADMSG. */
int image_mounts_recall(struct pod_container *c, const char *id, size_t len);
void image_mounts_adopt(struct pod_container *c, struct image_store *images);
/* The id of the n-th; NULL: there are fewer. */
const char *image_mounts_id(const struct pod_container *c, size_t n);
void image_mounts_drop(struct pod_container *c);
/* The store is gone, or goes: nothing is let go of. */
void image_mounts_forget(struct pod_container *c);

#endif
