/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_TREE_TARGET_H
#define NACRE_ISOLATE_TREE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "isolate/tree/tree_view.h"

/*
 * Where something goes in a root that somebody else has filled; private to this area. Each path is
 * resolved once, and what comes of it is a descriptor.
 *
 * A system mount (isolate/tree/tree_view.h) goes on a directory of the root itself, or of a system
 * mount around it: no link is followed, and a mount that others can write to holds none. For what
 * else is mounted, links are followed inside the root, what is missing is made. Nothing goes on the
 * root itself, nor on or below a procfs but for the files that the field puts there; on /proc
 * itself goes nothing but a procfs; and in a container nothing goes into /dev and /sys, but for
 * /dev/shm itself.
 */

/* A directory to make the device in that has this path. */
int tree_dir(const struct tree_view *v, const char *path, struct error *err);
/* The file at a path, O_PATH, for a mount upon it; -ENOENT without a text. *ret_is_own: reached
 * from a system mount. */
int tree_open(const struct tree_view *v, const char *path, bool *ret_is_own, struct error *err);
/* Puts a mount on a target, as a directory or as a file, and sees it there. */
int tree_attach(const struct tree_view *v, int mount_fd, const char *path, bool is_system,
		struct error *err);
/* Refuses a mount that is not found under its path (any more). */
int tree_see(const struct tree_view *v, int mount_fd, const char *path, struct error *err);

#endif
