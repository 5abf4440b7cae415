/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_VOLUME_SIZES_H
#define NACRE_RUNTIME_VOLUME_SIZES_H

#include "api/nacre.pb-c.h"
#include "rpc/server/server.h"

/*
 * What volumes take on the disk, counted on a thread: everything in them is looked at.
 */

struct pool;
struct volumes;

/* Fills in the sizes of the answer's volumes and answers the call with it, later. The answer lies
 * in the call's arena. -ENOMEM. */
int volume_sizes_answer(struct rpc_call *call, struct pool *pool, const struct volumes *volumes,
			Nacre__V1__ListVolumesResponse *answer, struct error *err);

#endif
