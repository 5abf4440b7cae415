/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_LATE_H
#define NACRE_KEEPER_LATE_H

#include "base/memory/list.h"
#include "cell/layer/keeper.h"
#include "keeper/server/tokens.h"
#include "loop/loop.h"

/*
 * Starts whose descriptors come behind the message (StartRequest.late_fds): the keeper makes ready
 * what needs none of them while its parent makes the root file system. Such a start ends as a
 * failed one where its call is cancelled, where a descriptor was lost, or none came for
 * LATE_PATIENCE.
 */

#define LATE_PATIENCE (60 * NSEC_PER_SEC)

struct rpc_call;

struct lates {
	struct loop *loop;
	struct tokens *tokens;
	struct keeper *keeper;
	/* Ends the call with what became of the container. */
	void (*started)(void *call, const struct container_view *view);
	struct list list;
	struct loop_defer defer;
};

void lates_init(struct lates *all, struct loop *loop, struct tokens *tokens, struct keeper *keeper,
		void (*started)(void *call, const struct container_view *view));
/* Before the calls end, and the keeper. */
void lates_done(struct lates *all);
/* A descriptor has come, or was lost. */
void lates_look(struct lates *all);
/* keeper_start() for a call whose spec is `late` and has its tokens; fds: those of the mounts.
 * After an error the call is still to be ended. */
int lates_start(struct lates *all, struct rpc_call *call, const struct cell_spec *cell,
		const struct container_spec *spec, struct container_fds *fds, struct error *err);

#endif
