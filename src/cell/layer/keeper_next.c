/* SPDX-License-Identifier: Apache-2.0 */

/* A keeper on its way into the next program of its process (architecture 9.4). */
#include "cell/layer/keeper.h"

#include <errno.h>

#include "base/process/handover.h"
#include "cell/container/cell.h"
#include "cell/container/container.h"
#include "cell/layer/handover.h"
#include "cell/layer/keeper_model.h"

enum { KEEPER_TAG_CELL = HANDOVER_NESTED };

void keeper_hold(struct keeper *k, bool held)
{
	struct container *c;
	size_t pos = 0;

	pump_threads_hold(&k->threads, held);
	warm_pool_hold(&k->warm_pool, held);
	warm_pool_hold(&k->pod_warm_pool, held);
	spare_container_hold(&k->spare_container, held);
	for (c = map_next(&k->containers, &pos); c && !held; c = map_next(&k->containers, &pos))
		if (!container_is_over(c))
			pump_resume(&c->pump);
}

const char *keeper_busy(struct keeper *k)
{
	const struct container *c;
	const struct cell *cell;
	size_t pos = 0;

	if (k->stopping)
		return "it is shutting down";
	if (!list_empty(&k->execs))
		return "an exec is open";
	if (spare_container_busy(&k->spare_container))
		return "a process that was made ahead of need has not ended";
	for (cell = map_next(&k->cells, &pos); cell; cell = map_next(&k->cells, &pos))
		if (!cell_open(cell))
			return cell->state == CELL_REMOVING ? "a cell is being removed"
							    : "a cell is being made";
	pos = 0;
	for (c = map_next(&k->containers, &pos); c; c = map_next(&k->containers, &pos))
		if (container_busy(c))
			return container_busy(c);
	return NULL;
}

int keeper_write_state(struct keeper *k, struct handover_writer *w)
{
	const struct cell *cell;
	size_t at, pos = 0;

	for (cell = map_next(&k->cells, &pos); cell; cell = map_next(&k->cells, &pos)) {
		int r = handover_begin(w, KEEPER_TAG_CELL, &at);

		if (r == 0)
			r = handover_write_cell(w, cell);
		if (r < 0)
			return r;
		handover_end(w, at);
	}
	return 0;
}

/* Puts a cell that was read into the registry. */
static int keeper_take_cell(struct keeper *k, struct cell *cell, struct error *err)
{
	struct container *c;
	int r;

	r = map_add(&k->cells, cell->name, cell);
	if (r < 0) {
		handover_drop_cell(cell);
		return error_set(err, r, "state: record a cell");
	}
	list_for_each (c, &cell->containers, struct container, link) {
		r = keeper_record(k, c, NULL, NULL, err);
		if (r < 0)
			return r;
		container_resume(c);
	}
	return 0;
}

static int keeper_read_cell(void *userdata, uint32_t tag, struct handover_reader *r,
			    struct error *err)
{
	struct keeper *k = userdata;
	struct cell *cell;
	int ret;

	if (tag != KEEPER_TAG_CELL)
		return -ENOENT;
	ret = handover_read_cell(r, &k->host, k->config.cgroup_fd, k->config.shm_parent_fd,
				 k->config.shm_fd, &cell, err);
	if (ret < 0)
		return ret;
	if (!r->trial)
		return keeper_take_cell(k, cell, err);
	handover_drop_cell(cell);
	return 0;
}

int keeper_read_state(struct keeper *k, struct handover_reader *r, struct error *err)
{
	return handover_read(r, "the keeper", NULL, 0, k, keeper_read_cell, k, err);
}
