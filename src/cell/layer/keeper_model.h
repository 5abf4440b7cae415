/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_KEEPER_MODEL_H
#define NACRE_CELL_KEEPER_MODEL_H

/* The members of a keeper (keeper.h), for the units that implement it. */

#include "base/memory/list.h"
#include "base/memory/map.h"
#include "cell/container/container.h"
#include "cell/layer/keeper_config.h"
#include "cell/output/pump.h"
#include "cell/start/spare_container.h"
#include "cell/start/users.h"
#include "cell/start/warm_pool.h"
#include "loop/loop.h"

struct keeper {
	struct keeper_config config;
	struct container_host host;
	struct pump_threads threads;
	struct warm_pool warm_pool, pod_warm_pool;
	struct spare_container spare_container;
	struct users users;
	struct map cells;
	struct map containers; /* by id */
	struct list execs;     /* of containers that are forgotten */
	struct list removals;  /* to be answered at once: of cells that there are none of */
	struct list shutdowns; /* the waiters for the end of all */
	struct loop_defer sweep;
	struct loop_timer retry;
	nsec_t retry_delay;
	struct loop_timer reap;
	nsec_t reap_delay;
	bool stopping;
};

/* Puts a container into the registry, with whom to tell once that it has started (NULL: nobody). */
int keeper_record(struct keeper *k, struct container *c, keeper_started_fn done, void *userdata,
		  struct error *err);

#endif
