/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_GIVEN_H
#define NACRE_KEEPER_GIVEN_H

#include "api/instance.pb-c.h"
#include "base/memory/list.h"
#include "isolate/disk/disk.h"

/*
 * PutDisk of a keeper: disks that a machine is given as bytes, since nobody can put any into it
 * (isolate/disk/disk_loop.h). Those that are whole are the kernel's. A value.
 */

#define GIVEN_MAX 16 /* at once that are not whole */
#define GIVEN_PIECE_MAX (1 << 20)

struct rpc_call;

struct given {
	struct list disks; /* that are not whole */
	size_t n_disks;
	struct disk_places places;
};

void given_init(struct given *g);
/* Takes the call over. */
void given_put(struct given *g, struct rpc_call *call,
	       const Nacre__Instance__V1__PutDiskRequest *request);
void given_done(struct given *g);

#endif
