/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_CONTAINER_MODEL_H
#define NACRE_CELL_CONTAINER_MODEL_H

/* The members of a container (container.h), for the units that implement it. */

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "cell/container/cell.h"
#include "cell/output/attach.h"
#include "cell/output/input.h"
#include "cell/output/kept.h"
#include "cell/output/pump.h"
#include "cell/output/streams.h"
#include "cell/output/terminal.h"
#include "cell/spec.h"
#include "isolate/spawn/spawn.h"
#include "isolate/user/user.h"
#include "loop/loop.h"

struct container;
struct warm_pool;
struct users;

/* The part of its keeper that a container needs; the same for all, and it outlives them. */
struct container_host {
	struct loop *loop;
	struct pump_threads *threads;
	int proc_fd;
	int host_mount_ns_fd;
	int devices_fd; /* program of devices for containers of images; -1: none */
	struct users *users;
	struct warm_pool *warm_pool, *pod_warm_pool; /* for a cell apart, and for one that shares */
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
	char dir[CGROUP_DIR_SIZE]; /* of its group, in that of the cell */
	enum container_kind kind;
	struct container_status status;

	struct container_start *start; /* until it is spawned and has all of that */
	struct streams stdio;          /* of a process that waits for its root */
	uint64_t early_signals;        /* that came before it ran; bit n - 1 for signal n */
	bool stdin_open, tty;          /* as it was asked for */
	bool hurries;                  /* its start is the business of the warm pool */
	bool maker;                    /* it makes the namespaces of its cell */
	bool killed;                   /* before its program was known to run */
	bool failed;                   /* its status says why */
	bool ended;                    /* no process: reaped, or never spawned */
	bool noted;                    /* the reason tells about the log */

	char **env;
	char *cwd;
	struct isolate_user *user;
	struct container_security security; /* its groups are those of user */
	struct buf filter;                  /* container_spec.filter */
	unsigned filter_flags;
	struct sock_fprog filter_prog; /* of it, for plans */
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

#endif
