/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_PREPARED_H
#define NACRE_ISOLATE_PREPARED_H

#include "base/log/error.h"
#include "base/process/hurry.h"
#include "isolate/plan/plan.h"

/*
 * The resources that the first container of a group of its own needs, as far as they can be made
 * before it is known which container that is: the namespaces net (its loopback device is up), ipc
 * and uts, and a mount namespace in which there is nothing but /dev (with pts, shm and mqueue),
 * /sys (masked; without the groups, which depend on the container's cgroup namespace) and, below
 * them, one read-only file system with empty directories for these and /proc. The prepared sets of
 * one maker have that one in common. Most of the time of a start goes there.
 *
 * A prepared set is descriptors and nothing else: no process, no cgroup, nothing that is mounted
 * anywhere else. Whoever closes them, or dies, leaves nothing behind. What a container gets from a
 * prepared set is what its own process would have made, by the same code, in namespaces that nobody
 * was in before.
 */
#define ISOLATE_PREPARED_EMPTY                                                                     \
	"empty" /* in the mount namespace: what directories are hidden with */

struct isolate_prepared {
	int ns_fd[ISOLATE_NS_COUNT]; /* -1 but for net, ipc and uts: to be joined */
	int shm_fd;                  /* a detached mount: the file system on /dev/shm once more */
	int prepared_ns_fd;          /* for the plan */
};

#define ISOLATE_PREPARED_NONE                                                                      \
	{                                                                                          \
		.ns_fd = { -1, -1, -1, -1, -1, -1, -1, -1 }, .shm_fd = -1, .prepared_ns_fd = -1    \
	}

/* The settings by which the prepared sets of one keeper are made. */
struct isolate_prepared_maker {
	int proc_fd; /* not owned: a /proc of the caller's pid namespace */
	/* Not owned. For containers of a keeper's pod, which share net, ipc and uts with the
	 * keeper: such a prepared set has only prepared_ns_fd, with /dev/shm a second mount of
	 * this. -1: for cells apart.
	 */
	int shm_fd;
	struct isolate_ids ids; /* of the containers that they are for */
	struct hurry *hurry;    /* the work that goes first between two steps; NULL: none */
	int mold_fd; /* owned: what prepared_ns_fd is a copy of, made with the first prepared set;
			-1: not yet */
};

/*
 * Takes this thread into new namespaces and back again, which needs the rights that a spawner has,
 * and half a millisecond. The thread has its working directory and umask for itself from then on.
 */
int isolate_prepared_make(struct isolate_prepared *ret, struct isolate_prepared_maker *m,
			  struct error *err);
void isolate_prepared_maker_done(struct isolate_prepared_maker *m);
/* Names the uts namespace of the prepared set. */
int isolate_prepared_set_hostname(const struct isolate_prepared *prepared, int proc_fd,
				  const char *name, struct error *err);
/* Closes what it has. */
void isolate_prepared_done(struct isolate_prepared *prepared);

#endif
