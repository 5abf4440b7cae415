/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_INVENTORY_H
#define NACRE_POD_INVENTORY_H

struct error;
struct inventory;
struct workloads;

/*
 * Names what the workloads have outside of memory, for the check of a node: "cgroup" and
 * "processes" (paths below the base group), "port" ("ports/NAME", of a pod that runs), "log" and
 * "rootfs" (directories, by id), "record" (what run.db has of workloads and instances, as "KIND
 * ID"). That the records are as memory says is checked here too. An error is the store's.
 */
int workloads_inventory(struct workloads *all, struct inventory *t, struct error *err);

#endif
