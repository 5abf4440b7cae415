/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_COPYING_H
#define NACRE_KEEPER_COPYING_H

#include "keeper/message/copy.h"

/* CopyFrom and CopyTo of a keeper: files of its containers, for a node that cannot reach them. A
 * value; its threads are made when they are needed. */

struct keeper;
struct loop;

struct copying {
	struct loop *loop;
	struct keeper *keeper;
	struct copies copies;
};

/* Both take the call over; `target` is the id of a container. first may be NULL: it never came. */
void copying_from(struct copying *c, struct rpc_call *call, const Nacre__V1__CopyFromRequest *q);
void copying_to(struct copying *c, struct rpc_call *call, const Nacre__V1__CopyToRequest *first);
/* Behind the end of all calls. What a thread is at is waited for. */
void copying_done(struct copying *c);

#endif
