/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_LISTENER_H
#define NACRE_RPC_LISTENER_H

#include <stdbool.h>

#include "base/memory/list.h"
#include "rpc/server/peer.h"

/*
 * A listening unix socket. Where the process has no descriptor left for a new connection, it waits
 * a moment before it tries again, since the socket stays readable.
 */

struct loop;
struct listener;

/* fd, and who is at its other end; fd is the callee's. Must not free the listener. */
typedef void (*listener_fn)(struct listener *l, int fd, const struct rpc_peer *peer, void *owner);

/* Takes fd over, also on failure. 0 or -ENOMEM. */
int listener_new(struct listener **ret, struct loop *loop, int fd, listener_fn fn, void *owner);
struct listener *listener_free(struct listener *l);

#endif
