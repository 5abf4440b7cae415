/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_ROOTFD_H
#define NACRE_BASE_ROOTFD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * Rooted names: the one way to reach a file below a root that somebody else controls (an image, a
 * container, an archive). A path is resolved by the kernel with openat2(RESOLVE_IN_ROOT |
 * RESOLVE_NO_MAGICLINKS): links, also absolute ones, stay inside the root, and what comes back is a
 * descriptor, never a path. On busy trees the kernel answers EAGAIN; that is tried again a bounded
 * number of times (openat2(2)).
 *
 * All return a descriptor or 0, or a negative errno. None keeps root_fd.
 */

int rootfd_open(int root_fd, const char *path, int flags, mode_t mode);

/* A name of a tree that the kernel makes (a private /proc): neither above root_fd nor in another
 * mount, and through no link of the magic kind. */
int rootfd_open_beneath(int root_fd, const char *path, int flags);

/* A name of whatever tree, in which no part may be a link: -ELOOP. What stands there is not opened
 * but pointed at (O_PATH). */
int rootfd_point(int dir_fd, const char *path);
/* Whether what dir_fd points at is the directory above_fd, or lies below it: 1 or 0. Goes up from
 * directory to directory, also from one mount to the one that it is mounted on. */
int rootfd_is_below(int dir_fd, int above_fd);

/* A regular file for reading; -EINVAL for anything else. Never blocks on a FIFO, never opens a
 * device. */
int rootfd_open_regular(int root_fd, const char *path);

/* Opens what the O_PATH descriptor, or any other, stands for once more, whatever has its name
 * meanwhile; -ENOENT where there is no /proc to do it with. */
int rootfd_open_again(int path_fd, int flags);

/* The content of a regular file of at most max bytes; -EFBIG past that. */
int rootfd_read(int root_fd, const char *path, size_t max, struct buf *b);

/* The directory, made with its parents (mode 0755) where it is missing: an O_PATH descriptor. What
 * a link names and is not there is made in the root, too; -ELOOP past 40 such links. */
int rootfd_make_dir(int root_fd, const char *path);
/* A file to mount upon (whatever is no directory), made as a regular one where it is missing: an
 * O_PATH descriptor. -EISDIR for a directory, -ELOOP for a link that leads nowhere. */
int rootfd_make_file(int root_fd, const char *path);
/* The same, and what a link on the path names and is not there is made in the root, too; -ELOOP
 * past 40 such links. */
int rootfd_make_dir_through(int root_fd, const char *path);
int rootfd_make_file_through(int root_fd, const char *path);
/* A directory with no link on the way to it nor at it: -ELOOP; -ENOTDIR for what is no directory.
 * Missing directories are made (mode 0755). Each component is resolved once. */
int rootfd_make_dir_plain(int root_fd, const char *path);

/*
 * A new regular file `name` (one component) in dir_fd with this content and these permission bits,
 * in the place of whatever has the name: a file, a link (which is not followed), a FIFO, a device,
 * an empty directory. What had the name keeps its content where it has other names. -ENOTEMPTY: a
 * directory with something in it, which stays; -EINVAL: no name. What else fails may leave a part
 * of the file.
 */
int rootfd_put(int dir_fd, const char *name, mode_t mode, const void *data, size_t len);

/*
 * Removes `name` (one component) in dir_fd with all that is below it. Goes by descriptor, follows
 * no link, enters no other mount (-EXDEV), and needs the same few descriptors and little stack
 * however deep the tree is. Where it fails, what is left may have been moved about within the tree.
 * A name that is not there is success; "", "." and ".." are -EINVAL.
 */
int rootfd_remove_tree(int dir_fd, const char *name);

#endif
