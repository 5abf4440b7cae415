/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_LIMITED_H
#define NACRE_IMAGE_LIMITED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The writable layer of a container has a limit in one of two ways:
 *
 * As a project (isolate/disk/quota.h), where the file system of the root directory enforces quotas
 * of projects and the container cannot give its files another one. The id of the project is that of
 * containers/ID itself, so that it is found as long as there is anything to count.
 *
 * Else as a file system of its own: containers/ID/disk is a file with an ext4 file system of that
 * size (isolate/disk/ext4_file.h), whose blocks are allocated at once. An overlay wants a path for
 * its upper directory, so the file system is mounted on containers/ID/fs until the overlay is
 * there, which holds it from then on. A process that is killed in between leaves the mount to
 * limited_detach(), which removal of the container calls. The loop device and the blocks go with
 * the last mount of the overlay and the file.
 */

struct error;
struct image_limit;
struct image_store;
struct measure;
struct inventory;

/* Makes it in dir_fd, the empty directory of the container `id`, and returns a descriptor of where
 * its files belong: dir_fd once more, or (*ret_own) the root of its own file system, mounted.
 * ERROR_EXHAUSTED where the disk has no room for that and the reserve (image/content/room.h). */
int limited_make(struct image_store *s, int dir_fd, const char *id, const struct image_limit *limit,
		 bool *ret_own, struct error *err);
/* Mounts the file system that is there. -ENOENT, without a text, where the container has none.
 * ERROR_PRECONDITION where something has it still mounted. */
int limited_open(int dir_fd, struct error *err);
/* Takes the mount on containers/ID/fs away, if there is one. */
void limited_detach(int containers_fd, const char *id);
/* Removes the directory of a container that has ended, with its files; its project is free then. */
int limited_remove(int containers_fd, const char *id);

/* Adds what the layer of a container takes, as the kernel counts it for a project, else as
 * measure_tree() does. *ret_limit: its limit, or 0. Blocks: for a thread of the pool. */
int limited_measure(struct measure *m, int containers_fd, const char *id, uint64_t *ret_limit);
/* For the check of a node: whoever has a project has a limit, which the kernel enforces. Blocks,
 * likewise. */
void limited_inventory(int containers_fd, struct inventory *t);

#endif
