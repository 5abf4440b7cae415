/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_KIT_H
#define NACRE_ISOLATE_KIT_H

#include "base/error.h"
#include "isolate/plan.h"

/*
 * What the first container of a group of its own needs and what can be made before anybody knows
 * what that container is: the namespaces net (its loopback device is up), ipc and uts, and the file
 * systems /dev (with pts, shm and mqueue) and /sys (masked; without the groups, which depend on
 * the container's cgroup namespace), and a mount namespace in which there is one read-only file
 * system with nothing but empty directories for /proc, /dev and /sys. Most of the time of a start
 * goes there.
 *
 * A kit is descriptors and nothing else: no process, no cgroup, nothing that is mounted anywhere.
 * Whoever closes them, or dies, leaves nothing behind. What a container gets from a kit is what its
 * own process would have made, by the same code, in namespaces that nobody was in before.
 */
#define ISOLATE_KIT_EMPTY "empty" /* in the mount namespace: what directories are hidden with */

struct isolate_kit {
	int ns_fd[ISOLATE_NS_COUNT]; /* -1 but for net, ipc and uts: to be joined */
	int shm_fd;                  /* a detached mount: the file system on /dev/shm once more */
	int dev_fd, sys_fd;          /* for the plan */
	int bare_ns_fd;              /* the same: a mount namespace with nothing in it */
};

#define ISOLATE_KIT_NONE                                                                           \
	{                                                                                          \
		.ns_fd = { -1, -1, -1, -1, -1, -1, -1, -1 }, .shm_fd = -1, .dev_fd = -1,           \
		.sys_fd = -1, .bare_ns_fd = -1                                                     \
	}

/*
 * Takes this thread into new namespaces and back again, which needs the rights that a spawner has,
 * and a millisecond. place_fd: a directory in the caller's mount namespace that is its own, for
 * mounting upon meanwhile. proc_fd: a /proc of the caller's pid namespace. The thread has its
 * working directory and umask for itself from then on.
 */
int isolate_kit_make(struct isolate_kit *ret, int place_fd, int proc_fd, struct error *err);
/*
 * The same for the first container of a keeper's pod, which shares net, ipc and uts with the
 * keeper: of a kit only dev_fd, with /dev/shm a second mount of shm_fd, sys_fd and bare_ns_fd.
 */
int isolate_kit_make_shared(struct isolate_kit *ret, int place_fd, int proc_fd, int shm_fd,
			    struct error *err);
/* Names the uts namespace of the kit. */
int isolate_kit_set_hostname(const struct isolate_kit *kit, int proc_fd, const char *name,
			     struct error *err);
/* Closes what it has. */
void isolate_kit_done(struct isolate_kit *kit);

#endif
