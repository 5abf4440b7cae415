/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_FILES_H
#define NACRE_KEEPER_FILES_H

#include "api/instance.pb-c.h"
#include "base/memory/list.h"
#include "loop/loop.h"

/*
 * PutFiles of a keeper: volumes that change as a whole (isolate/mount/generations.h). One thread,
 * made when it is needed, writes them one after the other. A value.
 */

/* The time that an old generation stays at least, and at most twice that, for a reader that has
 * just followed the link to it; less where there is no room. */
#define FILES_GRACE (2 * NSEC_PER_SEC)
#define FILES_VOLUMES_MAX 64

struct pool;
struct rpc_call;

struct files {
	struct loop *loop;
	struct pool *pool;
	int own_fd;          /* not owned; -1: there is no place for any */
	struct list volumes; /* struct files_volume */
	size_t n_volumes;
	struct list puttings;  /* struct files_putting: for the thread, or on it */
	struct list retirings; /* struct files_retiring, likewise */
	struct loop_timer grace;
	bool ticking; /* it is set */
};

/* own_fd: a directory on a mount of this process's own. */
void files_init(struct files *f, struct loop *loop, int own_fd);
/* Takes the call over. */
void files_put(struct files *f, struct rpc_call *call,
	       const Nacre__Instance__V1__PutFilesRequest *request);
/* Before the end of all calls. What the thread is at is waited for. */
void files_done(struct files *f);

#endif
