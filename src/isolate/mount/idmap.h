/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_IDMAP_H
#define NACRE_ISOLATE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "isolate/plan/plan.h"

/*
 * Ids of a mount that differ from those of its file system: files of `inside` ids on the disk
 * appear as `outside` ones, so that a user namespace with the same ranges sees its own ids.
 */

/* A user namespace that has these ranges and nobody in it, as a descriptor: for a plan's idmap_fd,
 * and for isolate_idmap_apply(). */
int isolate_idmap_new(const struct isolate_id_map *uid_map, size_t n_uid_map,
		      const struct isolate_id_map *gid_map, size_t n_gid_map, struct error *err);

/*
 * The same with one range of users and of groups, and new namespaces of the kinds net, ipc and uts
 * that belong to it where `kinds` says so: as descriptors in ret_fd, -1 for any other.
 */
int isolate_users_new(const struct isolate_ids *ids, const bool kinds[ISOLATE_NS_COUNT],
		      int ret_fd[ISOLATE_NS_COUNT], struct error *err);

/* Maps a detached mount that nobody has seen yet; below: with all mounts below it.
 * ERROR_PRECONDITION where the file system cannot do it (overlay: map its lower layers). */
int isolate_idmap_apply(int mount_fd, int userns_fd, bool below, struct error *err);

#endif
