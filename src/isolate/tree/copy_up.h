/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_COPY_UP_H
#define NACRE_ISOLATE_COPY_UP_H

#include "base/log/error.h"

/*
 * Fills a new, detached tmpfs with what a directory of the root holds: files, directories, links,
 * devices and FIFOs with mode, owner and times; the tmpfs itself gets those of the directory. Hard
 * links become files of their own, extended attributes are left behind, other mounts are entered.
 * A directory that is not there leaves the tmpfs empty. Nothing allocates.
 */
int copy_up(int root_fd, const char *path, int tmpfs_fd, struct error *err);

/*
 * The same into an empty directory of a disk: with extended attributes, and without devices. Hard
 * links stay such: links_fd is an empty directory beside it, which holds names of theirs meanwhile,
 * and is the caller's to remove. What path leads to may be missing, or no directory: 0; 1: it was
 * there.
 */
int copy_up_to_disk(int root_fd, const char *path, int dir_fd, int links_fd, struct error *err);

#define COPY_UP_DEPTH_MAX 64

#endif
