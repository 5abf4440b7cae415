/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_COPY_PLACE_H
#define NACRE_CLI_COPY_PLACE_H

#include <stdbool.h>

#include "base/log/error.h"

/* One side of `nacre cp`: TARGET[:CONTAINER]:PATH, a path of this system, or "-". A value. */
struct copy_place {
	bool stream;              /* "-": a tar archive on standard input or output */
	char *target, *container; /* NULL: here */
	char *path;               /* absolute; "/." at the end: what is in the directory */
};

/*
 * A word that begins with '/' or '.' is a path of this system, and so is one without ':' in front
 * of its first '/', unless ":/" is in it (targets have '/' in their names). A path in a container
 * may do without its first '/'. ERROR_INVALID.
 */
int copy_place_init(struct copy_place *p, const char *word, struct error *err);
void copy_place_done(struct copy_place *p);

/* The name of the tree, where this side is the source: the last name of the path, or "." for the
 * contents of a directory. */
char *copy_place_name(const struct copy_place *p);

#endif
