/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_CHANGES_H
#define NACRE_IMAGE_CHANGES_H

#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * The changes that a container has made to its image: the upper directory of its overlay, compared
 * with the tree of the layers below. The upper directory belongs to the container, which may write
 * to it meanwhile: it is walked by descriptors, through no link, and told as it is met. Blocks: for
 * a thread of the pool.
 */

#define CHANGES_MAX (1U << 17)       /* changes of one container */
#define CHANGES_BYTES_MAX (8U << 20) /* of their paths, all together */
#define CHANGES_PATH_MAX 4095U       /* bytes of one path */

enum change_kind {
	CHANGE_ADDED = 'A',   /* there is nothing in the image */
	CHANGE_CHANGED = 'C', /* or something in a directory is changed */
	CHANGE_DELETED = 'D', /* with all that was below */
};

/* A value; {} is empty. */
struct changes {
	const char **list; /* a kind, and the path, which begins with '/': parents first */
	size_t n;
	struct buf text;
};

/* upper_fd, image_fd: both directories. ERROR_EXHAUSTED past one of the limits; -ENOMEM. Files that
 * the daemon itself writes in each container (/etc/hosts and the like) are passed over. */
int changes_find(struct changes *ret, int upper_fd, int image_fd, struct error *err);
void changes_done(struct changes *c);

#endif
