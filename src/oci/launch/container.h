/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_CONTAINER_H
#define NACRE_OCI_CONTAINER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "wire/document/oci_config.h"

/*
 * The state of a container that is kept between two commands: the directory ROOT/ID, mode 0700.
 *
 *   config.json  as it was when the container was created
 *   cgroup       a link that is never followed: the path of its group below the hierarchy's root
 *   state.json   its first process (number and start time), written once by rename()
 *   start.sock   where `start` finds the process, as long as it waits for that
 *
 * They come in this order, and each before what it names is made, so that whatever a killed
 * `create` has left behind can be found and removed: `delete --force` needs no more than the
 * directory. The process that makes a container holds a lock on it.
 */

enum container_status {
	/* A `create` is at work: nothing but `state`, `list` and waiting is possible. */
	CONTAINER_CREATING,
	/* The first process waits for `start`: it has done everything but execute the program. */
	CONTAINER_CREATED,
	CONTAINER_RUNNING,
	/* Running, and its group is frozen. */
	CONTAINER_PAUSED,
	/* The first process is no more, or never came to be. Only `delete` is left. */
	CONTAINER_STOPPED,
	CONTAINER_STATUS_COUNT
};

const char *container_status_name(enum container_status status);

#define CONTAINER_ID_MAX 255
#define CONTAINER_START_SOCKET "start.sock"

struct container {
	char id[CONTAINER_ID_MAX + 1];
	int root_fd, dir_fd;
	int proc_fd;
	int hierarchy_fd;   /* of cgroups; -1: not opened yet (group.c) */
	struct arena arena; /* everything below */
	struct oci_config *config;
	const char *bundle, *rootfs, *created;
	const char *cgroup; /* path below the root of the hierarchy; NULL: not made yet */
	pid_t pid;          /* 0: no state.json */
	unsigned long long start_time;
};

#define CONTAINER_INIT                                                                             \
	{                                                                                          \
		.root_fd = -1, .dir_fd = -1, .proc_fd = -1, .hierarchy_fd = -1,                    \
		.arena = ARENA_INIT_LIMIT(OCI_CONFIG_ARENA_MAX)                                    \
	}

/* Letters, digits and _+-. , not first a '.'; at most CONTAINER_ID_MAX. */
int container_check_id(const char *id, struct error *err);

/* Makes the directory and takes the lock; ERROR_EXISTS. */
int container_make(struct container *c, const char *root, const char *id, struct error *err);
/* Reads config.json of the bundle into c->config, and keeps it. */
int container_set_bundle(struct container *c, const char *bundle, struct error *err);
int container_set_cgroup(struct container *c, const char *path, struct error *err);
/* Writes state.json. */
int container_set_process(struct container *c, pid_t pid, struct error *err);

/* Reads what there is; ERROR_NOT_FOUND. config stays NULL where it was not written yet. */
int container_open(struct container *c, const char *root, const char *id, struct error *err);
void container_done(struct container *c);

/* ERROR_UNAVAILABLE where a `create` is at work on it, unless `wait`. */
int container_lock(struct container *c, bool wait, struct error *err);

/* Removes the directory: the last act of its life. */
int container_forget(struct container *c, struct error *err);

enum container_status container_status(const struct container *c);
/* A pidfd of the first process, or -ESRCH where that has ended. */
int container_pidfd(const struct container *c);
/* Its cgroup as a descriptor; -ENOENT where there is none (any more). */
int container_cgroup(const struct container *c, struct error *err);

/* The state of the specification. pid: as the reader sees it; 0 leaves it out. */
void container_write_state(const struct container *c, enum container_status status, pid_t pid,
			   bool compact, FILE *to);
/* The same as a string that the caller frees; NULL without memory. */
char *container_state_text(const struct container *c, enum container_status status, pid_t pid);

#endif
