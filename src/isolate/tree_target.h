/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_TREE_TARGET_H
#define NACRE_ISOLATE_TREE_TARGET_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Where something goes in a root that somebody else has filled; private to this area. Links are
 * followed inside the root, what is missing is made. Nothing goes on or below a procfs but for the
 * files that the field puts there, and on /proc itself nothing but a procfs.
 */

/* Whether a path names the same as `known`, which is clean: with slashes and dots taken away. */
bool tree_path_is(const char *path, const char *known);
/* A directory to make something in. */
int tree_dir(int root_fd, const char *path, struct error *err);
/* Puts a mount on a target, as a directory or as a file, and sees it there. */
int tree_attach(int root_fd, int mount_fd, const char *path, struct error *err);

#endif
