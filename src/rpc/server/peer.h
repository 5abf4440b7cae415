/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_PEER_H
#define NACRE_RPC_PEER_H

#include <sys/types.h>

#define RPC_ROLE_MAX 32
#define RPC_SERIAL_MAX 32

/* A remote user, as the process that has verified the certificate tells it. Shared by the user's
 * connection and its calls; not changed once calls are made. */
struct rpc_remote {
	unsigned refs;
	char *id;                        /* SPIFFE id */
	char *address;                   /* from where, for people */
	char serial[RPC_SERIAL_MAX + 1]; /* of the certificate */
	char role[RPC_ROLE_MAX + 1];     /* that came with it; "": none is known */
};

/* Both texts are copied. 0 or -ENOMEM. */
int rpc_remote_new(struct rpc_remote **ret, const char *id, const char *address);
/* Both take NULL. */
struct rpc_remote *rpc_remote_ref(struct rpc_remote *r);
struct rpc_remote *rpc_remote_unref(struct rpc_remote *r);

/* The peer of a connection: a process, by its credentials from the kernel, or a remote user. */
struct rpc_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid; /* 0 where it is in a pid namespace that we do not see */
	/* NULL: a process of this host. Else the three before are ours and say nothing. */
	struct rpc_remote *remote;
};

#endif
