/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_STANDBY_H
#define NACRE_CELL_STANDBY_H

#include <stdbool.h>

#include "base/log/error.h"
#include "cell/spec.h"
#include "isolate/cgroup/cgroup_name.h"
#include "isolate/spawn/kit.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

/*
 * A process for the next cell's first container, cloned ahead of need: in a group of its own, with
 * all namespaces, /proc, /dev and /sys, it waits at a socket for its root, its program and its
 * streams (isolate/plan/rest.h), has nothing of anybody's, and goes on as the steps are for any
 * other. Only for a plain container (standby_fits()): what is unusual is made when it is asked for.
 *
 *   NONE      there is none.
 *   WAITING   it waits; let go of after STANDBY_LIFE.
 *   ENDING    killed; its group is being taken away.
 *
 * It is a child of the keeper that nobody else knows: it ends with the keeper, whose end of the
 * socket is the only one, and no other program takes it over (standby_busy()).
 */
enum standby_state { STANDBY_NONE, STANDBY_WAITING, STANDBY_ENDING, STANDBY_STATE_COUNT };

#define STANDBY_LIFE (60 * NSEC_PER_SEC)
/* The group of the process, in that of the cell. */
#define STANDBY_LEAF CGROUP_NUMBERED "1"

/* A process that was taken, all of it the caller's. */
struct standby_process {
	char dir[CGROUP_DIR_SIZE]; /* of the cell's group, below that of the layer */
	int cell_fd, leaf_fd;
	struct isolate_kit kit; /* the namespaces and /dev/shm of the cell; the rest was used */
	struct isolate_child child;
};

#define STANDBY_PROCESS_NONE                                                                       \
	{                                                                                          \
		.cell_fd = -1, .leaf_fd = -1, .kit = ISOLATE_KIT_NONE, .child = ISOLATE_CHILD_INIT \
	}

/* Closes what is left in it; it can be done again. */
void standby_process_done(struct standby_process *p);

struct standby {
	enum standby_state state;
	struct standby_process process;
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

/* s stays where it is until standby_done(). */
void standby_init(struct standby *s, struct loop *loop, int layer_fd, int devices_fd,
		  void (*gone)(void *userdata), void *userdata);
/* Kills it; waits for nothing. */
void standby_done(struct standby *s);

/* Whether a container can be one that waits ahead, if it is the first of its cell. */
bool standby_fits(const struct cell_spec *cell, const struct container_spec *spec);
/* Such a one was asked for, or another: what came last is what is made ready for. */
void standby_want(struct standby *s, bool wanted);
/* Whether standby_make() would make one now. */
bool standby_lacks(const struct standby *s);
/* With a kit, which is used up. A failure leaves nothing; the kit is closed. */
void standby_make(struct standby *s, struct isolate_kit *kit);
/* 0, or -ENOENT. */
int standby_take(struct standby *s, struct standby_process *ret);
/* Ends a process that was taken and is not needed. */
void standby_give_back(struct standby *s, struct standby_process *p);
/* Ends what is there, and nothing is made until it is let go again. */
void standby_hold(struct standby *s, bool held);
static inline bool standby_busy(const struct standby *s)
{
	return s->state != STANDBY_NONE;
}
bool standby_has_pid(const struct standby *s, pid_t pid);

#endif
