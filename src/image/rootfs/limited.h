/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_LIMITED_H
#define NACRE_IMAGE_LIMITED_H

#include <stdint.h>

/*
 * The file system of a container whose writable layer has a limit: containers/ID/disk is a file
 * with an ext4 file system of that size (isolate/disk/ext4_file.h), whose blocks are allocated at
 * once. An overlay wants a path for its upper directory, so the file system is mounted on
 * containers/ID/fs until the overlay is there, which holds it from then on. A process that is
 * killed in between leaves the mount to limited_detach(), which removal of the container calls. The
 * loop device and the blocks go with the last mount of the overlay and the file.
 */

struct error;
struct image_store;

/* Makes and mounts it in dir_fd, the container's directory. Its root as a descriptor.
 * ERROR_EXHAUSTED where the disk has no room for it and the reserve (image/content/room.h). */
int limited_make(struct image_store *s, int dir_fd, uint64_t limit, struct error *err);
/* Mounts the one that is there. -ENOENT, without a text, where the container has none.
 * ERROR_PRECONDITION where something has it still mounted. */
int limited_open(int dir_fd, struct error *err);
/* Takes the mount on containers/ID/fs away, if there is one. */
void limited_detach(int containers_fd, const char *id);

#endif
