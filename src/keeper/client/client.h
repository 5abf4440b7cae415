/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_H
#define NACRE_KEEPER_CLIENT_H

#include "instance/peer.h"

/*
 * A peer (instance/peer.h) over gRPC: nacre.instance.v1 on one socket, descriptors on the other.
 */

struct loop;
struct rpc_client;

/* Takes both descriptors over. The peer of a direct child: it owns the connection. fd_fd -1: one
 * that is reached over a stream of bytes alone (a keeper in a guest). To it, and to whatever is
 * below it, no descriptor can be passed; the same holds for what its events' connect() gives. */
int keeper_client_new(struct peer **ret, struct loop *l, int rpc_fd, int fd_fd);

/* For passing calls on undecoded (exec, stdin): the connection, and the target to name. Both live
 * as long as the peer. */
struct rpc_client *keeper_client_rpc(struct peer *p);
const char *keeper_client_target(struct peer *p);

#endif
