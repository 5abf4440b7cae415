/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_NODE_H
#define NACRE_GATE_NODE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * The node's end of one virtual machine, in the machine's network namespace; or (far) of one in a
 * cloud, in the node's. It serves rpc.sock as
 * a keeper would: each connection there becomes one to the guest, over TLS, to exactly the identity
 * that the daemon has named; and what the guest says is looked at here first
 * (wire/format/h2frame.h). It carries the boot port and keeps the end of the console. It outlives
 * the daemon, and whatever it needs of one (certificates) waits for the next.
 */

enum node_fd {
	NODE_FD_RPC = 3, /* listening, SOCK_STREAM */
	NODE_FD_CONTROL, /* listening, SOCK_SEQPACKET */
	NODE_FD_BOOT,    /* connected to the boot port; of one in a cloud nothing from here on */
	NODE_FD_CONSOLE, /* connected to the console */
	NODE_FD_END
};

/* Connections at a time; more wait in the backlog. */
#define NODE_STREAMS_MAX 128

/* Runs until the daemon tells it to end. patience: for a handshake. */
int node_run(uid_t uid, gid_t gid, nsec_t patience, bool far, struct error *err);

#endif
