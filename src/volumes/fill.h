/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VOLUMES_FILL_H
#define NACRE_VOLUMES_FILL_H

#include <sys/types.h>

#include "base/log/error.h"

/*
 * The directories of a volume: ID/data is what containers have; ID/new is there while it is filled,
 * and takes the place of `data` as a whole. All of it waits for the disk: not for the loop. dir_fd:
 * the directory of all volumes.
 */

#define FILL_DATA "data"
#define FILL_NEW "new"

/* ID and ID/data, owned by root, mode 0755. A failure leaves nothing. */
int fill_make(int dir_fd, const char *id, struct error *err);
/* ID/data, pointed at. ERROR_PRECONDITION where somebody has taken it away. */
int fill_open(int dir_fd, const char *id, struct error *err);
/* A directory or regular file in it: relative, links stay in it. ERROR_NOT_FOUND,
 * ERROR_PRECONDITION. */
int fill_open_below(int data_fd, const char *path, struct error *err);

/*
 * Copies the directory at the path in the tree root_fd into a volume that is empty and that nobody
 * has opened: with the owner and mode of that directory (isolate/tree/copy_up.h says what is
 * copied). It is on the disk when this returns. Of a volume that is not empty, and where there is
 * no directory at the path, nothing changes. Where it fails the volume is as empty as it was.
 */
int fill_copy(int dir_fd, const char *id, int root_fd, const char *path, struct error *err);

/* Gives everything in a directory, and itself, to an owner; a file alone. Follows no link, enters
 * no other file system. */
int fill_chown(int fd, uid_t uid, gid_t gid, struct error *err);

#endif
