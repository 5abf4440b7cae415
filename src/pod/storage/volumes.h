/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_VOLUMES_H
#define NACRE_POD_VOLUMES_H

#include <stdbool.h>

/* Which of the node's volumes (volumes/volumes.h) workloads have, and that those which were made
 * for a workload, without a name, go with it. One that a later workload names by its id is not its.
 */

struct workload;
struct workloads;

/* The first workload, running or ended, that has the volume of this id; NULL: none. `but` does not
 * count, and may be NULL. */
struct workload *workloads_with_volume(const struct workloads *all, const char *id,
				       const struct workload *but);
/* Whether the workload has it. */
bool workload_has_volume(const struct workload *w, const char *id);

/* Begins to remove the volumes that were made for w and that nobody else has, where they are to go
 * with it (drops_volumes). True when that is done; else its deferred work is scheduled then.
 * Private to this area. */
bool workload_drop_volumes(struct workload *w);
/* The sets of secrets that w has, which go with it. Private to this area. */
void workload_drop_secrets(const struct workload *w);
/* Drops those that no workload has: once all records are read. */
void workloads_collect_secrets(struct workloads *all);
/* Nobody waits for that any more. */
void workload_forget_volumes(struct workload *w);

#endif
