/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_CONTAINER_H
#define NACRE_CELL_CONTAINER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/list.h"
#include "cell/attach.h"
#include "cell/cell.h"
#include "cell/input.h"
#include "cell/kept.h"
#include "cell/pump.h"
#include "cell/spec.h"
#include "cell/streams.h"
#include "cell/terminal.h"
#include "isolate/spawn.h"
#include "isolate/user.h"
#include "loop/loop.h"

/*
 * One container: its process, its output, its end. The states are those of spec.h.
 *
 * An end comes in this order: the process is reaped; its cgroup is empty and removed, so nothing of
 * it lives; what its pipes hold by then is the rest of its output, and when that is in the log, and
 * who is attached has taken it, the last state is entered.
 */

struct container;
struct stock;
struct users;

/* What a container needs of its keeper; the same for all, and it outlives them. */
struct container_host {
	struct loop *loop;
	struct pump_threads *threads;
	int proc_fd;
	int host_mount_ns_fd;
	int devices_fd; /* program of devices for containers of images; -1: none */
	struct users *users;
	struct stock *stock, *pod_stock; /* for a cell apart, and for one that shares */
	/* The state or its reason has changed. In EXITED and FAILED the container may be freed
	 * here. */
	void (*on_change)(void *userdata, struct container *c);
	void *userdata;
};

enum container_ns { CONTAINER_NS_PID, CONTAINER_NS_MOUNT, CONTAINER_NS_CGROUP, CONTAINER_NS_COUNT };

struct container {
	struct list link; /* in cell->containers */
	struct cell *cell;
	const struct container_host *host;
	char id[ID_SIZE];
	char name[64];
	enum container_kind kind;
	struct container_status status;

	struct container_start *start; /* until it is spawned and has all of that */
	struct streams stdio;          /* of a process that waits for its root */
	uint64_t early_signals;        /* that came before it ran; bit n - 1 for signal n */
	bool stdin_open, tty;          /* as it was asked for */
	bool maker;                    /* it makes the namespaces of its cell */
	bool killed;                   /* before its program was known to run */
	bool failed;                   /* its status says why */
	bool ended;                    /* no process: reaped, or never spawned */
	bool noted;                    /* the reason tells about the log */

	char **env;
	char *cwd;
	struct isolate_user *user;
	bool home_added;
	int cgroup_fd;
	int ns_fd[CONTAINER_NS_COUNT]; /* for execs, opened by the first one */
	int null_fd;                   /* likewise: what they read where nobody writes */

	struct isolate_child child;
	struct loop_fd report;
	struct loop_child watch;
	struct loop_timer retry;
	nsec_t retry_delay;
	int n_retries;
	struct pump pump;
	struct kept kept;
	struct input input;
	struct terminal terminal;
	struct attach_point attach;

	struct list execs; /* of the keeper's execs, those in this container */
	size_t n_execs;
	void *record; /* the keeper's */
};

/* Takes the descriptors over, also on failure. In state STARTING, in the list of its cell; nothing
 * happens before container_launch(). spec was checked. user: may be NULL with spec->late, and is
 * looked up when the root is there. */
int container_new(struct container **ret, const struct container_host *host, struct cell *cell,
		  const struct container_spec *spec, const struct isolate_user *user,
		  struct container_fds *fds, struct error *err);
/* One that another program is to fill (cell/handover.h), in no list. -ENOMEM. */
int container_alloc(struct container **ret, const struct container_host *host, struct cell *cell);
/* Why it cannot be handed over now, or NULL. */
const char *container_busy(const struct container *c);
/* Takes up what was filled: listens to the process and its pipes, goes on with an end that was
 * begun. */
void container_resume(struct container *c);
/* Neither kills nor waits. */
struct container *container_free(struct container *c);

/* Spawns it, now or when its cell is ready. What fails comes back as state FAILED, never from here.
 */
void container_launch(struct container *c);

/* Its cell is made with the keeper's kit, where that fits: what container_launch() does anyway. */
void container_adopt_kit(struct container *c);
/* Of one whose spec was `late`: whether it waits for the rest of its descriptors; that rest, which
 * is taken over, and with which it is launched, or goes on where container_launch() has cloned it
 * ahead of that; and that it will not come, why. */
bool container_awaits(const struct container *c);
void container_supply(struct container *c, struct container_fds *fds);
void container_refuse(struct container *c, const struct error *err);

static inline bool container_is_over(const struct container *c)
{
	return c->status.state == CONTAINER_EXITED || c->status.state == CONTAINER_FAILED;
}

/* keeper_signal(). Before the program runs, SIGKILL acts at once and others are kept for it. */
int container_signal(struct container *c, int sig, bool all, struct error *err);
/* SIGKILL to all of it, and a log that cannot be written is given up. */
void container_finish_off(struct container *c);

/* The namespaces of a plain process, for its first program and its execs. */
void container_plan_host(const struct container *c, struct isolate_plan *plan);

#endif
