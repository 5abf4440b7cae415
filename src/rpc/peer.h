/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_PEER_H
#define NACRE_RPC_PEER_H

#include <sys/types.h>

/* Who is at the other end: by the kernel's word. */
struct rpc_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid; /* 0 where it is in a pid namespace that we do not see */
};

#endif
