/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_WORKLOADS_H
#define NACRE_POD_WORKLOADS_H

#include "base/memory/map.h"
#include "pod/networks/guest.h"
#include "pod/networks/names.h"
#include "pod/storage/mirror.h"
#include "pod/workload/model.h"

/*
 * All workloads of the node; private to this area.
 */

#define WORKLOADS_SWEEP_FIRST (100 * NSEC_PER_MSEC)

struct workloads {
	struct workloads_config config;
	struct list list;
	struct map by_path;
	struct map by_id;
	struct map containers; /* by id */
	/* Of log directories that could not be removed at once (sweep.h). */
	struct loop_timer sweep;
	nsec_t sweep_delay;
	/* The timer for writing the records that are kept over a reboot (reboot.h). */
	struct loop_timer keep;
	bool keep_set;
	char **kept_ids; /* until reboot_sweep(): of the records kept when the daemon began */
	bool renamed;    /* one of them may have a handle that is not in its path */
	bool resumed;    /* policies may start something */
	struct mirrors mirrors;
	struct names names;
	struct guests guests;
};

#endif
