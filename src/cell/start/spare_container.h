/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_SPARE_CONTAINER_H
#define NACRE_CELL_SPARE_CONTAINER_H

#include <stdbool.h>

#include "base/log/error.h"
#include "cell/spec.h"
#include "isolate/cgroup/cgroup_name.h"
#include "isolate/spawn/prepared.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

/*
 * A process for the next cell's first container, cloned ahead of need: in a group of its own, with
 * all namespaces, /proc, /dev and /sys, it waits at a socket for its root, its program and its
 * streams (isolate/plan/rest.h), has nothing of anybody's, and goes on as the steps are for any
 * other. Only for a plain container (spare_container_fits()): what is unusual is made when it is
 * asked for.
 *
 *   NONE      there is none.
 *   WAITING   it waits; let go of after SPARE_CONTAINER_LIFE.
 *   ENDING    killed; its group is being taken away.
 *
 * It is a child of the keeper that nobody else knows: it ends with the keeper, whose end of the
 * socket is the only one, and no other program takes it over (spare_container_busy()).
 */
enum spare_container_state {
	SPARE_CONTAINER_NONE,
	SPARE_CONTAINER_WAITING,
	SPARE_CONTAINER_ENDING,
	SPARE_CONTAINER_STATE_COUNT
};

#define SPARE_CONTAINER_LIFE (60 * NSEC_PER_SEC)
/* The group of the process, in that of the cell. */
#define SPARE_CONTAINER_LEAF CGROUP_NUMBERED "1"

/* A process that was taken, all of it the caller's. */
struct spare_process {
	char dir[CGROUP_DIR_SIZE]; /* of the cell's group, below that of the layer */
	int cell_fd, leaf_fd;
	struct isolate_prepared
		prepared; /* the namespaces and /dev/shm of the cell; the rest was used */
	struct isolate_child child;
};

#define SPARE_PROCESS_NONE                                                                         \
	{                                                                                          \
		.cell_fd = -1, .leaf_fd = -1, .prepared = ISOLATE_PREPARED_NONE,                   \
		.child = ISOLATE_CHILD_INIT                                                        \
	}

/* Closes what is left in it; it can be done again. */
void spare_process_done(struct spare_process *p);

struct spare_container {
	enum spare_container_state state;
	struct spare_process process;
	struct loop *loop;
	int layer_fd, devices_fd; /* not owned: of the groups, and for their devices (-1: none) */
	void (*gone)(void *userdata); /* it has entered NONE by an end */
	void *userdata;
	struct loop_child watch;
	struct loop_timer timer;
	nsec_t delay;
	int n_tries;
	unsigned number;
	bool wanted, held;
};

/* s stays where it is until spare_container_done(). */
void spare_container_init(struct spare_container *s, struct loop *loop, int layer_fd,
			  int devices_fd, void (*gone)(void *userdata), void *userdata);
/* Kills it; waits for nothing. */
void spare_container_done(struct spare_container *s);

/* Whether a container can be one that waits ahead, if it is the first of its cell. */
bool spare_container_fits(const struct cell_spec *cell, const struct container_spec *spec);
/* The last request decides what the next one is prepared for: wanted, if such a container fits. */
void spare_container_want(struct spare_container *s, bool wanted);
/* Whether spare_container_make() would make one now. */
bool spare_container_lacks(const struct spare_container *s);
/* With a prepared set, which is used up. A failure leaves nothing; the prepared set is closed. */
void spare_container_make(struct spare_container *s, struct isolate_prepared *prepared);
/* 0, or -ENOENT. */
int spare_container_take(struct spare_container *s, struct spare_process *ret);
/* Ends a process that was taken and is not needed. */
void spare_container_give_back(struct spare_container *s, struct spare_process *p);
/* Ends what is there, and nothing is made until it is let go again. */
void spare_container_hold(struct spare_container *s, bool held);
static inline bool spare_container_busy(const struct spare_container *s)
{
	return s->state != SPARE_CONTAINER_NONE;
}
bool spare_container_has_pid(const struct spare_container *s, pid_t pid);

#endif
