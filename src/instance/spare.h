/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_SPARE_H
#define NACRE_INSTANCE_SPARE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/text/id.h"

/*
 * A keeper made ahead of need. Most of the time that the start of a pod takes goes into the clone
 * of a keeper with its namespaces, so one waits, in a group and a directory of its own, for the pod
 * that it will be named after. It holds nothing and has no record: a daemon that finds one of an
 * earlier life takes it away (instances_sweep()).
 */

struct instances;
struct peer;
struct spare;

/* A keeper that was taken: its parts are the taker's. It is this very program, so it understands
 * what this daemon says, also before it has answered. */
struct spare_keeper {
	char id[ID_SIZE];  /* "" : none */
	struct peer *peer; /* connected, not opened: nothing was said to it yet */
	pid_t pid;
	unsigned long long start_time;
	int pidfd, report_fd, dir_fd, cgroup_fd;
};

#define SPARE_KEEPER_INIT                                                                          \
	{                                                                                          \
		.pidfd = -1, .report_fd = -1, .dir_fd = -1, .cgroup_fd = -1                        \
	}

/* Its group below the base group: no instance can have that name, since '_' is in no label. */
#define SPARE_GROUP_PREFIX "inst._"

/* None waits before spare_order(). */
int spare_new(struct spare **ret, struct instances *all);
/* Ends the one that waits, and waits for that. */
struct spare *spare_free(struct spare *s);

/* Makes one in a while, where none waits yet; s may be NULL. It costs the loop, and the machine, as
 * much as a start does, so not while one is under way: spare_hurry() says that none is, and has an
 * ordered one made as soon as the caller that waited for that start has been told. */
void spare_order(struct spare *s);
void spare_hurry(struct spare *s);
/* False where none waits; another one is ordered in any case. s may be NULL. */
bool spare_take(struct spare *s, struct spare_keeper *ret);
/* Of the one that waits; NULL where none does. s may be NULL. */
const char *spare_id(const struct spare *s);
/* It was not needed after all. Also for one that is empty. */
void spare_return(struct spare *s, struct spare_keeper *k);

#endif
