/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_DISKS_H
#define NACRE_KEEPER_DISKS_H

#include "base/memory/list.h"
#include "cell/layer/keeper.h"
#include "isolate/disk/disk.h"
#include "loop/loop.h"

/*
 * Starts for which the keeper makes root and mounts by itself, from disks and shares of its machine
 * (StartRequest.root_disk, Mount.share): on threads, beside what the start can do meanwhile. A disk
 * that is not there is waited for, DISKS_PATIENCE. A container's disk is its own until it is free
 * again, which who removes the container waits for, DISKS_RELEASE at most.
 */

#define DISKS_PATIENCE (5 * NSEC_PER_SEC)
#define DISKS_RELEASE (10 * NSEC_PER_SEC)

struct pool;
struct rpc_call;

struct disks {
	struct loop *loop;
	struct pool *pool; /* made when it is needed */
	struct keeper *keeper;
	struct disk_places places; /* the machine's are opened when they are needed */
	/* Ends the call with what became of the container. */
	void (*started)(void *call, const struct container_view *view);
	bool opened;          /* the places are those of the machine */
	int shares_fd;        /* disk_mount_shares(); -1: nobody has asked for a share yet */
	struct list starts;   /* struct disk_start, until their disk is free again */
	struct list releases; /* the waiters for that */
	struct loop_defer turn;
};

/* own_fd: where a tree for disks can be made for a moment. places: other than the machine's, or
 * NULL. All descriptors stay the caller's. */
void disks_init(struct disks *all, struct loop *loop, struct keeper *keeper, int own_fd,
		const struct disk_places *places,
		void (*started)(void *call, const struct container_view *view));
/* Behind the end of all calls. What a thread is at is left to it. */
void disks_done(struct disks *all);

/* Whether a start is one of these. */
bool disks_wants(const struct container_spec *spec);
/* keeper_start() for such a call; fds: those of the other mounts. After an error the call is still
 * to be ended. */
int disks_start(struct disks *all, struct rpc_call *call, const struct cell_spec *cell,
		const struct container_spec *spec, struct container_fds *fds, struct error *err);

/* Calls done once, now or later: the disk of the container (or of all of a cell, with id NULL) is
 * free, or err says why not. */
typedef void (*disks_fn)(void *userdata, const struct error *err);
void disks_release(struct disks *all, const char *id, const char *cell, disks_fn done,
		   void *userdata);

#endif
