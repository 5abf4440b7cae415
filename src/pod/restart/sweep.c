/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart/sweep.h"

#include <errno.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "pod/workload/life.h"

#define WORKLOADS_SWEEP_LAST (60 * NSEC_PER_SEC)

void workloads_sweep_logs(struct workloads *all)
{
	_cleanup_strv_ char **logs = NULL;
	int r = fd_list_dir(all->config.logs_fd, &logs);

	for (size_t n = 0; logs && logs[n]; n++)
		if (!map_get(&all->by_id, logs[n]) &&
		    rootfd_remove_tree(all->config.logs_fd, logs[n]) < 0)
			r = -EBUSY;
	if (r == 0) {
		all->sweep_delay = WORKLOADS_SWEEP_FIRST;
		return;
	}
	loop_timer_set(&all->sweep, all->sweep_delay);
	all->sweep_delay = MIN(all->sweep_delay * 2, WORKLOADS_SWEEP_LAST);
}

static void workloads_on_sweep(struct loop_timer *t)
{
	workloads_sweep_logs(container_of(t, struct workloads, sweep));
}

void workloads_init_sweep(struct workloads *all)
{
	loop_timer_init(&all->sweep, all->config.loop, workloads_on_sweep);
	all->sweep_delay = WORKLOADS_SWEEP_FIRST;
}
