/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_PLACE_H
#define NACRE_FETCH_PLACE_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * Where in a layer an entry goes: the directory, as a descriptor that the kernel resolved inside
 * the layer's root, and one component in it. Nothing is done to a path after this, only to the two.
 */

#define PLACE_PATH_MAX 4095
#define PLACE_NAME_MAX 255

struct place {
	int dir_fd;                    /* O_PATH; -1 for the root of the layer itself */
	char name[PLACE_NAME_MAX + 1]; /* "" for the root */
};

#define PLACE_INIT                                                                                 \
	{                                                                                          \
		.dir_fd = -1                                                                       \
	}
void place_done(struct place *p);

/*
 * Brings a name of an archive into the form "a/b/c": no empty component, no "."; leading slashes
 * are dropped. ERROR_INVALID for "..", for what is too long, and for NULL.
 */
int place_normalise(char ret[PLACE_PATH_MAX + 1], const char *name, struct error *err);

/* The place of a normalised path, or a negative errno of its directory. */
int place_look(int root_fd, const char *path, struct place *ret);
/* The place of a normalised path. Missing directories are made where `make` says so (root:root,
 * 0755), else they are -ENOENT without a text. */
int place_find(int root_fd, const char *path, bool make, struct place *ret, struct error *err);

/* Turns a negative errno about an entry into an error: a fault of the archive (ERROR_INVALID) or of
 * this machine. */
int place_fail(struct error *err, int r, const char *what, const char *path);

#endif
