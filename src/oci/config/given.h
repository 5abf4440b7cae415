/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_GIVEN_H
#define NACRE_OCI_GIVEN_H

#include <sys/types.h>

#include "base/memory/buf.h"

/*
 * Files that the caller of the runtime names: on the command line, or in config.json as the source
 * of a mount, a namespace, a hook. They are resolved in the runtime's own mount namespace with the
 * caller's rights, as the specification wants; nothing below a container's root goes this way.
 * A descriptor (O_CLOEXEC), 0, or a negative errno.
 */

int given_open(const char *path, int flags, mode_t mode);
int given_read(const char *path, size_t max, struct buf *b);
/* A detached copy of the tree of mounts at the path. */
int given_copy_tree(const char *path);
/* A directory that only its owner may look into, with those above it where they are missing. */
int given_make_dir(const char *path);

#endif
