/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_SWEEP_H
#define NACRE_POD_SWEEP_H

struct workloads;

/* Removes log directories that belong to no workload, and tries again later where that fails:
 * all->sweep, of which workloads_init_sweep() is the first. Private to this area. */
void workloads_init_sweep(struct workloads *all);
void workloads_sweep_logs(struct workloads *all);

#endif
