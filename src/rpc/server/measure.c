/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/measure.h"

#include <stdlib.h>

const nsec_t rpc_measure_bounds[RPC_MEASURE_BOUNDS] = {
	500 * NSEC_PER_SEC / 1000000,
	1 * NSEC_PER_MSEC,
	2500 * NSEC_PER_SEC / 1000000,
	5 * NSEC_PER_MSEC,
	10 * NSEC_PER_MSEC,
	25 * NSEC_PER_MSEC,
	50 * NSEC_PER_MSEC,
	100 * NSEC_PER_MSEC,
	250 * NSEC_PER_MSEC,
	1000 * NSEC_PER_MSEC,
	5000 * NSEC_PER_MSEC,
	30000 * NSEC_PER_MSEC,
};

void measures_init(struct measures *m)
{
	*m = (struct measures){ .by_path = MAP_INIT };
	list_init(&m->all);
}

void measures_done(struct measures *m)
{
	struct rpc_measure *one;

	list_for_each (one, &m->all, struct rpc_measure, member) {
		list_remove(&one->member);
		free(one);
	}
	map_done(&m->by_path);
}

static struct rpc_measure *measures_get(struct measures *m, const char *path)
{
	struct rpc_measure *one = map_get(&m->by_path, path);

	if (one)
		return one;
	one = malloc(sizeof(*one));
	if (!one)
		return NULL;
	*one = (struct rpc_measure){ .path = path };
	if (map_add(&m->by_path, path, one) < 0) {
		free(one);
		return NULL;
	}
	list_init(&one->member);
	list_add_tail(&m->all, &one->member);
	return one;
}

void measures_begin(struct measures *m, const char *path, bool is_timed)
{
	struct rpc_measure *one = measures_get(m, path);

	if (!one)
		return;
	one->is_timed = is_timed;
	one->started++;
}

void measures_end(struct measures *m, const char *path, unsigned code, nsec_t took)
{
	struct rpc_measure *one = map_get(&m->by_path, path);
	size_t i = 0;

	if (!one)
		return;
	one->by_code[code < RPC_CODES ? code : RPC_UNKNOWN]++;
	while (i < RPC_MEASURE_BOUNDS && took > rpc_measure_bounds[i])
		i++;
	one->buckets[i]++;
	one->total += took;
}
