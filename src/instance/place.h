/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_PLACE_H
#define NACRE_INSTANCE_PLACE_H

#include "instance/model.h"

/*
 * The resources of an instance outside of memory: a directory for its keeper's sockets ("node", or
 * "i/ID", below the run directory; only where this daemon made the keeper), and a cgroup ("node",
 * or "inst.NAME" below that of its parent).
 */

/* The last component of its cgroup. */
void place_group_name(const struct instance *i, char ret[NAME_LABEL_MAX + 8]);
/* Fills in i->cgroup; it stays "" where that would be one of another kernel. */
int place_name_cgroup(struct instance *i, struct error *err);
/* Opens it, where it has one, as i->cgroup_fd; one of our own is made where it is missing. */
int place_open_cgroup(struct instance *i, struct error *err);
/* Takes that of one of our own away: 0 where none is left, -EBUSY while something lives there. */
int place_remove_group(struct instance *i);
/* Whether it hangs below a group that its request has named (instance_spec.cgroup_parent),
 * and not below the node's base group. */
bool place_is_elsewhere(const struct instance *i);
/* Makes and opens the directory as i->dir_fd. */
int place_make_dir(struct instance *i, struct error *err);
/* 0 where none is left; it can be tried again. */
int place_remove_dir(struct instance *i);

/* Takes away the directories and groups of keepers that nobody knows. */
void instances_sweep(struct instances *all);

#endif
