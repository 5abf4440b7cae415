/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_INVENTORY_H
#define NACRE_INSTANCE_INVENTORY_H

#include "instance/model.h"

struct inventory;

/*
 * Names what the instances have outside of memory, for the check of a node: "cgroup" (paths below
 * the base group), "processes" (those of the groups that have any), "directory" and "socket" (paths
 * below the run directory).
 */
void instances_inventory(const struct instances *all, struct inventory *t);

/* The path of an instance's group below the base group. */
const char *instance_group(const struct instance *i);

#endif
