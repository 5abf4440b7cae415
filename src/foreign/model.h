/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FOREIGN_MODEL_H
#define NACRE_FOREIGN_MODEL_H

#include "base/memory/list.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "foreign/foreign.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"
#include "net/port/segment.h"
#include "wire/message/relay.h"

/*
 * Private to this area. A machine outlives who asked for it (`events` NULL) until its relay, where
 * that is our child, is reaped and no thread works for it.
 */

/* Users that nobody else has, two for each machine: far from those of instances. */
#define FOREIGN_UID_FIRST 1879179264

struct foreign {
	struct list link;
	struct foreigns *all;
	char id[ID_SIZE];
	char title[NAME_PATH_MAX + 1];
	const struct foreign_events *events; /* NULL: nobody is told any more */
	void *userdata;
	const struct foreign_spec *spec; /* until it was started */
	int dir_fd, cgroup_fd;
	uid_t uid; /* of the machine; that of the relay is the next one */
	struct segment_job network;
	struct loop_defer begin;
	struct vm *vm; /* NULL: not yet, or it has ended */
	struct isolate_child relay;
	struct loop_child relay_watch;
	bool relay_lives; /* as our child */

	uint32_t io_errors; /* that were told: a bit for each disk and direction */

	/* A question for the agent. */
	struct loop_fd agent;
	int agent_fd;

	/* Its end. */
	bool ended;
	bool unwanted; /* before it was started */
	struct vm_end end;
	struct loop_fd last;
	struct loop_timer patience;
	int last_fd;
	uint8_t *tail;
	size_t n_tail;
};

struct foreigns {
	struct foreigns_config config;
	char *program;
	int machines_fd;
	struct list list;
};

/* The end of it is to be told: reads the end of its console first. */
void foreign_over(struct foreign *f, const struct vm_end *end);
void foreign_end_init(struct foreign *f);
void foreign_end_done(struct foreign *f);

#endif
