/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_CELL_H
#define NACRE_CELL_CELL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "cell/spec.h"
#include "isolate/cgroup/cgroup_name.h"
#include "isolate/plan/plan.h"
#include "isolate/spawn/prepared.h"

/*
 * The resources that the containers of a cell share: a directory of cgroups, the namespaces net,
 * ipc and uts where they are the cell's own, and /dev/shm.
 *
 *   BARE      no namespaces of its own yet. The next container to start makes them, or they are
 *             taken from a prepared set.
 *   MAKING    a container is making them. Others wait: until its steps are through, the loopback
 *             device and the host name are not there, and if it fails, half a set is dropped.
 *   MADE      held by descriptors, so they outlive the container that made them; further ones
 *             join. A cell that shares those of the instance begins here.
 *   REMOVING  nothing starts any more.
 */
enum cell_state { CELL_BARE, CELL_MAKING, CELL_MADE, CELL_REMOVING, CELL_STATE_COUNT };

/* That of the kernel's utsname. */
#define CELL_HOSTNAME_MAX 64

struct cell {
	char name[64];
	char dir[CGROUP_DIR_SIZE]; /* of its group, in that of the layer */
	bool shares_instance;
	char hostname[CELL_HOSTNAME_MAX + 1];
	bool host_network;
	bool unnamed; /* its namespaces are there, without name and loopback device */
	struct isolate_ids ids;
	bool given_network; /* ns_fd has it from the beginning to the end */
	enum cell_state state;
	struct list link;       /* the keeper's */
	struct list containers; /* struct container.link */
	struct list removals;   /* the waiters for its end: the keeper's */
	int layer_fd;           /* directory of the layer's cgroup; not owned */
	int cgroup_fd;          /* its own below that */
	int ns_fd[ISOLATE_NS_COUNT];
	int shm_parent_fd; /* not owned */
	int shm_fd;
	bool shm_mounted; /* then shm_fd is owned */
};

struct spare_process;

/* Makes the directory; the descriptors stay the caller's and must live as long as the cell. The
 * net namespace that it is given is the caller's to put into ns_fd. ahead: the group of that
 * process instead, which is taken from it, also on failure; NULL: none. */
int cell_new(struct cell **ret, const struct cell_spec *spec, struct spare_process *ahead,
	     int layer_fd, int shm_parent_fd, int shm_fd, struct error *err);
/* Makes a cell that a handover is to fill (cell/layer/handover.h): without descriptors, in state
 * BARE. -ENOMEM. */
int cell_alloc(struct cell **ret, int layer_fd, int shm_parent_fd, int shm_fd);
/* Closes and unmounts; the directory of the cgroup stays (cell_remove_cgroup()). */
struct cell *cell_free(struct cell *c);

/* Whether the spec names the same kind of cell: ERROR_PRECONDITION. */
int cell_check(const struct cell *c, const struct cell_spec *spec, struct error *err);

/* Whether a walled container may be spawned now; false: wait until the cell's state changes. */
static inline bool cell_open(const struct cell *c)
{
	return c->state == CELL_BARE || c->state == CELL_MADE;
}

/* The namespaces and /dev/shm of the next walled container. In state BARE it makes them: the cell
 * is MAKING then, *ret_maker is true, and cell_hold() and cell_settle() follow. */
int cell_plan(struct cell *c, struct isolate_plan *plan, bool *ret_maker, struct error *err);
/* Whether all namespaces that a prepared set has are its own. */
static inline bool cell_is_apart(const struct cell *c)
{
	return !c->shares_instance && !c->host_network && !c->given_network;
}
/* Whether it can take those of a prepared set now. */
static inline bool cell_wants_prepared(const struct cell *c)
{
	return c->state == CELL_BARE && cell_is_apart(c) && !c->shm_mounted;
}
/* Takes namespaces and /dev/shm from a prepared set instead, which keeps the rest: the cell is
 * MADE. Fails without a trace: then it can make its own. */
int cell_adopt(struct cell *c, struct isolate_prepared *prepared, int proc_fd, struct error *err);
/* Takes hold of the namespaces of the process that makes them. -ESRCH: it has ended already. */
int cell_hold(struct cell *c, int proc_fd, pid_t pid, struct error *err);
/* The maker's program runs (or not): what it made is kept (or dropped). */
void cell_settle(struct cell *c, bool running);
/* How a program beside a running container enters its user namespace, if there is one. ids: what
 * the plan points to. */
struct cell_maps {
	struct isolate_id_map uid, gid;
};
void cell_plan_users(const struct cell *c, struct isolate_plan *plan, struct cell_maps *maps);
/* How a process joins the cell of a running container. */
void cell_plan_join(const struct cell *c, struct isolate_plan *plan);

void cell_begin_removal(struct cell *c);
/* SIGKILL to everything in it. */
void cell_kill(struct cell *c);
/* 0, or -EBUSY while something lives there. */
int cell_remove_cgroup(struct cell *c);

#endif
